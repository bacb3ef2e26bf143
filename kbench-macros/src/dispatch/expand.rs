//! From the arms to a chain of `if`s.

use proc_macro::{Delimiter, Group, Literal, TokenStream, TokenTree};

use super::arms::{Choice, From, Function};
use super::mistakes::Mistakes;
use super::signature::Signature;
use super::tokens::{grouped, ours, ours_at};
use crate::tuning::{MACHINE, Tuning};

/// The function with its body.
pub(super) fn function(signature: Signature, body: TokenStream) -> TokenStream {
    let mut function = match signature.has_inline {
        true => TokenStream::new(),
        // Across crates as well: what is left of it is a comparison and a call.
        false => ours("#[inline]"),
    };
    let mut block = Group::new(Delimiter::Brace, body);
    block.set_span(signature.body.span());
    function.extend(signature.tokens);
    function.extend([TokenTree::from(block)]);
    function
}

/// The body; nothing when the tuning file is malformed.
pub(super) fn body(
    choice: &Choice,
    signature: &Signature,
    mistakes: &mut Mistakes,
) -> Option<TokenStream> {
    let mut tracked = TokenStream::new();
    let mut chain = call(&choice.otherwise, signature);
    for arm in choice.arms.iter().rev() {
        let from = match &arm.from {
            From::Fixed(number) => constant(number, "value"),
            From::Tuned { keyword, default } => match Tuning::of(&arm.function.name, None) {
                Ok(tuning) => {
                    // One file for all arms.
                    tracked = self::tracked(&tuning);
                    tuned(default, tuning.value())
                }
                Err(message) => {
                    mistakes.at(*keyword, message);
                    return None;
                }
            },
        };
        let mut condition = ours("if work >=");
        condition.extend(from);
        condition.extend(grouped(Delimiter::Brace, call(&arm.function, signature)));
        condition.extend(ours("else"));
        condition.extend(grouped(Delimiter::Brace, chain));
        chain = condition;
    }
    let mut body = tracked;
    body.extend(ours_at("let work: ::core::primitive::usize =", &choice.work));
    body.extend(choice.work.clone());
    body.extend(ours("; let _ = work;"));
    body.extend(chain);
    Some(body)
}

/// `path(a, x, y)`.
fn call(function: &Function, signature: &Signature) -> TokenStream {
    let mut arguments = TokenStream::new();
    for argument in &signature.arguments {
        arguments.extend([TokenTree::from(argument.clone())]);
        arguments.extend(ours(","));
    }
    let mut call = function.path.clone();
    call.extend(grouped(Delimiter::Parenthesis, arguments));
    if !signature.is_unsafe {
        return call;
    }
    // SAFETY: the dispatcher is an `unsafe fn`, and what its caller promises is promised to the variant.
    let mut block: TokenStream = ours(stringify!(unsafe {})).into_iter().take(1).collect();
    block.extend(grouped(Delimiter::Brace, call));
    block
}

/// An expression of the user as a constant of type `usize`, and what becomes of it.
fn constant(expression: &TokenStream, result: &str) -> TokenStream {
    let mut block = ours_at("let value: ::core::primitive::usize =", expression);
    block.extend(expression.clone());
    block.extend(ours(&format!("; {result}")));
    let mut constant = ours("const");
    constant.extend(grouped(Delimiter::Brace, block));
    constant
}

/// The measured work, or else the default. The default is compiled either way: whether it is right does not depend on
/// the machine.
fn tuned(default: &TokenStream, measured: Option<u64>) -> TokenStream {
    let Some(measured) = measured else { return constant(default, "value") };
    // A threshold that was measured with more bits than there are here is never reached.
    let result = format!(
        "let _ = value; \
         let measured: ::core::primitive::u64 = {measured}; \
         let most = ::core::primitive::usize::MAX; \
         if measured > most as ::core::primitive::u64 {{ most }} \
         else {{ measured as ::core::primitive::usize }}"
    );
    constant(default, &result)
}

/// What lets the compiler know what the constants depend on: a file, and a variable of the environment.
fn tracked(tuning: &Tuning) -> TokenStream {
    let mut items = ours(&format!(
        "const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!({MACHINE:?});"
    ));
    if let Some(file) = tuning.tracked() {
        items.extend(ours(&format!(
            "const _: &[::core::primitive::u8] = ::core::include_bytes!({});",
            Literal::string(&file)
        )));
    }
    items
}
