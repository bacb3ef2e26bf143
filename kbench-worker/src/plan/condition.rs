//! `--size 'dim>=1024'`: conditions on axes, as typed on a command line.

use std::fmt;
use std::str::FromStr;

/// A label of a shape, or conditions on axes that must all hold.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeFilter {
    /// The label of a labelled shape.
    Label(String),
    /// `dim>=1024`, `rows=1&&dim>=1024`.
    Where(Vec<Comparison>),
}

/// One comparison of an axis with a number, or with another axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    axis: String,
    operator: Operator,
    with: Side,
}

/// What an axis is compared with.
#[derive(Clone, Debug, PartialEq)]
enum Side {
    Number(usize),
    Axis(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    AtLeast,
    AtMost,
    Above,
    Below,
    Not,
    Is,
}

/// Longest first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Operator); 7] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::Not),
    ("==", Operator::Is),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Is),
];

impl Comparison {
    /// The axes that it names.
    pub fn axes(&self) -> impl Iterator<Item = &String> {
        let other = match &self.with {
            Side::Axis(axis) => Some(axis),
            Side::Number(_) => None,
        };
        [&self.axis].into_iter().chain(other)
    }

    /// Whether it holds, unless it names an axis that there is no value of.
    fn holds(&self, value_of: impl Fn(&str) -> Option<usize>) -> Option<bool> {
        let value = value_of(&self.axis)?;
        let other = match &self.with {
            Side::Number(number) => *number,
            Side::Axis(axis) => value_of(axis)?,
        };
        Some(match self.operator {
            Operator::AtLeast => value >= other,
            Operator::AtMost => value <= other,
            Operator::Above => value > other,
            Operator::Below => value < other,
            Operator::Not => value != other,
            Operator::Is => value == other,
        })
    }
}

impl SizeFilter {
    /// Whether a size of a kernel with these axes, made from a shape with this label, is meant; an axis that the kernel lacks
    /// matches nothing.
    pub fn matches(&self, axes: &[&str], values: &[usize], shape: Option<&str>) -> bool {
        let value_of = |name: &str| Some(values[axes.iter().position(|axis| *axis == name)?]);
        match self {
            SizeFilter::Label(wanted) => shape == Some(wanted),
            SizeFilter::Where(comparisons) => {
                comparisons.iter().all(|comparison| comparison.holds(value_of).unwrap_or(false))
            }
        }
    }
}

impl FromStr for SizeFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains(['<', '>', '=']) {
            return Ok(SizeFilter::Label(text.trim().to_owned()));
        }
        text.split("&&").map(comparison).collect::<Result<_, _>>().map(SizeFilter::Where)
    }
}

fn comparison(text: &str) -> Result<Comparison, String> {
    let (position, symbol, operator) = OPERATORS
        .iter()
        .filter_map(|(symbol, operator)| Some((text.find(symbol)?, *symbol, *operator)))
        .min_by_key(|(position, symbol, _)| (*position, std::cmp::Reverse(symbol.len())))
        .ok_or_else(|| format!("`{text}` has no comparison; write for example `dim>=1024`"))?;
    let axis = text[..position].trim();
    if !is_name(axis) {
        return Err(format!("`{text}` does not name an axis; write for example `dim>=1024`"));
    }
    let with = side(text[position + symbol.len()..].trim())?;
    Ok(Comparison { axis: axis.to_owned(), operator, with })
}

/// A number or the name of an axis.
fn side(text: &str) -> Result<Side, String> {
    if is_name(text) { Ok(Side::Axis(text.to_owned())) } else { number(text).map(Side::Number) }
}

/// Whether an axis may be called so.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A whole number: `4096`, `4_096`, `1<<12` or `2^12`.
pub(super) fn number(text: &str) -> Result<usize, String> {
    let wrong =
        || format!("`{text}` is not a whole number; write for example 4096, 4_096, 1<<12 or 2^12");
    let digits = |text: &str| text.trim().replace('_', "").parse::<usize>().map_err(|_| wrong());
    let parsed = if let Some((one, shift)) = text.split_once("<<") {
        u32::try_from(digits(shift)?).ok().and_then(|shift| {
            let one = digits(one).ok()?;
            one.checked_shl(shift).filter(|shifted| shifted >> shift == one)
        })
    } else if let Some((base, exponent)) = text.split_once('^') {
        u32::try_from(digits(exponent)?).ok().and_then(|e| digits(base).ok()?.checked_pow(e))
    } else {
        Some(digits(text)?)
    };
    parsed.ok_or_else(wrong)
}

impl fmt::Display for SizeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeFilter::Label(label) => f.write_str(label),
            SizeFilter::Where(comparisons) => {
                for (i, comparison) in comparisons.iter().enumerate() {
                    let symbol = OPERATORS.iter().find(|(_, o)| *o == comparison.operator);
                    let separator = if i > 0 { "&&" } else { "" };
                    let symbol = symbol.map_or("=", |(symbol, _)| symbol);
                    write!(f, "{separator}{}{symbol}", comparison.axis)?;
                    match &comparison.with {
                        Side::Number(number) => write!(f, "{number}")?,
                        Side::Axis(axis) => f.write_str(axis)?,
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SplitMix;

    fn matches(filter: &str, values: [usize; 2]) -> bool {
        filter.parse::<SizeFilter>().expect(filter).matches(&["rows", "dim"], &values, None)
    }

    #[test]
    fn conditions_mean_what_they_say() {
        assert!(matches("dim>=1024", [1, 1024]) && !matches("dim>1024", [1, 1024]));
        assert!(matches("rows=1", [1, 1024]) && !matches("rows!=1", [1, 1024]));
        assert!(matches("dim<=1<<10&&rows<2", [1, 1024]) && !matches("dim<2^10", [1, 1024]));
        assert!(matches("rows<dim", [1, 2]) && !matches("rows==dim", [1, 2]));
        for lacking in ["depth>0", "rows<=depth"] {
            assert!(!matches(lacking, [1, 1024]), "an axis that the kernel lacks matches nothing");
        }
    }

    #[test]
    fn labels_match_labels_only() {
        let filter: SizeFilter = "small".parse().expect("a label");
        assert!(filter.matches(&["n"], &[1], Some("small")));
        assert!(!filter.matches(&["n"], &[1], None));
    }

    #[test]
    fn a_condition_is_read_as_it_is_shown() {
        let mut random = SplitMix(1);
        let names = ["n", "rows", "head_dim", "ä", "x1"];
        for _ in 0..2000 {
            let mut name = || names[random.below(names.len() as u64) as usize].to_owned();
            let (axis, other) = (name(), name());
            let operator = OPERATORS[random.below(7) as usize].1;
            let number = (random.bits() >> random.below(64)) as usize;
            let with = if random.below(2) == 0 { Side::Axis(other) } else { Side::Number(number) };
            let one = Comparison { axis, operator, with };
            let filter = SizeFilter::Where(vec![one; 1 + random.below(3) as usize]);
            assert_eq!(filter.to_string().parse(), Ok(filter.clone()), "{filter}");
        }
    }

    #[test]
    fn nonsense_is_explained() {
        for text in [
            ">=4",
            "dim>=",
            "dim>=1<<99",
            "dim=2^99",
            "dim>=-1",
            "a b>1",
            "dim>=x=1",
            "dim<x<3",
            "a&b=1",
        ] {
            let error = text.parse::<SizeFilter>().expect_err(text);
            assert!(error.contains("write for example"), "{text}: {error}");
        }
    }
}
