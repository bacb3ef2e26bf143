//! Durations on command lines.

use std::time::Duration;

/// A duration such as `2s`, `500ms` or `0.2` (seconds); none when the text is no duration, or is zero.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok()? * scale;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_milliseconds_and_longer_than_nothing() {
        for text in ["0.2s", "200ms", "0.2", "200 ms"] {
            assert_eq!(duration(text), Some(Duration::from_millis(200)), "{text}");
        }
        for text in ["0s", "-1s", "1h", "", "NaN"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
