//! Conditions on the axes, such as `rows * dim >= 1024`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprCall, ExprPath, Ident, Macro, Pat, PatIdent, Result, Token, UnOp};

use super::axes::Axes;
use crate::errors::Errors;
use crate::model::Condition;

/// Checks that all names in a condition are axes.
pub(super) fn condition(expression: Expr, axes: &Axes, errors: &mut Errors) -> Condition {
    let mentions = mentions(&expression);
    for (i, name) in mentions.iter().enumerate() {
        if !mentions[..i].contains(name) {
            axes.check_name(name, errors);
        }
    }
    Condition { text: text(expression.to_token_stream()), expression, mentions }
}

/// Whether an expression reads as a condition and not as a number.
pub(super) fn is_condition(expression: &Expr) -> bool {
    match expression {
        Expr::Group(group) => is_condition(&group.expr),
        Expr::Paren(parenthesis) => is_condition(&parenthesis.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && !mentions(expression).is_empty(),
        // Such as `n.is_power_of_two()` or `matches!(n, 1 | 2)`: a number of work would not name an axis.
        Expr::MethodCall(_) | Expr::Macro(_) => !mentions(expression).is_empty(),
        Expr::Binary(binary) => matches!(
            binary.op,
            BinOp::Lt(_)
                | BinOp::Le(_)
                | BinOp::Gt(_)
                | BinOp::Ge(_)
                | BinOp::Eq(_)
                | BinOp::Ne(_)
                | BinOp::And(_)
                | BinOp::Or(_)
        ),
        _ => false,
    }
}

/// Every identifier in an expression that can only be an axis: in lower case, not called, and not bound inside.
pub(super) fn mentions(expression: &Expr) -> Vec<Ident> {
    let mut names = Names::default();
    names.visit_expr(expression);
    let Names { mut mentioned, bound } = names;
    mentioned.retain(|name| !bound.contains(name));
    mentioned
}

#[derive(Default)]
struct Names {
    mentioned: Vec<Ident>,
    bound: Vec<Ident>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if !matches!(&*call.func, Expr::Path(_)) {
            self.visit_expr(&call.func);
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if let Some(name) = path.path.get_ident()
            && name.unraw().to_string().starts_with(|c: char| c.is_lowercase() || c == '_')
        {
            self.mentioned.push(name.clone());
        }
    }

    /// What is in a macro is tokens; those of `matches!` have a pattern among them, those of others are taken for arguments.
    fn visit_macro(&mut self, found: &'ast Macro) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if found.path.segments.last().is_some_and(|name| name.ident == "matches") {
            if let Ok(Matches { value, pattern, guard }) = found.parse_body() {
                self.visit_expr(&value);
                self.visit_pat(&pattern);
                guard.iter().for_each(|guard| self.visit_expr(guard));
            }
        } else if let Ok(arguments) = found.parse_body_with(arguments) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.bound.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }
}

/// What `matches!` is given.
struct Matches {
    value: Expr,
    pattern: Pat,
    guard: Option<Expr>,
}

impl Parse for Matches {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let value = input.parse()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = input.parse::<Option<Token![if]>>()?.map(|_| input.parse()).transpose()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Matches { value, pattern, guard })
    }
}

/// Tokens as text, as they were written.
pub(crate) fn text(tokens: TokenStream) -> String {
    without_invisible_brackets(tokens).to_string()
}

/// A fragment of a `macro_rules!` has brackets around it that nobody wrote.
fn without_invisible_brackets(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                without_invisible_brackets(group.stream())
            }
            TokenTree::Group(group) => {
                let content = without_invisible_brackets(group.stream());
                TokenTree::from(proc_macro2::Group::new(group.delimiter(), content)).into()
            }
            other => TokenStream::from(other),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expression: &str) -> Vec<String> {
        mentions(&syn::parse_str(expression).expect("an expression"))
            .iter()
            .map(Ident::to_string)
            .collect()
    }

    #[test]
    fn axes_are_the_free_names_in_lower_case() {
        assert_eq!(names("rows * dim >= LIMIT"), ["rows", "dim"]);
        assert_eq!(names("limits::TILE < half(n) && n.is_power_of_two()"), ["n", "n"]);
        assert_eq!(names("{ let half = n / 2; half > 4 }"), ["n"]);
    }

    #[test]
    fn axes_are_found_in_macros() {
        assert_eq!(names("matches!(n, 1 | 2) && rows > 1"), ["n", "rows"]);
        assert_eq!(
            names("matches!((rows, dim), (1, other) if other > cols)"),
            ["rows", "dim", "cols"]
        );
        assert_eq!(names("std::matches!(n, half @ 4..=LIMIT,)"), ["n"]);
        assert_eq!(names("aligned!(rows, 2 * dim)"), ["rows", "dim"]);
        assert_eq!(names("peculiar!(rows => dim)"), [""; 0]);
    }

    #[test]
    fn a_number_is_not_a_condition() {
        let is_condition =
            |text: &str| super::is_condition(&syn::parse_str(text).expect("an expression"));
        assert!(!is_condition("1 << 16"));
        assert!(!is_condition("usize::pow(2, 16)"));
        assert!(!is_condition("2usize.pow(16)"));
        assert!(is_condition("n >= 16"));
        assert!(is_condition("(rows > 1 && dim > 2)"));
        assert!(is_condition("!(rows < 4)"));
        assert!(is_condition("n.is_power_of_two()"));
        assert!(is_condition("matches!(n, 64 | 128)"));
        assert!(!is_condition("thousands!(16)"));
    }
}
