//! Thresholds: a number of work, a condition on the axes, or a number that the tuning file may set.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall};

use super::axes::Axes;
use super::condition::{condition, is_condition, mentions};
use crate::errors::Errors;
use crate::model::{Function, Threshold};
use crate::parse::ungrouped;
use crate::tuning::Tuning;

/// What the value of `threshold` means; nothing when it is a mistake.
pub(super) fn threshold(
    expression: Expr,
    function: &Function,
    errors: &mut Errors,
) -> Option<Threshold> {
    let expression = ungrouped(expression);
    if is_condition(&expression) {
        return Some(Threshold::When(condition(expression, &Axes::OfKernel, errors)));
    }
    match expression {
        Expr::Call(call) if is_tuned(&call.func) => tuned(call, function, errors),
        name if is_tuned(&name) => {
            needs_default(name.span(), errors);
            None
        }
        number => work(number, errors).map(Threshold::Work),
    }
}

/// A number of work, which is the same at all sizes.
fn work(number: Expr, errors: &mut Errors) -> Option<Expr> {
    let mentions = mentions(&number);
    let Some(axis) = mentions.first() else { return Some(number) };
    let text = format!(
        "a threshold is a number of work, which names no axes, or a condition, such as `{axis} >= 1024`",
    );
    errors.at(number, text);
    None
}

fn is_tuned(expression: &Expr) -> bool {
    matches!(expression, Expr::Path(path) if path.path.is_ident("tuned"))
}

fn tuned(call: ExprCall, function: &Function, errors: &mut Errors) -> Option<Threshold> {
    let span = call.span();
    let mut arguments = call.args.into_iter();
    let Some(default) = arguments.next() else {
        needs_default(span, errors);
        return None;
    };
    if let Some(second) = arguments.next() {
        errors.at(second, "`tuned` takes one number, the default");
        return None;
    }
    if let Some(axis) = mentions(&default).first() {
        errors.at(axis, "the default of `tuned` is a number of work, which names no axes");
        return None;
    }
    match Tuning::of(&function.ident.unraw().to_string(), Some(&function.code)) {
        Ok(tuning) => Some(Threshold::Tuned { default, tuning: Box::new(tuning) }),
        Err(message) => {
            errors.at_span(span, message);
            None
        }
    }
}

fn needs_default(span: Span, errors: &mut Errors) {
    let text = "`tuned` needs a default, which holds until `--tune` has measured: `tuned(1 << 16)`";
    errors.at_span(span, text);
}
