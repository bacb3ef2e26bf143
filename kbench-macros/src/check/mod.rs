//! What the options mean together with the function.

mod axes;
mod code;
mod condition;
mod function;
mod inputs;
mod instances;
mod threshold;

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{ItemFn, LitStr, Type, parse_quote};

use crate::errors::{Errors, quoted};
use crate::model::{
    Access, Backend, Expectation, Function, InPlace, Kernel, Registration, Role, Sizes, Variant,
};
use crate::parse::{ExpectationOption, Formula, InPlaceOption, Options};
use axes::Axes;
pub(crate) use condition::text;
pub(crate) use function::{is_of_numbers, pointee, referent};

/// Options that describe the operation and not one implementation of it.
const OF_THE_KERNEL: [&str; 7] =
    ["sizes", "inputs", "work", "reference", "in_place", "marker", "regimes"];
/// The runtime's traits for tuples end here.
const MOST_PARAMETERS: usize = 12;

/// The checked model. When errors were added, it is incomplete and must not be expanded.
pub(crate) fn check(mut options: Options, item: ItemFn, errors: &mut Errors) -> Registration {
    let function = function::function(&item, errors);
    let backend = backend(&options, errors);
    let reentrant = options.keyword("reentrant");
    if let (Some(keyword), Backend::Cuda) = (reentrant, backend) {
        errors.at(
            keyword,
            "calls on a device follow each other; `reentrant` is for serial and parallel variants",
        );
    }
    let is_reentrant = reentrant.is_some();
    check_parameters(&item, &function, backend, errors);
    let name = name(options.name.as_ref(), &function, errors);
    // A malformed `of` is a variant all the same. Any path will do for the rest of the checks.
    let of = options.of.take().or_else(|| options.keyword("of").cloned().map(Into::into));
    let (role, axes) = match of {
        Some(of) => (variant(&mut options, of, &function, errors), Axes::OfKernel),
        None => kernel(&mut options, &item, &function, errors),
    };
    for formula in [&options.flops, &options.bytes].into_iter().flatten() {
        axes.check(formula, errors);
    }
    let expectations =
        options.expect.drain(..).map(|option| expectation(option, &axes, errors)).collect();
    let instances = instances::instances(&options, &item, &function, &role, &name, errors);
    Registration {
        krate: options.krate.unwrap_or_else(|| parse_quote!(::kbench)),
        function,
        name,
        backend,
        role,
        instances,
        expectations,
        ignore: options.ignore,
        is_reentrant,
        tolerance: options.tolerance,
        flops: options.flops,
        bytes: options.bytes,
    }
}

fn backend(options: &Options, errors: &mut Errors) -> Backend {
    let backends =
        [("serial", Backend::Serial), ("parallel", Backend::Parallel), ("cuda", Backend::Cuda)];
    let given: Vec<_> = backends
        .into_iter()
        .filter_map(|(name, backend)| options.keyword(name).map(|keyword| (keyword, backend)))
        .collect();
    for (keyword, _) in given.iter().skip(1) {
        errors.at(
            keyword,
            format!("a variant has one backend, and this one is `{}` already", given[0].0),
        );
    }
    given.first().map_or(Backend::Serial, |(_, backend)| *backend)
}

fn check_parameters(item: &ItemFn, function: &Function, backend: Backend, errors: &mut Errors) {
    let device = function.parameters.iter().find(|parameter| parameter.access == Access::Device);
    if let (Some(device), false) = (device, backend == Backend::Cuda) {
        errors.at(&device.kind, "only a `cuda` variant is given a `&Gpu`");
    }
    for parameter in function.data().filter(|_| backend == Backend::Cuda) {
        if let Some(Type::Slice(slice)) = referent(&parameter.kind) {
            let element = slice.elem.to_token_stream();
            let mutable = if parameter.access == Access::Write { "mut " } else { "" };
            let text = format!(
                "data of a CUDA variant is on the device: take `&{mutable}DeviceSlice<{element}>`"
            );
            errors.at(&parameter.kind, text);
        }
    }
    if function.data().count() > MOST_PARAMETERS {
        let text =
            format!("a kernel has at most {MOST_PARAMETERS} parameters; group some in a struct");
        errors.at(&item.sig.inputs, text);
    }
}

