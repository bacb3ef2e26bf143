//! What the figures of the table mean.
//!
//! * A verdict counts as it is printed. A provisional one decides nothing, and neither does a word that is not known here or
//!   a row without a verdict; all of them are *inconclusive*.
//! * **Found**: true differences of 2, 5 or 20 % that are called *faster* or *slower* with the right sign.
//! * **Within the margin**: differences of 2 % that are called *equivalent*, which is neither right nor wrong.
//! * **Called equal**: differences of 5 % that are called *equivalent*, and of 20 % that are called *equivalent* or *equal
//!   within 5 %*.
//! * **Wrong sign**: a true difference that is called the opposite.
//! * **Equal rows**: *equivalent*; *equal within 5 %* or better; inconclusive; different.
//! * **False discoveries**: of all differences that a report names, the share with a wrong sign or between equal rows; by
//!   suite. A report that names none has none; a run without rows is not counted here, but among the failed ones.
//! * **Coverage**: intervals that contain the truth.
//! * **Crossovers**: those with exactly one bracket, which holds the truth, of all that there are.
//! * **Few launches**: rows, bases too, with fewer than five launches.
//!
//! The groups *serial* and *parallel* have the rows with drawn effects. *all* has the `affine` rows as well, which belong to
//! no size of effect and not to the coverage: the time of their shortest calls is not proportional to their rounds.

use campaign::statistics::{Rate, mean, median, quantile};
use campaign::truth::Kernel;

use crate::record::{Comparison, Crossover, Record, Row};

/// A row with fewer launches is counted.
const FEW_LAUNCHES: u64 = 5;

/// The share of suites that a quantile is of.
const MOST_SUITES: f64 = 0.95;

/// Which rows are judged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Those on one thread, with drawn effects.
    Serial,
    /// Those on all threads, with drawn effects.
    Parallel,
    /// The whole report.
    All,
}

/// What a verdict claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Faster,
    Slower,
    Equivalent,
    EqualWithin5,
    Inconclusive,
}

/// The figures of one group over some suites.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// Suites, and those of them that failed.
    pub(crate) failed: Rate,
    /// Differences with the right sign, by their size: 2, 5 and 20 %.
    pub(crate) found: [Rate; 3],
    /// Differences of 2 % that are called equivalent.
    pub(crate) within_margin: Rate,
    /// Differences of 5 and 20 % that are called equal.
    pub(crate) called_equal: Rate,
    /// True differences that are called the opposite.
    pub(crate) wrong_signs: Rate,
    /// Equal rows that are called equivalent.
    pub(crate) equivalent: Rate,
    /// Equal rows that are called equal within 5 %, or equivalent.
    pub(crate) equal_within_5: Rate,
    /// Equal rows of which nothing is said.
    pub(crate) inconclusive: Rate,
    /// Equal rows that are called different.
    pub(crate) different: Rate,
    /// The mean share of false discoveries in a suite.
    pub(crate) false_discoveries: Option<f64>,
    /// The share that 95 % of the suites do not exceed.
    pub(crate) false_discoveries_95: Option<f64>,
    /// Intervals that contain the truth.
    pub(crate) coverage: Rate,
    /// Crossovers that are bracketed.
    pub(crate) crossovers: Rate,
    /// The median of wall seconds.
    pub(crate) seconds: Option<f64>,
    /// Rows with few launches.
    pub(crate) few_launches: Rate,
}

impl Group {
    /// All of them.
    pub(crate) const ALL: [Group; 3] = [Group::Serial, Group::Parallel, Group::All];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Serial => "serial",
            Group::Parallel => "parallel",
            Group::All => "all",
        }
    }

    fn has(self, row: &Row) -> bool {
        match self {
            Group::Serial => row.drawn().is_some_and(|kernel| !kernel.is_parallel()),
            Group::Parallel => row.drawn().is_some_and(Kernel::is_parallel),
            Group::All => true,
        }
    }

    /// Crossovers are of serial rows.
    fn has_crossovers(self) -> bool {
        self != Group::Parallel
    }

    fn rows(self, record: &Record) -> impl Iterator<Item = &Row> {
        record.rows.iter().filter(move |row| self.has(row))
    }

    fn comparisons(self, record: &Record) -> impl Iterator<Item = &Comparison> {
        self.rows(record).filter_map(|row| row.comparison.as_ref())
    }
}

impl Claim {
    fn of(comparison: &Comparison) -> Self {
        match comparison.verdict.as_deref() {
            Some("faster") => Claim::Faster,
            Some("slower") => Claim::Slower,
            Some("equivalent") => Claim::Equivalent,
            Some("equal within 5 %") => Claim::EqualWithin5,
            _ => Claim::Inconclusive,
        }
    }

