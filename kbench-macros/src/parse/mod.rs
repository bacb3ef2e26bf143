//! What the options say, each for itself.
//!
//! A malformed option does not end the parsing: its mistake is noted, and parsing goes on with the next option.

mod expectation;
mod formula;
mod regimes;
mod sizes;
mod types;

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprPath, Ident, ItemFn, LitStr, Path, Result, Token, TraitItemFn, bracketed,
    token,
};

use crate::errors::{Errors, quoted, suggestion};
pub(crate) use expectation::{ExpectationOption, Metric};
pub(crate) use formula::{Closure, Formula, ungrouped};
pub(crate) use regimes::Regimes;
pub(crate) use sizes::{AxisValue, Shape, ShapeSize, SizesOption, Values};
pub(crate) use types::TypesEntry;

const NAMES: [&str; 21] = [
    "name",
    "sizes",
    "inputs",
    "work",
    "flops",
    "bytes",
    "reference",
    "tolerance",
    "in_place",
    "expect",
    "types",
    "ignore",
    "marker",
    "regimes",
    "of",
    "serial",
    "parallel",
    "cuda",
    "reentrant",
    "threshold",
    "valid",
];
/// Known too, but not worth a mention in the list of options.
const CRATE: &str = "crate";

/// The options of one attribute. An option whose value is malformed has a keyword but no value.
#[derive(Default)]
pub(crate) struct Options {
    keywords: Vec<Ident>,
    pub(crate) name: Option<LitStr>,
    pub(crate) sizes: Option<SizesOption>,
    pub(crate) inputs: Option<Formula>,
    pub(crate) work: Option<Formula>,
    pub(crate) flops: Option<Formula>,
    pub(crate) bytes: Option<Formula>,
    pub(crate) reference: Option<ExprPath>,
    pub(crate) tolerance: Option<Expr>,
    pub(crate) in_place: Option<InPlaceOption>,
    pub(crate) expect: Vec<ExpectationOption>,
    pub(crate) types: Option<Vec<TypesEntry>>,
    pub(crate) ignore: Option<String>,
    /// The name of the kernel's marker type.
    pub(crate) marker: Option<Ident>,
    pub(crate) regimes: Option<Regimes>,
    pub(crate) of: Option<Path>,
    pub(crate) threshold: Option<Expr>,
    pub(crate) valid: Option<Expr>,
    pub(crate) krate: Option<Path>,
}

/// `in_place` or `in_place = reuse`.
pub(crate) enum InPlaceOption {
    Fresh,
    Reuse,
}

impl Options {
    /// The keyword of an option, if it was given.
    pub(crate) fn keyword(&self, name: &str) -> Option<&Ident> {
        self.keywords.iter().find(|keyword| *keyword == name)
    }
}

/// Parses the options; mistakes are added to `errors`.
pub(crate) fn options(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(error) = options.parse_one(input, errors) {
                errors.push(error);
                skip_to_next_option(input);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    let result = parser.parse2(tokens);
    // After a mistake inside of brackets syn complains once more about the tokens that were left there.
    if let (Err(error), true) = (result, errors.is_empty()) {
        errors.push(error);
    }
    options
}

/// Parses the annotated item.
pub(crate) fn function(tokens: TokenStream, errors: &mut Errors) -> Option<ItemFn> {
    let error = match syn::parse2::<ItemFn>(tokens.clone()) {
        Ok(function) => return Some(function),
        Err(error) => error,
    };
    if let Ok(function) = syn::parse2::<TraitItemFn>(tokens.clone()) {
        errors.at(function.sig.ident, "this function has no body: annotate one that calls it");
    } else if syn::parse2::<syn::Item>(tokens)
        .is_ok_and(|item| !matches!(item, syn::Item::Verbatim(_)))
    {
        errors.at_span(
            proc_macro2::Span::call_site(),
            "`kernel_bench` registers functions; this item is none",
        );
    } else {
        errors.push(error);
    }
    None
}

impl Options {
    fn parse_one(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> Result<()> {
        let keyword = input.call(Ident::parse_any).map_err(|error| {
            Error::new(error.span(), "expected an option, such as `sizes = [1 << 10, 1 << 20]`")
        })?;
        let name = keyword.to_string();
        if name != CRATE && !NAMES.contains(&name.as_str()) {
            return Err(unknown(&keyword));
        }
        if self.keyword(&name).is_some() {
            errors.at(&keyword, format!("`{name}` is given twice"));
        }
        self.keywords.push(keyword.clone());
        self.parse_value(&keyword, input, errors)?;
        if input.is_empty() || input.peek(Token![,]) {
            Ok(())
        } else {
            Err(input.error(format!("expected a comma after the value of `{name}`")))
        }
    }

    fn parse_value(
        &mut self,
        keyword: &Ident,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> Result<()> {
        match keyword.to_string().as_str() {
            "name" => self.name = Some(value(keyword, input)?),
            "sizes" => self.sizes = Some(value(keyword, input)?),
            "inputs" => self.inputs = Some(value(keyword, input)?),
            "work" => self.work = Some(value(keyword, input)?),
            "flops" => self.flops = Some(value(keyword, input)?),
            "bytes" => self.bytes = Some(value(keyword, input)?),
            "reference" => self.reference = Some(function_path(value(keyword, input)?)?),
            "tolerance" => self.tolerance = Some(value(keyword, input)?),
            "threshold" => self.threshold = Some(value(keyword, input)?),
            "valid" => self.valid = Some(value(keyword, input)?),
            "marker" => self.marker = Some(value(keyword, input)?),
            "of" => self.of = Some(kernel_path(equals(keyword, input)?)?),
            CRATE => self.krate = Some(module_path(keyword, input)?),
            "regimes" => self.regimes = Some(regimes::parse(equals(keyword, input)?)?),
            "types" => self.types = Some(types::parse(equals(keyword, input)?)?),
            "expect" => self.expect = expectation::parse(equals(keyword, input)?, errors)?,
            "in_place" => self.in_place = Some(in_place(input)?),
            "ignore" => self.ignore = Some(ignore(input)?),
            _ => {}
        }
        Ok(())
    }
}

fn unknown(keyword: &Ident) -> Error {
    let hint = suggestion(&keyword.to_string(), &NAMES);
    let hint = if hint.is_empty() { format!("; there are {}", quoted(NAMES)) } else { hint };
    Error::new(keyword.span(), format!("unknown option `{keyword}`{hint}"))
}

/// The tokens after the `=` that every option with a value has.
fn equals<'a>(keyword: &Ident, input: ParseStream<'a>) -> Result<ParseStream<'a>> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        return Ok(input);
    }
    Err(Error::new(keyword.span(), format!("`{keyword}` needs a value: `{keyword} = ...`")))
}

