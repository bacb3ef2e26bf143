//! `regimes = [all, !huge, nan, "a reason"]`: on which kinds of data a kernel is checked.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Result, Token};

use crate::errors::{quoted, suggestion};

/// Those in which every kernel is checked, as the runtime knows them.
const AUTOMATIC: [&str; 15] = [
    "constant", "zeros", "filled", "positive", "negative", "ties", "sorted", "reversed", "sparse",
    "ends", "shifted", "lowered", "large", "huge", "tiny",
];

/// Those in which a kernel is checked that asks for them.
const ON_REQUEST: [&str; 3] = ["denormal", "infinite", "nan"];

/// All of the automatic ones.
const ALL: &str = "all";

/// The regimes that are chosen, and why others are left out.
pub(crate) struct Regimes {
    pub(crate) names: Vec<&'static str>,
    pub(crate) reason: String,
}

enum Item {
    With(Ident),
    Without(Ident),
    Reason(LitStr),
}

fn item(input: ParseStream<'_>) -> Result<Item> {
    if input.peek(LitStr) {
        return Ok(Item::Reason(input.parse()?));
    }
    let is_without = input.parse::<Option<Token![!]>>()?.is_some();
    let name = input.call(Ident::parse_any).map_err(|error| {
        let text = "expected the name of a regime, `all`, `!` and a name, or a reason in quotes";
        Error::new(error.span(), text)
    })?;
    Ok(if is_without { Item::Without(name) } else { Item::With(name) })
}

/// Parses the list.
pub(crate) fn parse(input: ParseStream<'_>) -> Result<Regimes> {
    let (bracket, items) = super::list(input, item)?;
    let (mut names, mut reason) = (Vec::new(), None);
    let with = |name: &'static str, names: &mut Vec<&'static str>| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    // With exceptions alone, the list begins with all.
    if matches!(items.first(), Some(Item::Without(_))) {
        names.extend(AUTOMATIC);
    }
    let last = items.len().saturating_sub(1);
    for (i, item) in items.into_iter().enumerate() {
        match item {
            Item::Reason(text) if i == last && i > 0 => reason = Some(text.value()),
            Item::Reason(text) => {
                return Err(Error::new(text.span(), "the reason comes last, behind the regimes"));
            }
            Item::With(name) if name == ALL => {
                AUTOMATIC.into_iter().for_each(|name| with(name, &mut names));
            }
            Item::With(name) => with(known(&name)?, &mut names),
            Item::Without(name) => {
                let name = known(&name)?;
                names.retain(|known| *known != name);
            }
        }
    }
    let is_narrow = AUTOMATIC.iter().any(|name| !names.contains(name));
    if is_narrow && reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
        let text = "say why the other regimes are left out: `regimes = [!huge, \"inputs are normalised\"]`";
        return Err(Error::new(bracket.span.join(), text));
    }
    Ok(Regimes { names, reason: reason.unwrap_or_default() })
}

fn known(name: &Ident) -> Result<&'static str> {
    let text = name.to_string();
    let mut all = AUTOMATIC.into_iter().chain(ON_REQUEST);
    all.find(|known| *known == text).ok_or_else(|| {
        let all: Vec<&str> = AUTOMATIC.into_iter().chain(ON_REQUEST).chain([ALL]).collect();
        let hint = suggestion(&text, &all);
        let hint = if hint.is_empty() { format!("; there are {}", quoted(all)) } else { hint };
        Error::new(name.span(), format!("unknown regime `{text}`{hint}"))
    })
}