    fn is_difference(self) -> bool {
        matches!(self, Claim::Faster | Claim::Slower)
    }

    fn is_equality(self) -> bool {
        matches!(self, Claim::Equivalent | Claim::EqualWithin5)
    }
}

impl Comparison {
    fn is_right_difference(&self) -> bool {
        match Claim::of(self) {
            Claim::Faster => self.truth > 1.0,
            Claim::Slower => self.truth < 1.0,
            Claim::Equivalent | Claim::EqualWithin5 | Claim::Inconclusive => false,
        }
    }

    fn is_wrong_difference(&self) -> bool {
        Claim::of(self).is_difference() && !self.is_right_difference()
    }

    /// Whether a difference of 5 or 20 % is called smaller than it is.
    fn is_called_equal(&self) -> bool {
        let claim = Claim::of(self);
        let is_twenty = self.effect.is_some_and(|effect| effect.abs() > 5);
        if is_twenty { claim.is_equality() } else { claim == Claim::Equivalent }
    }

    /// Whether the interval holds the truth; none without an interval.
    fn covers(&self) -> Option<bool> {
        let low = self.low?;
        Some(low <= self.truth && self.high.is_none_or(|high| self.truth <= high))
    }
}

impl Crossover {
    fn is_bracketed(&self) -> bool {
        matches!(self.brackets[..], [(below, above)] if (below..=above).contains(&self.truth))
    }
}

impl Score {
    /// Of one group in runs that belong together.
    pub(crate) fn of(group: Group, records: &[&Record]) -> Self {
        let comparisons = || records.iter().flat_map(|record| group.comparisons(record));
        let of_size = |sizes: &'static [i64]| {
            comparisons().filter(|c| c.effect.is_some_and(|effect| sizes.contains(&effect.abs())))
        };
        let claims = |is_it: fn(Claim) -> bool| Rate::of(of_size(&[0]), |c| is_it(Claim::of(c)));
        let with_rows = records.iter().filter(|record| group.comparisons(record).next().is_some());
        let shares: Vec<f64> =
            with_rows.map(|record| false_share(group.comparisons(record))).collect();
        let crossovers = records.iter().filter(|_| group.has_crossovers());
        Score {
            failed: Rate::of(records, |record| record.error.is_some()),
            found: [&[2], &[5], &[20]]
                .map(|size| Rate::of(of_size(size), |c| c.is_right_difference())),
            within_margin: Rate::of(of_size(&[2]), |c| Claim::of(c) == Claim::Equivalent),
            called_equal: Rate::of(of_size(&[5, 20]), |c| c.is_called_equal()),
            wrong_signs: Rate::of(comparisons().filter(|c| c.truth != 1.0), |c| {
                c.is_wrong_difference()
            }),
            equivalent: claims(|claim| claim == Claim::Equivalent),
            equal_within_5: claims(Claim::is_equality),
            inconclusive: claims(|claim| claim == Claim::Inconclusive),
            different: claims(Claim::is_difference),
            false_discoveries: mean(&shares),
            false_discoveries_95: quantile(shares, MOST_SUITES),
            coverage: Rate::of(
                comparisons().filter(|c| c.effect.is_some()).filter_map(Comparison::covers),
                |covers| *covers,
            ),
            crossovers: Rate::of(crossovers.flat_map(|record| &record.crossovers), |crossover| {
                crossover.is_bracketed()
            }),
            seconds: median(records.iter().map(|record| record.seconds).collect()),
            few_launches: Rate::of(records.iter().flat_map(|record| group.rows(record)), |row| {
                row.launches < FEW_LAUNCHES
            }),
        }
    }
}