fn name(given: Option<&LitStr>, function: &Function, errors: &mut Errors) -> String {
    let Some(given) = given else { return function.ident.unraw().to_string() };
    let name = given.value();
    if name.is_empty() {
        errors.at(given, "a name cannot be empty");
    } else if name.contains(is_hidden) {
        errors.at(given, HIDDEN);
    } else if name.contains(|c: char| c.is_whitespace() || c == '/' || c == ',') {
        let text = "a name has no blanks, no `/`, which separates the parts of a full name, \
                    and no `,`, which separates names on the command line";
        errors.at(given, text);
    }
    name
}

/// What is said of a name or a label that has something that cannot be seen.
const HIDDEN: &str = "this has a character that cannot be seen, and that a terminal or an editor would obey; leave it out";

/// Whether a character does something instead of being seen: controls, and those that turn the direction of writing. Line
/// ends and tabs are blanks.
fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}');
    let isolates = matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}');
    (c.is_control() && !c.is_whitespace()) || turns || isolates
}

fn variant(options: &mut Options, of: syn::Path, function: &Function, errors: &mut Errors) -> Role {
    for name in OF_THE_KERNEL {
        if let Some(keyword) = options.keyword(name) {
            errors.at(keyword, format!("`{name}` belongs to the kernel; the variant inherits it"));
        }
    }
    let threshold =
        options.threshold.take().and_then(|value| threshold::threshold(value, function, errors));
    let valid =
        options.valid.take().map(|valid| condition::condition(valid, &Axes::OfKernel, errors));
    Role::Variant(Box::new(Variant { of, threshold, valid }))
}

fn kernel(
    options: &mut Options,
    item: &ItemFn,
    function: &Function,
    errors: &mut Errors,
) -> (Role, Axes) {
    if let Some(keyword) = options.keyword("threshold") {
        let text =
            "a threshold says from where on a variant beats its kernel: give it together with `of`";
        errors.at(keyword, text);
    }
    if options.keyword("sizes").is_none() {
        let text = "`sizes` is missing: a kernel says at which sizes it is measured, \
                    a variant says with `of` whose sizes it shares";
        errors.at_span(Span::call_site(), text);
    }
    let one_axis = axes::one_axis_name(options);
    let (axes, sizes) = match options.sizes.take() {
        Some(sizes) => axes::sizes(sizes, one_axis, errors),
        None => (Axes::Missing, Sizes::Grid(Vec::new())),
    };
    for formula in [&options.inputs, &options.work].into_iter().flatten() {
        axes.check(formula, errors);
    }
    let kernel = Kernel {
        inputs: inputs::inputs(options, item, function, &axes, errors),
        work: options.work.take(),
        reference: options.reference.take(),
        regimes: options.regimes.take(),
        in_place: in_place(options, function, errors),
        valid: options.valid.take().map(|valid| condition::condition(valid, &axes, errors)),
        axes: axes.names().to_vec(),
        marker: options.marker.take().unwrap_or_else(|| function.ident.clone()),
        sizes,
    };
    (Role::Kernel(Box::new(kernel)), axes)
}

fn in_place(options: &Options, function: &Function, errors: &mut Errors) -> InPlace {
    let has_outputs = function.data().any(|parameter| parameter.access == Access::Write);
    if let (Some(keyword), false) = (options.keyword("in_place"), has_outputs) {
        errors.at(keyword, "`in_place` speaks about `&mut` parameters, and this function has none");
    }
    match options.in_place {
        None => InPlace::No,
        Some(InPlaceOption::Fresh) => InPlace::Fresh,
        Some(InPlaceOption::Reuse) => InPlace::Reuse,
    }
}

fn expectation(mut option: ExpectationOption, axes: &Axes, errors: &mut Errors) -> Expectation {
    let at = option.at.take().map(|at| condition::condition(at, axes, errors));
    Expectation { text: condition::text(option.tokens.clone()), option, at }
}

/// "the axes are `rows`, `dim`".
fn the_axes(axes: &[syn::Ident]) -> String {
    match axes {
        [axis] => format!("the only axis is `{axis}`"),
        axes => format!("the axes are {}", quoted(axes)),
    }
}

/// Whether a formula is written as a closure.
fn is_closure(formula: &Formula) -> bool {
    matches!(formula, Formula::Closure(_))
}

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn what_cannot_be_seen_is_no_part_of_a_name() {
        assert!(
            ["a\u{1b}[2J", "\0", "gnp.\u{202e}exe", "\u{feff}a"]
                .iter()
                .all(|n| n.contains(is_hidden))
        );
        assert!(
            !["saxpy", "v2.1", "🚀", "é", "<script>", "a\"b'c", "..", "a b\n"]
                .iter()
                .any(|name| name.contains(is_hidden))
        );
    }
}
