//! `expect = [speedup >= 2.0, time < 10us at n >= 1024]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, Lit, Result, Token, bracketed};

use crate::errors::{Errors, suggestion};

const METRICS: [&str; 4] = ["speedup", "best", "ceiling", "time"];
/// Units of time, and how many of each are in a second: a division by them is exact where possible.
const UNITS: [(&str, f64); 4] = [("ns", 1e9), ("us", 1e6), ("ms", 1e3), ("s", 1.0)];

/// One performance target.
pub(crate) struct ExpectationOption {
    pub(crate) metric: Metric,
    pub(crate) is_lower_bound: bool,
    /// A ratio, a share, or seconds.
    pub(crate) value: f64,
    pub(crate) at: Option<Expr>,
    /// The tokens as written.
    pub(crate) tokens: TokenStream,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Metric {
    Speedup,
    Best,
    Ceiling,
    Time,
}

/// Parses the list; a mistake in one target does not hide those in the next.
pub(super) fn parse(input: ParseStream<'_>, errors: &mut Errors) -> Result<Vec<ExpectationOption>> {
    let content;
    let bracket = bracketed!(content in input);
    if content.is_empty() {
        return Err(Error::new(bracket.span.join(), "this list of expectations is empty"));
    }
    let mut expectations = Vec::new();
    while !content.is_empty() {
        match expectation(&content) {
            Ok(expectation) => expectations.push(expectation),
            Err(error) => {
                errors.push(error);
                skip_to_comma(&content);
            }
        }
        if !content.is_empty() && content.parse::<Token![,]>().is_err() {
            errors.push(content.error("expected a comma, or `at` and a condition on the axes"));
            skip_to_comma(&content);
            let _ = content.parse::<Token![,]>();
        }
    }
    Ok(expectations)
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !(input.is_empty() || input.peek(Token![,])) {
        let _ = input.parse::<proc_macro2::TokenTree>();
    }
}

fn expectation(input: ParseStream<'_>) -> Result<ExpectationOption> {
    let name: Ident = input.parse().map_err(|error| {
        Error::new(error.span(), "expected `speedup`, `best`, `ceiling` or `time`")
    })?;
    let metric = metric(&name)?;
    let (operator, is_lower_bound) = operator(input)?;
    let literal: Lit =
        input.parse().map_err(|error| Error::new(error.span(), "expected a number"))?;
    let value = match metric {
        Metric::Time => seconds(&literal)?,
        _ => plain(&literal, &name)?,
    };
    let mut tokens = name.into_token_stream();
    tokens.extend(operator);
    literal.to_tokens(&mut tokens);
    let at = condition(input, &mut tokens)?;
    Ok(ExpectationOption { metric, is_lower_bound, value, at, tokens })
}

fn metric(name: &Ident) -> Result<Metric> {
    match name.to_string().as_str() {
        "speedup" => Ok(Metric::Speedup),
        "best" => Ok(Metric::Best),
        "ceiling" => Ok(Metric::Ceiling),
        "time" => Ok(Metric::Time),
        other => {
            let hint = match suggestion(other, &METRICS) {
                hint if hint.is_empty() => {
                    "; expected `speedup`, `best`, `ceiling` or `time`".into()
                }
                hint => hint,
            };
            Err(Error::new(name.span(), format!("unknown metric `{other}`{hint}")))
        }
    }
}

/// The operator, and whether it bounds from below.
fn operator(input: ParseStream<'_>) -> Result<(TokenStream, bool)> {
    let lookahead = input.lookahead1();
    if lookahead.peek(Token![>=]) {
        Ok((input.parse::<Token![>=]>()?.into_token_stream(), true))
    } else if lookahead.peek(Token![<=]) {
        Ok((input.parse::<Token![<=]>()?.into_token_stream(), false))
    } else if lookahead.peek(Token![>]) {
        Ok((input.parse::<Token![>]>()?.into_token_stream(), true))
    } else if lookahead.peek(Token![<]) {
        Ok((input.parse::<Token![<]>()?.into_token_stream(), false))
    } else {
        Err(input.error("expected `>=`, `>`, `<=` or `<`"))
    }
}

/// `at dim >= 1024`.
fn condition(input: ParseStream<'_>, tokens: &mut TokenStream) -> Result<Option<Expr>> {
    if !(input.peek(Ident) && input.fork().parse::<Ident>()? == "at") {
        return Ok(None);
    }
    let at: Ident = input.parse()?;
    let condition: Expr = input.parse()?;
    at.to_tokens(tokens);
    condition.to_tokens(tokens);
    Ok(Some(condition))
}

/// Digits and suffix of a number.
fn number(literal: &Lit) -> Option<(f64, &str)> {
    match literal {
        Lit::Int(number) => Some((number.base10_parse::<u64>().ok()? as f64, number.suffix())),
        Lit::Float(number) => Some((number.base10_parse().ok()?, number.suffix())),
        _ => None,
    }
}

fn seconds(literal: &Lit) -> Result<f64> {
    let (value, suffix) = number(literal)
        .ok_or_else(|| Error::new_spanned(literal, "expected a time, such as `10us`"))?;
    let unit = UNITS.iter().find(|(name, _)| *name == suffix);
    let wrong = "a time needs a unit: `10ns`, `10us`, `1.5ms` or `2s`";
    unit.map(|(_, per_second)| value / per_second).ok_or_else(|| Error::new_spanned(literal, wrong))
}

fn plain(literal: &Lit, metric: &Ident) -> Result<f64> {
    match number(literal) {
        Some((value, "" | "f64")) => Ok(value),
        _ => {
            Err(Error::new_spanned(literal, format!("`{metric}` is a plain number, such as `1.5`")))
        }
    }
}
