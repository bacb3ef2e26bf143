//! What is compared with what, by whom, and under which circumstances.

use std::fmt;
use std::time::Duration;

use campaign::{Code, Task, Workload};
use serde::{Deserialize, Serialize};

/// Something that is chosen by its name on the command line.
pub(crate) trait Choice: Copy + 'static {
    /// All there is to choose from.
    const ALL: &'static [Self];

    /// As it is written.
    fn name(self) -> &'static str;
}

/// An enumeration whose members are chosen by name.
macro_rules! choice {
    ($(#[$about:meta])* $choice:ident { $($(#[$why:meta])* $member:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub(crate) enum $choice {
            $($(#[$why])* #[serde(rename = $name)] $member,)+
        }

        impl Choice for $choice {
            const ALL: &'static [Self] = &[$($choice::$member,)+];

            fn name(self) -> &'static str {
                match self {
                    $($choice::$member => $name,)+
                }
            }
        }
    };
}

choice! {
    /// Who compares.
    Tool {
        Kbench = "kbench",
        Criterion = "criterion",
        Divan = "divan",
        Tango = "tango",
    }
}

choice! {
    /// In which sense base and other are the same apart from their amounts.
    Null {
        /// Both call the very same function.
        Same = "same",
        /// The other calls a copy of the function at another address.
        Copies = "copies",
        /// Both call the very same function, in processes of their own. Tools that cannot compare within a process do
        /// so in any case: for them this is `same` once more.
        Launches = "launches",
    }
}

choice! {
    /// What else the machine does.
    Load {
        /// Nothing of ours.
        Quiet = "quiet",
        /// A process that spins in random bursts.
        Bursty = "bursty",
    }
}

impl Choice for Workload {
    const ALL: &'static [Self] = &Workload::ALL;

    fn name(self) -> &'static str {
        Workload::name(self)
    }
}

/// How much more the other does than the base, or with a minus sign the base than the other.
///
/// In hundred-thousandths of the smaller amount, so that it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub(crate) struct Effect(i64);

/// Hundred-thousandths in a percent.
const PER_PERCENT: f64 = 1000.0;

impl Effect {
    /// Of which the unit of an effect is a part.
    const WHOLE: u64 = 100_000;

    /// None.
    pub(crate) const ZERO: Effect = Effect(0);

    /// One percent, the effect at which tools are compared.
    pub(crate) const ONE_PERCENT: Effect = Effect(1000);

    /// Percents to the next hundred-thousandth.
    pub(crate) fn percent(percent: f64) -> Self {
        Effect((percent * PER_PERCENT).round() as i64)
    }

    /// Without its sign.
    pub(crate) fn size(self) -> Self {
        Effect(self.0.abs())
    }

    /// Rounds or chunks on top of an amount; none when they would not be a whole number.
    pub(crate) fn extra(self, amount: u64) -> Option<u64> {
        let parts = amount * self.0.unsigned_abs();
        parts.is_multiple_of(Effect::WHOLE).then_some(parts / Effect::WHOLE)
    }
}

impl From<f64> for Effect {
    fn from(percent: f64) -> Self {
        Effect::percent(percent)
    }
}

impl From<Effect> for f64 {
    fn from(effect: Effect) -> f64 {
        effect.0 as f64 / PER_PERCENT
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(*self))
    }
}

/// One run of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Experiment {
    /// Kind of work.
    pub(crate) workload: Workload,
    /// What else the machine does.
    pub(crate) load: Load,
    /// Who compares.
    pub(crate) tool: Tool,
    /// In which sense both are the same.
    pub(crate) null: Null,
    /// Comparisons in the run, of slightly different sizes.
    pub(crate) cells: u64,
    /// Wall time per comparison.
    #[serde(with = "seconds")]
    pub(crate) budget: Duration,
    /// In percent.
    pub(crate) effect: Effect,
}

