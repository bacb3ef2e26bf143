//! What matters about the annotated function, and what cannot be a kernel.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    FnArg, GenericArgument, GenericParam, ItemFn, LitStr, Meta, Pat, PatType, PathArguments,
    ReturnType, Safety, Token, Type, TypeImplTrait,
};

use super::code::code;
use crate::errors::Errors;
use crate::model::{Access, Feature, Function, Generic, Parameter};

/// The facts about the function.
pub(super) fn function(item: &ItemFn, errors: &mut Errors) -> Function {
    check_signature(item, errors);
    let typed = item.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    Function {
        ident: item.sig.ident.clone(),
        code: code(item),
        visibility: item.vis.clone(),
        conditions: item.attrs.iter().filter(|a| a.path().is_ident("cfg")).cloned().collect(),
        generics: item.sig.generics.params.iter().filter_map(generic).collect(),
        parameters: typed.enumerate().map(parameter).collect(),
        list: item.sig.paren_token.span.join(),
        has_result: has_result(&item.sig.output),
        output: item.sig.output.clone(),
        is_unsafe: matches!(item.sig.safety, Safety::Unsafe(_)),
        features: item.attrs.iter().flat_map(|attribute| features(&attribute.meta)).collect(),
    }
}

/// The features that `#[target_feature(enable = "a,b")]` asks for, also within `cfg_attr`. The compiler tells of others that
/// are malformed.
fn features(attribute: &Meta) -> Vec<Feature> {
    let Meta::List(list) = attribute else { return Vec::new() };
    if list.path.is_ident("cfg_attr") {
        let all = Punctuated::<Meta, Token![,]>::parse_terminated;
        let Ok(all) = all.parse2(list.tokens.clone()) else { return Vec::new() };
        let mut all = all.into_iter();
        let Some(condition) = all.next() else { return Vec::new() };
        let within = all.flat_map(|attribute| features(&attribute));
        return within.map(|feature| feature.within(&condition)).collect();
    }
    let mut features = Vec::new();
    if list.path.is_ident("target_feature") {
        let _ = list.parse_nested_meta(|meta| {
            let names: LitStr = meta.value()?.parse()?;
            let of = |name: &str| Feature {
                name: LitStr::new(name.trim(), names.span()),
                conditions: Vec::new(),
            };
            features.extend(names.value().split(',').map(of));
            Ok(())
        });
    }
    features
}

fn check_signature(item: &ItemFn, errors: &mut Errors) {
    let signature = &item.sig;
    if let Some(receiver) = signature.receiver() {
        errors.at(receiver, "a kernel is a free function: it cannot take `self`");
    }
    if let Some(asyncness) = &signature.asyncness {
        errors.at(
            asyncness,
            "a kernel cannot be `async`: what is timed is a call that does the work",
        );
    }
    if let Some(variadic) = &signature.variadic {
        errors.at(variadic, "a kernel has a fixed number of parameters");
    }
    let mut types = ForbiddenTypes::default();
    for input in &signature.inputs {
        if let FnArg::Typed(typed) = input {
            types.visit_type(&typed.ty);
        }
    }
    for span in types.opaque.drain(..) {
        errors.at_span(
            span,
            "a kernel cannot take `impl Trait`: name a type parameter and list its `types`",
        );
    }
    if let ReturnType::Type(_, output) = &signature.output {
        types.visit_type(output);
    }
    // A receiver is enough of a message.
    for span in types.of_impl.into_iter().filter(|_| signature.receiver().is_none()) {
        errors.at_span(span, "a kernel is a free function: it cannot name `Self`");
    }
}

/// What a signature cannot contain.
#[derive(Default)]
struct ForbiddenTypes {
    opaque: Vec<Span>,
    of_impl: Vec<Span>,
}

