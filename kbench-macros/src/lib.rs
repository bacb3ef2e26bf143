//! The attribute of kbench, in three rooms: `parse` (what the options say), `check` (what they mean together with the
//! function) and `expand` (a pure function from the checked model to tokens). Without the feature `run` the attribute
//! returns its item as it came, and nothing of this is compiled.
//!
//! Beside it are `operand`, which derives a trait, and `dispatch`, which is the same with and without the feature. The attribute
//! and `dispatch` take thresholds from `tuning`.

use proc_macro::TokenStream;

#[cfg(feature = "run")]
mod check;
mod dispatch;
#[cfg(feature = "run")]
mod errors;
#[cfg(feature = "run")]
mod expand;
#[cfg(feature = "run")]
mod model;
#[cfg(feature = "run")]
mod operand;
#[cfg(feature = "run")]
mod parse;
mod tuning;

/// Registers a function as a kernel, or with `of = kernel` as a variant of one.
///
/// The function itself stays as it is. All options are explained in the documentation of the crate `kbench`.
#[proc_macro_attribute]
pub fn kernel_bench(arguments: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "run")]
    return register(arguments.into(), item.into()).into();
    #[cfg(not(feature = "run"))]
    {
        let _ = arguments;
        item
    }
}

/// Makes a struct an operand whose fields are compared.
///
/// It is explained in the documentation of the crate `kbench`.
#[proc_macro_derive(Operand, attributes(operand))]
pub fn operand(input: TokenStream) -> TokenStream {
    #[cfg(feature = "run")]
    return operand::derive(input.into()).unwrap_or_else(syn::Error::into_compile_error).into();
    #[cfg(not(feature = "run"))]
    {
        let _ = input;
        TokenStream::new()
    }
}

/// Makes a function that calls one of several variants, by the amount of work.
///
/// It is explained in the documentation of the crate `kbench`.
#[proc_macro]
pub fn dispatch(input: TokenStream) -> TokenStream {
    dispatch::dispatch(input)
}

/// The item, followed by its registration or by everything that is wrong with it.
#[cfg(feature = "run")]
fn register(
    arguments: proc_macro2::TokenStream,
    mut item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = errors::Errors::default();
    let options = parse::options(arguments, &mut errors);
    let function = parse::function(item.clone(), &mut errors);
    let registration = function.map(|function| check::check(options, function, &mut errors));
    item.extend(match (errors.finish(), registration) {
        (Ok(()), Some(registration)) => expand::expand(&registration),
        (Ok(()), None) => proc_macro2::TokenStream::new(),
        (Err(error), _) => error.into_compile_error(),
    });
    item
}
