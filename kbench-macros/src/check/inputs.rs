//! `inputs = ...` against the parameters of the function.

use syn::{Expr, ItemFn, Stmt, Type};

use super::axes::Axes;
use crate::errors::Errors;
use crate::model::{Function, Gives, Inputs};
use crate::parse::{Formula, Options};

/// How the data is made.
pub(super) fn inputs(
    options: &mut Options,
    item: &ItemFn,
    function: &Function,
    axes: &Axes,
    errors: &mut Errors,
) -> Inputs {
    let count = function.data().count();
    match options.inputs.take() {
        Some(Formula::Closure(closure)) => {
            let gives = gives(&closure.body, function);
            check_count(&closure.body, count, gives, errors);
            Inputs::Closure { closure, gives }
        }
        Some(Formula::Function(path)) => {
            Inputs::Function { path, gives: if count == 1 { Gives::Value } else { Gives::Tuple } }
        }
        None => {
            check_default(options, item, count, axes, errors);
            Inputs::Default
        }
    }
}

/// A single parameter may have its value without the parentheses and the comma of a tuple.
fn gives(body: &Expr, function: &Function) -> Gives {
    let mut data = function.data();
    let (Some(only), None) = (data.next(), data.next()) else { return Gives::Tuple };
    match tuple_length(body) {
        Some(1) => Gives::Tuple,
        Some(_) if matches!(only.kind, Type::Tuple(_)) => Gives::Value,
        Some(_) => Gives::Tuple,
        None => Gives::Value,
    }
}

fn check_count(body: &Expr, count: usize, gives: Gives, errors: &mut Errors) {
    let Some(length) = tuple_length(body).filter(|_| gives == Gives::Tuple) else { return };
    if length != count {
        let values = if length == 1 { "1 value".into() } else { format!("{length} values") };
        let parameters =
            if count == 1 { "1 parameter".into() } else { format!("{count} parameters") };
        errors
            .at(tail(body), format!("`inputs` gives {values}, but the function has {parameters}"));
    }
}

fn check_default(options: &Options, item: &ItemFn, count: usize, axes: &Axes, errors: &mut Errors) {
    if axes.names().len() < 2 || count == 0 || options.keyword("inputs").is_some() {
        return;
    }
    let text = format!(
        "with several axes, say how the data of `{}` is made: `inputs = |{}| (...)`, one value for each parameter",
        item.sig.ident,
        axes.names().iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    );
    match options.keyword("sizes") {
        Some(keyword) => errors.at(keyword, text),
        None => errors.at(&item.sig.ident, text),
    }
}

/// The number of values, when the body ends in a tuple that is written out.
fn tuple_length(body: &Expr) -> Option<usize> {
    match tail(body) {
        Expr::Tuple(tuple) => Some(tuple.elems.len()),
        _ => None,
    }
}

/// The expression whose value a body has.
fn tail(body: &Expr) -> &Expr {
    match body {
        Expr::Group(group) => tail(&group.expr),
        Expr::Block(block) => match block.block.stmts.last() {
            Some(Stmt::Expr(last, None)) => tail(last),
            _ => body,
        },
        _ => body,
    }
}