fn value<T: Parse>(keyword: &Ident, input: ParseStream<'_>) -> Result<T> {
    equals(keyword, input)?.parse()
}

fn module_path(keyword: &Ident, input: ParseStream<'_>) -> Result<Path> {
    Path::parse_mod_style(equals(keyword, input)?)
}

fn kernel_path(input: ParseStream<'_>) -> Result<Path> {
    let path = "expected the path of a kernel, such as `of = saxpy` or `of = rms_norm<f32>`";
    input.parse().map_err(|error: Error| Error::new(error.span(), path))
}

fn function_path(expression: Expr) -> Result<ExprPath> {
    match ungrouped(expression) {
        Expr::Path(path) => Ok(path),
        other => Err(Error::new_spanned(other, "expected the path of a function")),
    }
}

fn in_place(input: ParseStream<'_>) -> Result<InPlaceOption> {
    if !input.peek(Token![=]) {
        return Ok(InPlaceOption::Fresh);
    }
    input.parse::<Token![=]>()?;
    let mode: Ident = input.parse()?;
    if mode == "reuse" {
        return Ok(InPlaceOption::Reuse);
    }
    Err(Error::new(mode.span(), "expected `in_place` alone, or `in_place = reuse`"))
}

fn ignore(input: ParseStream<'_>) -> Result<String> {
    if !input.peek(Token![=]) {
        return Ok(String::new());
    }
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitStr>()?.value())
}

/// A bracketed list in which every element is parsed by `element`.
fn list<T>(
    input: ParseStream<'_>,
    element: fn(ParseStream<'_>) -> Result<T>,
) -> Result<(token::Bracket, Vec<T>)> {
    let content;
    let bracket = bracketed!(content in input);
    let elements = Punctuated::<T, Token![,]>::parse_terminated_with(&content, element)?;
    Ok((bracket, elements.into_iter().collect()))
}

/// Goes on to the comma before the next option, over whatever a malformed value has left.
fn skip_to_next_option(input: ParseStream<'_>) {
    while !(input.is_empty() || input.peek(Token![,]) && begins_option(&input.fork())) {
        let _ = input.parse::<TokenTree>();
    }
}

/// Whether a comma and then an option stand here. A comma alone says little: closures and shapes have commas as well.
fn begins_option(input: ParseStream<'_>) -> bool {
    let _ = input.parse::<Token![,]>();
    if input.is_empty() {
        return true;
    }
    let Ok(keyword) = input.call(Ident::parse_any) else { return false };
    let has_value = input.peek(Token![=]) && !input.peek(Token![==]) && !input.peek(Token![=>]);
    let is_bare = input.is_empty() || input.peek(Token![,]);
    has_value || is_bare && NAMES.contains(&keyword.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(tokens: &str) -> Vec<String> {
        let mut errors = Errors::default();
        options(tokens.parse().expect("tokens"), &mut errors);
        match errors.finish() {
            Ok(()) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        }
    }

    #[test]
    fn parsing_goes_on_after_every_mistake() {
        let found = messages(
            "sizs = [1], name = 3, inputs = |n, work| (n, work), wurk = |n| n, sizes = [1], sizes",
        );
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(found[0].contains("did you mean `sizes`"), "{found:#?}");
        assert!(found[2].contains("did you mean `work`"), "{found:#?}");
        assert!(found[3].contains("given twice"), "{found:#?}");
        assert!(found[4].contains("`sizes` needs a value"), "{found:#?}");
    }

    #[test]
    fn a_mistake_inside_brackets_is_reported_once() {
        assert_eq!(messages("expect = [speed >= 2.0 of], parallel").len(), 1);
    }
}
