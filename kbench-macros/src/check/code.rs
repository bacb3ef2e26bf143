//! A hash of what a function does, by which a threshold that was measured for other code is noticed.

use quote::ToTokens;
use syn::ItemFn;

use super::condition::text;

/// The hash of signature and body. Attributes, documentation, comments and layout are no part of it: changing them does
/// not change what was measured.
pub(super) fn code(item: &ItemFn) -> String {
    let mut written = text(item.sig.to_token_stream());
    written.push_str(&text(item.block.to_token_stream()));
    written.retain(|c| !c.is_whitespace());
    format!("{:016x}", fnv1a(written.as_bytes()))
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo): its value never changes, as that of the standard library's hash may.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str) -> String {
        code(&syn::parse_str(function).expect("a function"))
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the test vectors of its authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_signature_and_body_count() {
        let plain = of("fn f(x: &[f32]) -> f32 { x[0] }");
        assert_eq!(plain.len(), 16);
        assert_eq!(
            of("/// Words.\n#[inline]\npub fn f( x:&[f32] )->f32 {\n  x[0] // first\n}"),
            plain
        );
        assert_ne!(of("fn f(x: &[f32]) -> f32 { x[1] }"), plain);
        assert_ne!(of("fn f(x: &[f64]) -> f32 { x[0] }"), plain);
    }
}