/// Cells of one run differ by this many rounds, so that they are cells of their own and all much the same.
const STEP_BETWEEN_CELLS: u64 = 100;

/// Two tasks whose ratio is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// What is compared with.
    pub(crate) base: Task,
    /// What is compared.
    pub(crate) other: Task,
}

impl Experiment {
    /// One pair for each cell.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        (0..self.cells).map(|cell| self.pair(cell)).collect()
    }

    /// The extra is a share of the workload's own amount in all cells.
    fn pair(&self, cell: u64) -> Pair {
        let amount = self.workload.amount() + cell * STEP_BETWEEN_CELLS;
        let (base, other) = (amount + self.base_extra(), amount + self.extra());
        let code = match self.null {
            Null::Same | Null::Launches => Code::Original,
            Null::Copies => Code::Copy,
        };
        let task = |code, amount| Task { workload: self.workload, code, amount };
        Pair { base: task(Code::Original, base), other: task(code, other) }
    }

    /// What the other does on top of the cell's amount.
    pub(crate) fn extra(&self) -> u64 {
        if self.effect > Effect::ZERO { self.difference() } else { 0 }
    }

    /// What the base does on top of the cell's amount.
    pub(crate) fn base_extra(&self) -> u64 {
        if self.effect < Effect::ZERO { self.difference() } else { 0 }
    }

    /// Amounts of the cells.
    pub(crate) fn amounts(&self) -> Vec<u64> {
        self.pairs().iter().map(|pair| pair.base.amount - self.base_extra()).collect()
    }

    fn difference(&self) -> u64 {
        self.effect.extra(self.workload.amount()).expect("the plan has whole amounts only")
    }
}

impl Pair {
    /// The true logarithm of the other's time over the base's: positive where the other is slower.
    pub(crate) fn truth(&self) -> f64 {
        (self.other.amount as f64 / self.base.amount as f64).ln()
    }
}

/// Durations as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn experiment(workload: Workload, null: Null, percent: f64) -> Experiment {
        Experiment {
            workload,
            load: Load::Quiet,
            tool: Tool::Kbench,
            null,
            cells: 1,
            budget: Duration::from_secs(2),
            effect: Effect::percent(percent),
        }
    }

    fn truth(workload: Workload, percent: f64) -> f64 {
        experiment(workload, Null::Same, percent).pairs()[0].truth()
    }

    #[test]
    fn the_truth_is_the_logarithm_of_the_ratio_of_amounts() {
        for workload in Workload::ALL {
            assert_eq!(truth(workload, 0.0), 0.0);
            assert_eq!(truth(workload, 0.5), 1.005f64.ln());
            assert_eq!(truth(workload, 5.0), 1.05f64.ln());
            assert!((truth(workload, -5.0) + 1.05f64.ln()).abs() < 1e-15);
        }
    }

    #[test]
    fn an_effect_is_a_whole_number_of_rounds() {
        assert_eq!(Effect::percent(0.5).extra(100_000), Some(500));
        assert_eq!(Effect::percent(-0.5).extra(4000), Some(20));
        assert_eq!(Effect::percent(0.01).extra(4000), None);
    }

    #[test]
    fn only_the_other_of_two_copies_is_a_copy() {
        let pair = experiment(Workload::Sweep, Null::Copies, 1.0).pairs()[0];
        assert_eq!(pair.base.to_string(), "sweep/original/4000");
        assert_eq!(pair.other.to_string(), "sweep/copy/4040");
    }

    #[test]
    fn cells_of_a_run_have_sizes_and_truths_of_their_own() {
        let ten = Experiment { cells: 10, ..experiment(Workload::Chain, Null::Same, -1.0) };
        assert_eq!(ten.amounts()[0], 100_000);
        assert_eq!(ten.amounts()[9], 100_900);
        let last = ten.pairs()[9];
        assert_eq!((last.base.amount, last.other.amount), (101_900, 100_900));
    }
}
