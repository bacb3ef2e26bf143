//! `types = [f32, <f32, 8>, 8]`: the generic arguments of every instance.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{AngleBracketedGenericArguments, Error, GenericArgument, Result, Token};

use super::list;

/// The generic arguments of one instance.
pub(crate) struct TypesEntry {
    pub(crate) arguments: Vec<GenericArgument>,
    pub(crate) span: Span,
}

/// Parses the list.
pub(super) fn parse(input: ParseStream<'_>) -> Result<Vec<TypesEntry>> {
    let (bracket, entries) = list(input, TypesEntry::parse)?;
    match entries.is_empty() {
        true => Err(Error::new(bracket.span.join(), "this list of types is empty")),
        false => Ok(entries),
    }
}

impl Parse for TypesEntry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let arguments: Vec<GenericArgument> = if input.peek(Token![<]) {
            input.parse::<AngleBracketedGenericArguments>()?.args.into_iter().collect()
        } else {
            vec![input.parse()?]
        };
        let span = arguments.first().map_or_else(|| input.span(), Spanned::span);
        match arguments.iter().find(|argument| !is_type_or_const(argument)) {
            Some(other) => Err(Error::new_spanned(other, "expected a type or a constant")),
            None => Ok(TypesEntry { arguments, span }),
        }
    }
}

fn is_type_or_const(argument: &GenericArgument) -> bool {
    matches!(argument, GenericArgument::Type(_) | GenericArgument::Const(_))
}
