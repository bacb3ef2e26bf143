//! `kbench::dispatch!`: a function that calls one of several variants, by the amount of work.
//!
//! It is there in production, where this crate has no dependencies, and so it works on the compiler's own tokens: the
//! signature is taken apart as far as needed and passed on, the arms of the `match` become a chain of `if`s.

mod arms;
mod expand;
mod mistakes;
mod signature;
mod tokens;

use proc_macro::TokenStream;

use arms::Choice;
use mistakes::Mistakes;
use signature::Signature;

/// The dispatching function. With mistakes in it, they are its body: whoever calls it is then not told that there is no
/// such function.
pub(crate) fn dispatch(input: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let Some(signature) = Signature::parse(input, &mut mistakes) else {
        return mistakes.into_errors();
    };
    let choice = Choice::parse(&signature.body, &mut mistakes);
    let body = choice.and_then(|choice| expand::body(&choice, &signature, &mut mistakes));
    let body = match body {
        Some(body) if mistakes.is_empty() => body,
        _ => mistakes.into_errors(),
    };
    expand::function(signature, body)
}
