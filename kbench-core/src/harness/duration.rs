use std::time::Duration;

/// Nobody waits for longer, and no clock has to be afraid of it.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration: `60s`, `500ms`, `1.5m`, `2h`, or a plain number of seconds.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration; write for example 60s, 500ms, 2m or a number of seconds"
        )
    };
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let scale = match unit {
        "" | "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * scale) {
        Ok(duration) if duration > LONGEST => {
            Err(format!("`{text}` is too long; the longest is a year, 8760h"))
        }
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SplitMix;

    #[test]
    fn durations_as_people_write_them() {
        for (text, milliseconds) in
            [("60s", 60_000), ("500ms", 500), ("2m", 120_000), ("1.5", 1500), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "-1s", "0", "5 fortnights", "nan", "inf", "1e300h"] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("write for example 60s"), "{error}");
        }
        let error = parse("8761h").expect_err("too long");
        assert!(error.contains("the longest is a year, 8760h"), "{error}");
    }

    #[test]
    fn a_duration_is_read_as_it_is_written() {
        let mut random = SplitMix(1);
        for _ in 0..1000 {
            let duration = Duration::from_micros(1 + random.below(1 << 40));
            let (micros, seconds) = (duration.as_micros(), duration.as_secs_f64());
            for text in [format!("{micros}us"), format!("{seconds}s"), format!("{seconds}")] {
                let read = parse(&text).expect(&text);
                assert!(read.abs_diff(duration) < Duration::from_micros(1), "{text}: {read:?}");
            }
        }
    }
}
