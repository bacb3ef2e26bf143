//! Text on the page: whatever somebody else wrote passes through [`escape`].

use super::super::kernel_table::bare_size;
use super::super::{RowReport, units};
use crate::visible::is_obeyed;

/// Text that stays text: in an element, in a quoted attribute, in an SVG. Characters that HTML does not allow, and
/// those that turn the direction of writing, are shown as missing.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            '\n' | '\t' => safe.push(character),
            c if is_obeyed(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A name among other text: its writing direction is its own affair.
pub(super) fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(text))
}

/// The first characters of a text that has to fit, for places that cannot wrap.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// `matmul` of `kernels::matmul::single::matmul`.
pub(super) fn last_segment(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// A variant beside the name of its kernel: `rayon` for `saxpy_rayon`.
pub(super) fn short_variant<'a>(kernel: &str, variant: &'a str) -> &'a str {
    let rest = variant.strip_prefix(last_segment(kernel)).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(variant)
}

/// The size of a row where there is little room: its label, or its numbers.
pub(super) fn short_size(row: &RowReport) -> String {
    row.label.clone().unwrap_or_else(|| match row.axes.values().collect::<Vec<_>>().as_slice() {
        [value] => amount(**value as f64),
        _ => bare_size(&row.size),
    })
}

/// A row's variant with what tells it from others of the same variant.
pub(super) fn variant(row: &RowReport) -> String {
    let threads = match (row.backend.as_str(), row.threads) {
        ("parallel", 1) => ", 1 thread".to_owned(),
        ("parallel", threads) => format!(", {threads} threads"),
        _ => String::new(),
    };
    let mode = if row.mode == "warm" { String::new() } else { format!(", {}", row.mode) };
    format!("{}{threads}{mode}", row.variant)
}

/// A power of two as such, anything else with a unit: `2²⁰`, `1.5 M`.
pub(super) fn amount(value: f64) -> String {
    let power = value.log2();
    match value {
        v if v >= 1024.0 && power.fract() == 0.0 => format!("2{}", raised(power as i32)),
        v if v < 1000.0 => units::digits(v).trim_end_matches(".00").trim_end_matches(".0").into(),
        v => scaled(v, ""),
    }
}

/// A number of something with the prefix that fits: `12.3 GFLOP/s`.
pub(super) fn scaled(value: f64, unit: &str) -> String {
    let steps = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = steps.iter().find(|(size, _)| value.abs() >= 0.9995 * size);
    let (size, prefix) = found.copied().unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", units::digits(value / size)).trim_end().to_owned()
}

/// A round number beside an axis: `0.1`, `10 G`.
pub(super) fn tick(value: f64) -> String {
    trimmed(&scaled(value, ""))
}

/// A round time beside an axis: `10 µs`.
pub(super) fn time_tick(nanoseconds: f64) -> String {
    trimmed(&units::time(nanoseconds))
}

/// A number with its unit, without zeros at its end that say nothing.
fn trimmed(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number = match number.contains('.') && !number.contains('e') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// A whole number as an exponent.
pub(super) fn raised(exponent: i32) -> String {
    let digit = |character: char| match character {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32('⁰' as u32 + other as u32 - '0' as u32).unwrap_or(other),
    };
    exponent.to_string().chars().map(digit).collect()
}

/// A whole number in groups of three: `1,837`.
pub(super) fn grouped(value: usize) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 row`, `2 rows`.
pub(super) fn count(value: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(value), if value == 1 { one } else { many })
}

/// A figure with its interval: `1.52× [1.40, 1.66]`.
pub(super) fn speedup(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let shown = units::ratio(value);
    match low.zip(high) {
        Some((low, high)) => {
            format!("{shown}× {}", units::interval(low, high))
        }
        None => format!("{shown}×"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_text() {
        let hostile = "</title><script>alert(\"1\")</script> & 'x' 🦀 \u{202e}\0";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\0', '\u{202e}']), "{safe}");
        assert!(safe.contains("&amp;") && safe.contains("🦀"), "{safe}");
        assert_eq!(escape("rows=64,dim=1024"), "rows=64,dim=1024");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([amount(1_048_576.0), amount(1_500_000.0)], ["2²⁰", "1.50 M"]);
        assert_eq!([amount(7.0), amount(512.0), amount(99.0)], ["7", "512", "99"]);
        assert_eq!(scaled(12.3e9, "FLOP/s"), "12.3 GFLOP/s");
        assert_eq!([1e4, 2.5e6].map(time_tick), ["10 µs", "2.5 ms"]);
        assert_eq!([0.1, 1.0, 16.0, 1e10, 2.5e3].map(tick), ["0.1", "1", "16", "10 G", "2.5 k"]);
        assert_eq!([raised(-3), raised(10), grouped(1_234_567)], ["⁻³", "¹⁰", "1,234,567"]);
    }

    #[test]
    fn a_variant_beside_its_kernel_is_not_named_twice() {
        assert_eq!(short_variant("demo::saxpy", "saxpy_rayon"), "rayon");
        assert_eq!(short_variant("demo::saxpy", "saxpy"), "saxpy");
        assert_eq!(short_variant("demo::saxpy", "saxpy_"), "saxpy_");
    }
}
