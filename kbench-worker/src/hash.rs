//! Hashes that are fixed for ever, unlike the standard library's: they are in files, and in which share a kernel is.

/// FNV-1a with 64 bits.
pub fn fnv64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// FNV-1a with 128 bits, of text that comes in pieces. It tells contents apart that nobody made to deceive.
pub struct Fnv128(u128);

/// The hash of nothing.
impl Default for Fnv128 {
    fn default() -> Self {
        Fnv128(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv128 {
    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(prime);
        }
    }

    /// The hash as 32 digits.
    pub fn digits(&self) -> String {
        format!("{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the authors of FNV give for these texts.
    #[test]
    fn hashes_are_those_of_the_definition() {
        assert_eq!(fnv64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv64(b"foobar"), 0x8594_4171_f739_67e8);
        let of = |text: &str| {
            let mut hash = Fnv128::default();
            text.bytes().for_each(|byte| hash.update(&[byte]));
            hash.digits()
        };
        assert_eq!(of(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(of("a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
