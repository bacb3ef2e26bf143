//! Dates without a dependency.

/// The date of a moment in UTC, such as `2026-11-15`.
///
/// Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`: years begin in March, so that the
/// leap day is their last, and 400 of them have always the same number of days.
pub(crate) fn date(seconds_since_1970: u64) -> String {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    /// From 1 March of the year 0 to 1 January 1970.
    const DAYS_BEFORE_1970: u64 = 719_468;

    let days = seconds_since_1970 / 86_400 + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Date and time of a moment in UTC, such as `2026-11-15T09-30-00Z`: it sorts by time, and is a file's name everywhere.
pub(crate) fn timestamp(seconds_since_1970: u64) -> String {
    let [hours, minutes, seconds] = clock(seconds_since_1970);
    format!("{}T{hours:02}-{minutes:02}-{seconds:02}Z", date(seconds_since_1970))
}

/// The same for people: `2026-11-15 09:30 UTC`.
pub(crate) fn date_and_time(seconds_since_1970: u64) -> String {
    let [hours, minutes, _] = clock(seconds_since_1970);
    format!("{} {hours:02}:{minutes:02} UTC", date(seconds_since_1970))
}

fn clock(seconds_since_1970: u64) -> [u64; 3] {
    let second_of_day = seconds_since_1970 % 86_400;
    [second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60]
}

#[cfg(test)]
mod tests {
    use super::{date, date_and_time, timestamp};

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date --utc --date=@SECONDS +%F` prints them.
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(86_399), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(951_868_800), "2000-03-01");
        assert_eq!(date(1_735_689_599), "2024-12-31");
        assert_eq!(date(1_794_700_800), "2026-11-15");
        assert_eq!(date(4_107_542_400), "2100-03-01");
        assert_eq!(timestamp(1_735_689_599), "2024-12-31T23-59-59Z");
        assert_eq!(date_and_time(1_735_689_599), "2024-12-31 23:59 UTC");
        assert_eq!(timestamp(86_400), "1970-01-02T00-00-00Z");
    }
}