impl<'ast> Visit<'ast> for ForbiddenTypes {
    fn visit_type_impl_trait(&mut self, opaque: &'ast TypeImplTrait) {
        self.opaque.push(opaque.impl_token.span);
    }

    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "Self" {
            self.of_impl.push(segment.ident.span());
        }
        visit::visit_path_segment(self, segment);
    }
}

fn generic(parameter: &GenericParam) -> Option<Generic> {
    match parameter {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(kind) => Some(Generic { ident: kind.ident.clone(), constant: None }),
        GenericParam::Const(constant) => {
            Some(Generic { ident: constant.ident.clone(), constant: Some(constant.ty.clone()) })
        }
    }
}

fn parameter((position, typed): (usize, &PatType)) -> Parameter {
    let name = match &*typed.pat {
        Pat::Ident(name) => name.ident.unraw().to_string(),
        _ => format!("argument {}", position + 1),
    };
    let kind = ungrouped(&typed.ty);
    let access = match kind {
        Type::Reference(reference) if reference.mutability.is_some() => Access::Write,
        Type::Reference(reference) if last_segment(&reference.elem).is_some_and(|s| s == "Gpu") => {
            Access::Device
        }
        _ => Access::Read,
    };
    Parameter { name, kind: kind.clone(), access }
}

