//! Closures over the axes, or paths of functions that take them.

use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, ExprClosure, ExprPath, Ident, Pat, Result, ReturnType, Token, Type};

/// The value of `inputs`, `work`, `flops` and `bytes`.
pub(crate) enum Formula {
    Closure(Box<Closure>),
    Function(ExprPath),
}

/// A closure whose parameters name axes; those that are `_` name none.
pub(crate) struct Closure {
    pub(crate) parameters: Vec<AxisParameter>,
    pub(crate) output: Option<Type>,
    pub(crate) body: Expr,
}

/// `rows`, `mut rows` or `rows: usize`.
pub(crate) struct AxisParameter {
    pub(crate) name: Ident,
    pub(crate) mutability: Option<Token![mut]>,
    pub(crate) kind: Option<Type>,
}

impl Formula {
    /// The names of the closure's parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Ident> {
        let closure = match self {
            Formula::Closure(closure) => Some(closure),
            Formula::Function(_) => None,
        };
        closure.into_iter().flat_map(|closure| &closure.parameters).map(|parameter| &parameter.name)
    }
}

impl Parse for Formula {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        match ungrouped(input.parse()?) {
            Expr::Closure(closure) => Ok(Formula::Closure(Box::new(Closure::try_from(closure)?))),
            Expr::Path(path) => Ok(Formula::Function(path)),
            other => Err(Error::new_spanned(
                other,
                "expected a closure over the axes, such as `|n| ...`, or the path of a function",
            )),
        }
    }
}

impl TryFrom<ExprClosure> for Closure {
    type Error = Error;

    fn try_from(closure: ExprClosure) -> Result<Self> {
        let output = match closure.output {
            ReturnType::Default => None,
            ReturnType::Type(_, output) => Some(*output),
        };
        let named = closure.inputs.into_iter().filter(|parameter| !is_unnamed(parameter));
        let parameters = named.map(AxisParameter::try_from);
        Ok(Closure { parameters: parameters.collect::<Result<_>>()?, output, body: *closure.body })
    }
}

/// Whether a parameter is `_`, as in `bytes = |_| 0`: axes go by name, so it stands for nothing.
fn is_unnamed(parameter: &Pat) -> bool {
    match parameter {
        Pat::Type(typed) => is_unnamed(&typed.pat),
        other => matches!(other, Pat::Wild(_)),
    }
}

impl TryFrom<Pat> for AxisParameter {
    type Error = Error;

    fn try_from(pattern: Pat) -> Result<Self> {
        let (pattern, kind) = match pattern {
            Pat::Type(typed) => (*typed.pat, Some(*typed.ty)),
            other => (other, None),
        };
        match pattern {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                Ok(AxisParameter { name: name.ident, mutability: name.mutability, kind })
            }
            other => {
                Err(Error::new_spanned(other, "a parameter of this closure is the name of an axis"))
            }
        }
    }
}

/// The expression without the invisible brackets that a `macro_rules!` fragment has around it.
pub(crate) fn ungrouped(expression: Expr) -> Expr {
    match expression {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_without_a_name_is_no_axis() {
        let names = |text: &str| -> Vec<String> {
            let formula: Formula = syn::parse_str(text).expect("a closure");
            formula.parameters().map(Ident::to_string).collect()
        };
        assert_eq!(names("|_| 0"), [""; 0]);
        assert_eq!(names("|rows, _: usize, dim| rows * dim"), ["rows", "dim"]);
        assert!(syn::parse_str::<Formula>("|(rows, dim)| rows * dim").is_err());
    }
}
