//! Dates without a dependency.

/// The date of a moment in UTC, such as `2026-11-15`.
///
/// Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`: years begin in March, so that the
/// leap day is their last, and 400 of them have always the same number of days.
pub fn date(seconds_since_1970: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::date;

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
    }
}