fn has_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, output) = output else { return false };
    let output = ungrouped(output);
    let value = match last_segment(output) {
        Some(name) if name.to_string().ends_with("Result") => {
            first_argument(output).unwrap_or(output)
        }
        _ => output,
    };
    !matches!(value, Type::Never(_))
        && !matches!(value, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// The label of a kernel that is not generic: the name of the number type that it is about.
pub(super) fn element_label(function: &Function) -> String {
    let written = || function.data().filter(|parameter| parameter.access == Access::Write);
    let by_value = || function.data().filter(|parameter| referent(&parameter.kind).is_none());
    let output = match &function.output {
        ReturnType::Type(_, output) => Some(&**output),
        ReturnType::Default => None,
    };
    let of_slice =
        |parameter: &Parameter| element_of(referent(&parameter.kind)?).and_then(type_name);
    let of_target = |parameter: &Parameter| type_name(referent(&parameter.kind)?);
    written()
        .find_map(of_slice)
        .or_else(|| function.data().find_map(of_slice))
        .or_else(|| written().find_map(of_target))
        .or_else(|| output.and_then(number_of))
        .or_else(|| by_value().find_map(|parameter| type_name(&parameter.kind)))
        .unwrap_or_else(|| "-".into())
}

/// The type that a return value is about: through `Result`, `Option` and `Vec`.
fn number_of(output: &Type) -> Option<String> {
    let output = ungrouped(output);
    match last_segment(output) {
        Some(name) if name.to_string().ends_with("Result") || name == "Option" || name == "Vec" => {
            first_argument(output).and_then(number_of)
        }
        _ => element_of(output).map_or_else(|| type_name(output), number_of),
    }
}

fn type_name(kind: &Type) -> Option<String> {
    match ungrouped(kind) {
        Type::Array(array) => type_name(&array.elem),
        other => last_segment(other).map(|name| name.unraw().to_string()),
    }
}

/// The type behind a reference.
pub(crate) fn referent(kind: &Type) -> Option<&Type> {
    match ungrouped(kind) {
        Type::Reference(reference) => Some(ungrouped(&reference.elem)),
        _ => None,
    }
}

/// Numbers that a slice may hold.
const NUMBERS: [&str; 17] = [
    "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64",
    "usize", "bool", "F8E4M3", "F8E5M2",
];

/// Whether a parameter is a slice or an array of numbers, of which a function can change the content alone. A generic name
/// stands for its argument.
pub(crate) fn is_of_numbers(
    kind: &Type,
    generics: &[Generic],
    arguments: &[GenericArgument],
) -> bool {
    let argument = |name: &str| {
        let at = generics.iter().position(|generic| generic.ident == name)?;
        match arguments.get(at)? {
            GenericArgument::Type(argument) => Some(argument),
            _ => None,
        }
    };
    let is_number = |kind: &Type| {
        let name = type_name(kind)?;
        let name = argument(&name).map_or(Some(name), type_name)?;
        Some(NUMBERS.contains(&&*name))
    };
    referent(kind).and_then(element_of).and_then(is_number).unwrap_or(false)
}

/// The type of the elements of a slice, an array, or an array on a device.
fn element_of(kind: &Type) -> Option<&Type> {
    match ungrouped(kind) {
        Type::Slice(slice) => Some(&slice.elem),
        Type::Array(array) => Some(&array.elem),
        other => pointee(other),
    }
}

/// The `T` of `DeviceSlice<T>`.
pub(crate) fn pointee(kind: &Type) -> Option<&Type> {
    last_segment(kind).filter(|name| *name == "DeviceSlice").and_then(|_| first_argument(kind))
}

fn last_segment(kind: &Type) -> Option<&syn::Ident> {
    match ungrouped(kind) {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

fn first_argument(kind: &Type) -> Option<&Type> {
    let Type::Path(path) = ungrouped(kind) else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    })
}

/// The type without parentheses, visible or not.
fn ungrouped(kind: &Type) -> &Type {
    match kind {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(parenthesis) => ungrouped(&parenthesis.elem),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    #[test]
    fn features_are_found_wherever_the_compiler_finds_them() {
        let item: ItemFn = parse_quote! {
            #[inline]
            #[target_feature(enable = "avx2, fma")]
            #[cfg(target_feature = "sse2")]
            #[cfg_attr(windows, doc = "target_feature", cfg_attr(test, target_feature(enable = "bmi2")))]
            #[cfg_attr(unix, inline)]
            fn f() {}
        };
        let words = |feature: &Feature| {
            let conditions = feature.conditions.iter().map(|c| c.to_token_stream().to_string());
            (feature.name.value(), conditions.collect::<Vec<_>>().join(" "))
        };
        let found = function(&item, &mut Errors::default());
        let found: Vec<_> = found.features.iter().map(words).collect();
        let found: Vec<_> = found.iter().map(|(name, when)| (&**name, &**when)).collect();
        assert_eq!(found, [("avx2", ""), ("fma", ""), ("bmi2", "windows test")]);
    }

    #[test]
    fn a_generic_name_is_a_number_where_its_argument_is_one() {
        let generics: [Generic; 2] = [
            Generic { ident: parse_quote!(N), constant: Some(parse_quote!(usize)) },
            Generic { ident: parse_quote!(T), constant: None },
        ];
        let is_of_numbers = |kind: Type, argument: Type| {
            let arguments =
                [GenericArgument::Const(parse_quote!(4)), GenericArgument::Type(argument)];
            is_of_numbers(&kind, &generics, &arguments)
        };
        let kinds = || -> [Type; 3] {
            [parse_quote!(&mut [T]), parse_quote!(&mut [T; N]), parse_quote!(&mut [[T; N]])]
        };
        let numbers: [Type; 4] = [
            parse_quote!(f32),
            parse_quote!(half::bf16),
            parse_quote!([f32; 2]),
            parse_quote!((u8)),
        ];
        let others: [Type; 4] = [
            parse_quote!(Vec<f32>),
            parse_quote!(&'static f32),
            parse_quote!((f32, Vec<f32>)),
            parse_quote!([Vec<f32>; 2]),
        ];
        for kind in kinds() {
            for argument in &numbers {
                assert!(is_of_numbers(kind.clone(), argument.clone()));
            }
            for argument in &others {
                assert!(!is_of_numbers(kind.clone(), argument.clone()));
            }
        }
        for kind in [parse_quote!(&mut Vec<T>), parse_quote!(&mut [Vec<T>]), parse_quote!(&mut T)] {
            assert!(!is_of_numbers(kind, parse_quote!(f32)));
        }
    }
}
