//! Axes: their names, their values, and who may mention them.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Expr, Ident, LitStr};

use super::{is_closure, the_axes};
use crate::errors::Errors;
use crate::model::Sizes;
use crate::parse::{AxisValue, Formula, Options, Shape, ShapeSize, SizesOption};

/// What is known about the axes here.
pub(super) enum Axes {
    /// Those of this kernel.
    Known(Vec<Ident>),
    /// Those of the kernel that `of` names: the compiler checks them.
    OfKernel,
    /// Those that `sizes` would have told, had it been well formed.
    Missing,
}

impl Axes {
    /// Their names, as far as they are known.
    pub(super) fn names(&self) -> &[Ident] {
        match self {
            Axes::Known(names) => names,
            Axes::OfKernel | Axes::Missing => &[],
        }
    }

    /// Checks that a name is the name of an axis.
    pub(super) fn check_name(&self, name: &Ident, errors: &mut Errors) {
        if let Axes::Known(names) = self
            && !names.iter().any(|axis| axis.unraw() == name.unraw())
        {
            errors.at(name, format!("`{name}` is not an axis: {}", the_axes(names)));
        }
    }

    /// Checks that a formula is about these axes.
    pub(super) fn check(&self, formula: &Formula, errors: &mut Errors) {
        let mut seen: Vec<&Ident> = Vec::new();
        for name in formula.parameters() {
            self.check_name(name, errors);
            if seen.contains(&name) {
                errors.at(name, format!("`{name}` is there twice"));
            }
            seen.push(name);
        }
        let Formula::Function(path) = formula else { return };
        let axis = path.path.get_ident().filter(|ident| self.names().contains(ident));
        if let Some(axis) = axis {
            let text = format!(
                "`{axis}` is an axis, and this is a function of the axes: write `|{axis}| {axis}`"
            );
            errors.at(path, text);
        } else if let Axes::OfKernel = self {
            errors.at(
                path,
                "a variant does not know the order of its kernel's axes: write a closure",
            );
        }
    }
}

/// The name of the axis when `sizes` gives none: the parameter of the first closure with a single one.
pub(super) fn one_axis_name(options: &Options) -> Ident {
    [&options.inputs, &options.work, &options.flops, &options.bytes]
        .into_iter()
        .flatten()
        .filter(|formula| is_closure(formula) && formula.parameters().count() == 1)
        .find_map(|formula| formula.parameters().next().cloned())
        .unwrap_or_else(|| Ident::new("n", Span::call_site()))
}

/// The axes, and the sizes with every value at the place of its axis.
pub(super) fn sizes(option: SizesOption, one_axis: Ident, errors: &mut Errors) -> (Axes, Sizes) {
    match option {
        SizesOption::OneAxis(values) => (Axes::Known(vec![one_axis]), Sizes::Grid(vec![values])),
        SizesOption::Grid(axes) => {
            let (names, values): (Vec<_>, _) = axes.into_iter().unzip();
            check_unique(&names, errors);
            (Axes::Known(names), Sizes::Grid(values))
        }
        SizesOption::Labelled(shapes) => {
            check_labels(&shapes, errors);
            let names = names_of(&shapes, one_axis, errors);
            let shapes = shapes.into_iter().map(|shape| in_order(shape, &names, errors)).collect();
            (Axes::Known(names), Sizes::Labelled(shapes))
        }
    }
}

fn check_unique(names: &[Ident], errors: &mut Errors) {
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            errors.at(name, format!("the axis `{name}` is there twice"));
        }
    }
}

fn check_labels(shapes: &[Shape], errors: &mut Errors) {
    for (i, Shape { label, .. }) in shapes.iter().enumerate() {
        let text = label.value();
        if text.is_empty() {
            errors.at(label, "a label cannot be empty");
        } else if text.contains(super::is_hidden) {
            errors.at(label, super::HIDDEN);
        } else if text.contains(|c: char| c.is_whitespace() || "/,=<>".contains(c)) {
            errors.at(label, "a label has no blanks and none of `/`, `,`, `=`, `<`, `>`, which mean something else on the command line");
        } else if shapes[..i].iter().any(|earlier| earlier.label.value() == text) {
            errors.at(label, format!("the label \"{text}\" is there twice"));
        }
    }
}

/// The axes of the first shape, which all others must have.
fn names_of(shapes: &[Shape], one_axis: Ident, errors: &mut Errors) -> Vec<Ident> {
    match shapes.first().map(|shape| &shape.size) {
        Some(ShapeSize::Axes(axes)) => {
            let names: Vec<Ident> = axes.iter().map(|value| value.axis.clone()).collect();
            check_unique(&names, errors);
            names
        }
        _ => vec![one_axis],
    }
}

/// The values of a shape in the order of the axes.
fn in_order(shape: Shape, names: &[Ident], errors: &mut Errors) -> (LitStr, Vec<Expr>) {
    let values = match shape.size {
        ShapeSize::Axes(values) => values,
        ShapeSize::Value(value) if names.len() == 1 => return (shape.label, vec![value]),
        ShapeSize::Value(value) => {
            errors
                .at(value, format!("this shape must give every axis a value: {}", the_axes(names)));
            return (shape.label, Vec::new());
        }
    };
    for (i, AxisValue { axis, .. }) in values.iter().enumerate() {
        if !names.contains(axis) {
            errors
                .at(axis, format!("all shapes have the same axes, and the first has no `{axis}`"));
        } else if values[..i].iter().any(|earlier| earlier.axis == *axis) {
            errors.at(axis, format!("the axis `{axis}` is there twice"));
        }
    }
    let missing = names.iter().find(|name| !values.iter().any(|value| value.axis == **name));
    if let Some(missing) = missing {
        errors.at(
            &shape.label,
            format!("all shapes have the same axes, and this one has no `{missing}`"),
        );
    }
    let value_of = |name: &Ident| {
        values.iter().find(|value| value.axis == *name).map(|value| value.value.clone())
    };
    (shape.label, names.iter().filter_map(value_of).collect())
}
