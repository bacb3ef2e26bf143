//! `types = ...` against the generic parameters of the function.

use quote::ToTokens;
use syn::{GenericArgument, ItemFn, Path, PathArguments, parse_quote};

use super::condition::text;
use super::function::element_label;
use crate::errors::Errors;
use crate::model::{Function, Instance, Role};
use crate::parse::{Options, TypesEntry};

/// One instance for every entry of `types`, or the only one.
pub(super) fn instances(
    options: &Options,
    item: &ItemFn,
    function: &Function,
    role: &Role,
    name: &str,
    errors: &mut Errors,
) -> Vec<Instance> {
    let count = function.generics.len();
    if let (Some(keyword), 0) = (options.keyword("types"), count) {
        errors.at(keyword, "`types` lists the arguments of a generic function, and this one has no parameters for them");
        return Vec::new();
    }
    if count > 0 && options.keyword("types").is_none() {
        errors.at(
            &item.sig.generics,
            "this function is generic: say for what, such as `types = [f32, f64]`",
        );
        return Vec::new();
    }
    if count == 0 {
        let kernel = kernel_path(role, function, &[]);
        let element = element_label(function);
        return vec![Instance { arguments: Vec::new(), kernel, element, name: name.into() }];
    }
    let mut instances: Vec<Instance> = Vec::new();
    for entry in options.types.iter().flatten() {
        let Some(instance) = instance(entry, function, role, name, errors) else { continue };
        if instances.iter().any(|known| known.element == instance.element) {
            errors.at_span(entry.span, format!("`{}` is listed twice", instance.element));
        }
        instances.push(instance);
    }
    instances
}

fn instance(
    entry: &TypesEntry,
    function: &Function,
    role: &Role,
    name: &str,
    errors: &mut Errors,
) -> Option<Instance> {
    let (expected, given) = (function.generics.len(), entry.arguments.len());
    if given != expected {
        let hint = if expected > 1 { ": write `<a, b>` for several" } else { "" };
        let text = format!("{given} argument(s) for {expected} generic parameter(s){hint}");
        errors.at_span(entry.span, text);
        return None;
    }
    let constants: Vec<_> = of_kind(&entry.arguments, function, true).collect();
    let name = match role {
        Role::Variant(_) if !constants.is_empty() => format!("{name}<{}>", label(constants)),
        _ => name.into(),
    };
    Some(Instance {
        kernel: kernel_path(role, function, &entry.arguments),
        element: label(&entry.arguments),
        arguments: entry.arguments.clone(),
        name,
    })
}

/// The arguments of the const parameters, or of the type parameters.
fn of_kind<'a>(
    arguments: &'a [GenericArgument],
    function: &'a Function,
    constant: bool,
) -> impl Iterator<Item = &'a GenericArgument> {
    arguments
        .iter()
        .zip(&function.generics)
        .filter(move |(_, generic)| generic.constant.is_some() == constant)
        .map(|(argument, _)| argument)
}

/// The kernel's marker type: a variant's type arguments are the kernel's too, unless `of` says otherwise, but constants
/// are the variant's own business (a tile width, say).
fn kernel_path(role: &Role, function: &Function, arguments: &[GenericArgument]) -> Path {
    let (mut path, arguments): (Path, Vec<_>) = match role {
        Role::Kernel(kernel) => (kernel.marker.clone().into(), arguments.iter().collect()),
        Role::Variant(variant) => {
            (variant.of.clone(), of_kind(arguments, function, false).collect())
        }
    };
    if let Some(last) = path.segments.last_mut()
        && last.arguments.is_none()
        && !arguments.is_empty()
    {
        last.arguments = PathArguments::AngleBracketed(parse_quote!(<#(#arguments),*>));
    }
    path
}

fn label<'a>(arguments: impl IntoIterator<Item = &'a GenericArgument>) -> String {
    let labels = arguments.into_iter().map(|argument| text(argument.to_token_stream()));
    labels.collect::<Vec<_>>().join(":").replace(char::is_whitespace, "")
}