/// Of the differences that are named, the share that is false; none are when none are named.
fn false_share<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> f64 {
    let named = comparisons.filter(|comparison| Claim::of(comparison).is_difference());
    Rate::of(named, |comparison| comparison.is_wrong_difference()).share().unwrap_or(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of a kernel that does so many percent more than its base, and what is said of it.
    pub(crate) fn row(kernel: &str, effect: i64, verdict: &str) -> Row {
        let truth = 100.0 / (100 + effect) as f64;
        Row {
            kernel: kernel.into(),
            id: 1,
            variant: 1,
            launches: 5,
            comparison: Some(Comparison {
                effect: Some(effect),
                truth,
                low: Some(0.99 * truth),
                high: Some(1.01 * truth),
                verdict: Some(verdict.into()),
            }),
        }
    }

    /// A run with these rows.
    pub(crate) fn record(rows: Vec<Row>) -> Record {
        Record {
            suite: 1,
            per_row: 0.2,
            flags: String::new(),
            seconds: 2.0,
            rows,
            crossovers: Vec::new(),
            error: None,
        }
    }

    fn rate(count: u64, of: u64) -> Rate {
        Rate { count, of }
    }

    fn score(group: Group, rows: Vec<Row>) -> Score {
        Score::of(group, &[&record(rows)])
    }

    #[test]
    fn a_difference_is_found_when_its_sign_is_right() {
        let found = score(
            Group::Serial,
            vec![
                row("memory", 2, "slower"),
                row("memory", -2, "slower"),
                row("arithmetic", -2, "equivalent"),
                row("arithmetic", 5, "slower"),
                row("arithmetic", 5, "provisional slower"),
                row("arithmetic", 5, "equal within 5 %"),
                row("arithmetic", -5, "equivalent"),
                row("arithmetic", -20, "faster"),
                row("arithmetic", 20, "equal within 5 %"),
                row("arithmetic", 20, "inconclusive, at most 30 %"),
                row("parallel_memory", 20, "slower"),
            ],
        );
        assert_eq!(found.found, [rate(1, 3), rate(1, 4), rate(1, 3)]);
        assert_eq!(found.wrong_signs, rate(1, 10));
        assert_eq!(found.within_margin, rate(1, 3));
        assert_eq!(found.called_equal, rate(2, 7));
        assert_eq!(found.false_discoveries, Some(0.25));
    }

    #[test]
    fn equal_rows_are_counted_by_what_is_said_of_them() {
        let words = [
            "equivalent",
            "equal within 5 %",
            "inconclusive",
            "provisional equivalent",
            "who knows",
            "faster",
        ];
        let equal = score(
            Group::Parallel,
            words.map(|word| row("parallel_arithmetic", 0, word)).into_iter().collect(),
        );
        assert_eq!(equal.equivalent, rate(1, 6));
        assert_eq!(equal.equal_within_5, rate(2, 6));
        assert_eq!(equal.inconclusive, rate(3, 6));
        assert_eq!(equal.different, rate(1, 6));
        assert_eq!((equal.wrong_signs, equal.false_discoveries), (rate(0, 0), Some(1.0)));
    }

    #[test]
    fn false_discoveries_are_shares_of_each_suite() {
        let suite = |falsely: usize, rightly: usize| {
            let mut rows = vec![row("memory", 0, "slower"); falsely];
            rows.extend(vec![row("memory", 20, "slower"); rightly]);
            rows.push(row("memory", 0, "inconclusive"));
            record(rows)
        };
        let nothing = record(Vec::new());
        let suites = [suite(1, 3), suite(0, 8), suite(0, 0), suite(1, 1), nothing];
        let score = Score::of(Group::Serial, &suites.iter().collect::<Vec<_>>());
        assert_eq!(score.false_discoveries, Some(0.75 / 4.0));
        assert_eq!(score.false_discoveries_95, Some(0.5));
    }

    #[test]
    fn intervals_cover_or_do_not_and_rows_without_one_are_not_counted() {
        let with = |low, high| {
            let mut row = row("memory", 0, "inconclusive");
            let comparison = row.comparison.as_mut().expect("a comparison");
            (comparison.low, comparison.high) = (low, high);
            row
        };
        let rows = vec![
            with(Some(0.9), Some(1.1)),
            with(Some(1.01), Some(1.1)),
            with(Some(0.9), Some(0.99)),
            with(Some(0.9), None),
            with(None, None),
        ];
        assert_eq!(score(Group::All, rows).coverage, rate(2, 4));
    }

    #[test]
    fn affine_rows_count_in_the_whole_report_alone() {
        let mut affine = row("affine", 5, "faster");
        affine.comparison.as_mut().expect("a comparison").effect = None;
        let base = Row { launches: 4, comparison: None, ..row("memory", 0, "") };
        let crossover = |brackets: &[(f64, f64)]| Crossover {
            id: 1,
            truth: 700.0,
            brackets: brackets.to_vec(),
        };
        let crossovers = vec![
            crossover(&[(640.0, 704.0)]),
            crossover(&[(704.0, 800.0)]),
            crossover(&[]),
            crossover(&[(640.0, 704.0), (900.0, 1000.0)]),
        ];
        let run = Record { crossovers, ..record(vec![affine, base]) };
        let of = |group| Score::of(group, &[&run]);
        assert_eq!(of(Group::All).wrong_signs, rate(1, 1));
        assert_eq!((of(Group::All).found[1], of(Group::All).coverage), (rate(0, 0), rate(0, 0)));
        assert_eq!(of(Group::Serial).wrong_signs, rate(0, 0));
        assert_eq!(of(Group::All).few_launches, rate(1, 2));
        assert_eq!(of(Group::Serial).few_launches, rate(1, 1));
        assert_eq!(of(Group::Serial).crossovers, rate(1, 4));
        assert_eq!(of(Group::Parallel).crossovers, rate(0, 0));
    }
}
