//! Numbers as people read them: three significant digits and a unit that fits.

use crate::cuda::bytes_in_words;

/// No variant is a million times as fast as another: an end of an interval beyond this says only that too little is known.
const FURTHEST: f64 = 1e6;

/// An end of an interval that is nearer to 1 is 1 for every reader.
const NEAREST: f64 = 1e-7;

/// A half width from this many per cent on is not told apart from others.
const WIDEST: f64 = 1000.0;

/// A change as a share: `+3.0 %`, `-12 %`.
pub(crate) fn signed_percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() {
        p if p >= WIDEST => format!("{}>{WIDEST:.0} %", if percent < 0.0 { '-' } else { '+' }),
        p if p >= 9.95 => format!("{percent:+.0} %"),
        p if p >= 0.995 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.2} %"),
    }
}

/// A duration in nanoseconds: `61.2 ns`, `3.14 µs`.
pub(crate) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        n if n < 999.5 => (n, "ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", within_reason(value, digits))
}

/// A ratio of times, or an end of its interval: `1.52`, `<1e-6`.
pub(super) fn ratio(ratio: f64) -> String {
    if ratio < 1.0 / FURTHEST { "<1e-6".to_owned() } else { within_reason(ratio, digits) }
}

/// An interval of a ratio: `[0.981, 1.0004]`. An end beside 1 has as many digits as tell on which side it is.
pub(super) fn interval(low: f64, high: f64) -> String {
    let end = |end: f64| match (ratio(end), (end - 1.0).abs()) {
        (plain, distance) if plain == "1.00" && distance > NEAREST => {
            let decimals = (1.0 - distance.log10().ceil()) as usize;
            format!("{end:.decimals$}")
        }
        (plain, _) => plain,
    };
    format!("[{}, {}]", end(low), end(high))
}

/// A number as it is shown, unless it is so large that only that is shown.
pub(super) fn within_reason(value: f64, shown: impl Fn(f64) -> String) -> String {
    match value {
        v if v > FURTHEST => ">1e6".to_owned(),
        v if v < -FURTHEST => "<-1e6".to_owned(),
        v => shown(v),
    }
}

/// Three significant digits.
pub(super) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    let magnitude = value.abs();
    if magnitude > 0.0 && magnitude < 0.0095 {
        return format!("{value:.1e}");
    }
    let decimals = match magnitude {
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A half width as a share: `±0.4 %`, `±>1000 %`.
pub(super) fn half_width(value: f64, low: f64, high: f64) -> String {
    let share = 100.0 * (high - low) / (2.0 * value);
    match share {
        s if !s.is_finite() => "±?".to_owned(),
        s if s > WIDEST => format!("±>{WIDEST:.0} %"),
        s if s >= 9.5 => format!("±{s:.0} %"),
        s if s >= 0.95 => format!("±{s:.1} %"),
        s => format!("±{s:.2} %"),
    }
}

/// A relative error: `3.1e-8`, `0`.
pub(super) fn error(error: f64) -> String {
    if error == 0.0 { "0".to_owned() } else { format!("{error:.1e}") }
}

/// A share as a percentage: `0.4 %`, `12 %`.
pub(super) fn percent(share: f64) -> String {
    let shown = |p: f64| if p.abs() >= 9.95 { format!("{p:.0}") } else { format!("{p:.1}") };
    format!("{} %", within_reason(100.0 * share, shown))
}

/// A whole number as it is written in a program: `1<<16`, `46_080`.
pub(super) fn literal(value: u64) -> String {
    if value.is_power_of_two() && value >= 1024 {
        return format!("1<<{}", value.trailing_zeros());
    }
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A probability: `0.031`, `4e-7`, `<1e-12`.
pub(super) fn probability(p: f64) -> String {
    match p {
        p if p < 1e-12 => "<1e-12".to_owned(),
        p if p < 1e-3 => format!("{p:.0e}"),
        p => format!("{p:.3}"),
    }
}

/// A number of bytes: `16.8 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    bytes_in_words(bytes)
}

/// A number of seconds for progress: `42 s`, `1 min 20 s`.
pub(super) fn seconds(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    if whole < 60 {
        format!("{whole} s")
    } else {
        format!("{} min {:02} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_value() {
        assert_eq!(
            [time(0.512), time(61.24), time(999.6), time(3.14e6)],
            ["0.512 ns", "61.2 ns", "1.00 µs", "3.14 ms"]
        );
        assert_eq!(
            [digits(0.0213), digits(1.5), digits(23.45), digits(2345.0)],
            ["0.021", "1.50", "23.4", "2345"]
        );
        assert_eq!(
            [probability(0.5), probability(1e-5), probability(0.0)],
            ["0.500", "1e-5", "<1e-12"]
        );
        assert_eq!(
            [half_width(100.0, 99.0, 101.0), half_width(1.0, 0.0, f64::INFINITY)],
            ["±1.0 %", "±?"]
        );
        assert_eq!([percent(0.004), percent(0.214)], ["0.4 %", "21 %"]);
        assert_eq!([literal(65_536), literal(46_080), literal(512)], ["1<<16", "46_080", "512"]);
        assert_eq!([seconds(0.4), seconds(80.0)], ["0 s", "1 min 20 s"]);
    }

    #[test]
    fn an_end_of_an_interval_shows_its_side_of_one() {
        assert_eq!(interval(0.95, 1.02), "[0.950, 1.02]");
        assert_eq!(interval(1.0004, 1.0049), "[1.0004, 1.005]");
        assert_eq!(interval(0.99962, 1.0), "[0.9996, 1.00]");
        assert_eq!(interval(1.0 + 1e-12, f64::INFINITY), "[1.00, >1e6]");
    }

    #[test]
    fn what_is_beyond_reason_is_short() {
        assert_eq!(
            [half_width(1.0, 1e-33, 1e33), half_width(1.0, 0.5, 15.5), half_width(1.0, 0.0, 20.1)],
            ["±>1000 %", "±750 %", "±>1000 %"]
        );
        assert_eq!(
            [ratio(1e-33), ratio(0.5), ratio(4321.0), ratio(1e33)].join(" "),
            "<1e-6 0.500 4321 >1e6"
        );
        assert_eq!([percent(1e33), percent(-1e33), percent(12.0)], [">1e6 %", "<-1e6 %", "1200 %"]);
        assert_eq!([time(1e40), time(2e9)], [">1e6 s", "2.00 s"]);
    }
}
