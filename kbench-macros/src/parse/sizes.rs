//! `sizes = ...` in its three forms: the values of one axis, a grid over several, labelled shapes.

use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitStr, RangeLimits, Result, Token, braced, parenthesized,
    token,
};

use super::list;

/// The value of `sizes`.
pub(crate) enum SizesOption {
    /// Values of an axis that has no name here.
    OneAxis(Values),
    /// Every combination.
    Grid(Vec<(Ident, Values)>),
    /// Shapes with labels.
    Labelled(Vec<Shape>),
}

/// The values of one axis.
pub(crate) enum Values {
    List(Vec<Expr>),
    PowersOfTwo { from: Box<Expr>, limits: RangeLimits, to: Box<Expr> },
}

/// `"small" => (rows = 64, dim = 1024)` or `"small" => 1024`.
pub(crate) struct Shape {
    pub(crate) label: LitStr,
    pub(crate) size: ShapeSize,
}

pub(crate) enum ShapeSize {
    /// The value of the only axis.
    Value(Expr),
    /// A value for every axis.
    Axes(Vec<AxisValue>),
}

/// `rows = 64`.
pub(crate) struct AxisValue {
    pub(crate) axis: Ident,
    pub(crate) value: Expr,
}

impl Parse for SizesOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(token::Brace) {
            return grid(input).map(SizesOption::Grid);
        }
        if input.peek(token::Bracket) && is_labelled(&input.fork()) {
            return labelled(input).map(SizesOption::Labelled);
        }
        input.parse().map(SizesOption::OneAxis)
    }
}

fn is_labelled(input: ParseStream<'_>) -> bool {
    let content = |input: ParseStream<'_>| -> Result<bool> {
        let content;
        syn::bracketed!(content in input);
        let is_labelled = content.peek(LitStr) || content.peek2(Token![=>]);
        while content.parse::<proc_macro2::TokenTree>().is_ok() {}
        Ok(is_labelled)
    };
    content(input).unwrap_or(false)
}

fn grid(input: ParseStream<'_>) -> Result<Vec<(Ident, Values)>> {
    let content;
    let brace = braced!(content in input);
    let axes = Punctuated::<_, Token![,]>::parse_terminated_with(&content, axis)?;
    if axes.is_empty() {
        return Err(Error::new(brace.span.join(), "this grid has no axes"));
    }
    Ok(axes.into_iter().collect())
}

fn axis(input: ParseStream<'_>) -> Result<(Ident, Values)> {
    let axis = input.parse()?;
    input.parse::<Token![:]>()?;
    Ok((axis, input.parse()?))
}

fn labelled(input: ParseStream<'_>) -> Result<Vec<Shape>> {
    list(input, Shape::parse).map(|(_, shapes)| shapes)
}

impl Parse for Values {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(token::Bracket) {
            let (bracket, values) = list(input, Expr::parse)?;
            return match values.is_empty() {
                true => Err(Error::new(bracket.span.join(), "this list of sizes is empty")),
                false => Ok(Values::List(values)),
            };
        }
        if input.peek(Ident)
            && input.peek2(token::Paren)
            && input.fork().parse::<Ident>()? == "pow2"
        {
            input.parse::<Ident>()?;
            return powers_of_two(input);
        }
        Err(input.error("expected values of an axis: a list, `[64, 1 << 10]`, or `pow2(10..=20)`"))
    }
}

fn powers_of_two(input: ParseStream<'_>) -> Result<Values> {
    let content;
    let parenthesis = parenthesized!(content in input);
    let written = "expected a range of exponents, such as `pow2(10..=20)`";
    let range = match content.parse()? {
        Expr::Range(range) if content.is_empty() => range,
        other => return Err(Error::new_spanned(other, written)),
    };
    let (Some(from), Some(to)) = (range.start, range.end) else {
        return Err(Error::new(parenthesis.span.join(), written));
    };
    let values = Values::PowersOfTwo { from, limits: range.limits, to };
    values.check_exponents()?;
    Ok(values)
}

impl Values {
    /// Says what is wrong with exponents that can be read here; others are left to the compiler.
    fn check_exponents(&self) -> Result<()> {
        let Values::PowersOfTwo { from, limits, to } = self else { return Ok(()) };
        let (Some(first), Some(end)) = (literal(from), literal(to)) else { return Ok(()) };
        let end = end + u32::from(matches!(limits, RangeLimits::Closed(_)));
        if first >= end {
            return Err(Error::new(to.span(), "this range of exponents is empty"));
        }
        if end > 64 {
            return Err(Error::new(to.span(), "a size has 64 bits, so the largest exponent is 63"));
        }
        Ok(())
    }
}

fn literal(expression: &Expr) -> Option<u32> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
            number.base10_parse::<u16>().ok().map(u32::from)
        }
        _ => None,
    }
}

impl Parse for Shape {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let label: LitStr = input
            .parse()
            .map_err(|error| Error::new(error.span(), "expected a label: `\"small\" => ...`"))?;
        input.parse::<Token![=>]>()?;
        if !(input.peek(token::Paren) && names_axes(&input.fork())) {
            return Ok(Shape { label, size: ShapeSize::Value(input.parse()?) });
        }
        let content;
        parenthesized!(content in input);
        let axes = Punctuated::<_, Token![,]>::parse_terminated_with(&content, AxisValue::parse)?;
        Ok(Shape { label, size: ShapeSize::Axes(axes.into_iter().collect()) })
    }
}

/// Whether `(rows = ...` stands here; `(1 << 10)` is a value.
fn names_axes(input: ParseStream<'_>) -> bool {
    let content = |input: ParseStream<'_>| -> Result<bool> {
        let content;
        parenthesized!(content in input);
        let names_axes =
            content.peek(Ident::peek_any) && content.peek2(Token![=]) && !content.peek2(Token![==]);
        while content.parse::<proc_macro2::TokenTree>().is_ok() {}
        Ok(names_axes)
    };
    content(input).unwrap_or(false)
}

impl Parse for AxisValue {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let axis = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(AxisValue { axis, value: input.parse()? })
    }
}
