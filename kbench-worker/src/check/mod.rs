//! The correctness gate: no variant is timed before its results were compared with a reference.
//!
//! A variant is called twice on the same data, with its outputs poisoned by two different patterns. What still holds the
//! pattern both times was not written; what differs between the two calls is not deterministic; both results are
//! compared with the reference, which is an independent function or, without one, the kernel's own function (then the
//! base itself is reported as *unverified*).

mod after_timing;
mod awkward;
mod circumstances;
mod compare;
mod exercise;
mod gate;
mod memory;
mod patience;
mod sensitivity;
mod stage;
#[cfg(test)]
mod tests;
mod threads;

pub use after_timing::{Candidate, Repeated, Timed, plain_digest};
pub use awkward::awkward_sizes;
pub use compare::{ErrorFigures, WorstElement, default_tolerance};
pub use exercise::Expected;
pub use gate::{Gate, Tell};
pub use stage::{Bench, CheckedRow, Checks, Coverage, Standing, check_plan};

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::Fault;
use crate::value::Regime;

/// The outcome for one variant at one size.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was found; `Ok` when the variant may be timed.
    pub outcome: Result<(), Wrong>,
    /// Distance from the reference at the worst of the checked sizes, if it came to a comparison.
    pub errors: Option<ErrorFigures>,
    /// Remarks that do not make it wrong.
    pub remarks: Vec<Remark>,
    /// Why its results were not compared, or not all of them.
    pub unchecked: Option<String>,
    /// How many mistakes in its results would be noticed.
    pub mutations: Option<Mutations>,
    /// Under which circumstances it was called.
    pub coverage: Covered,
    /// Digest of data and right results at the size of the row, if two calls gave the same bits: the same digest later is the
    /// same comparison.
    pub digest: Option<u64>,
    /// The second call at the size of the row.
    pub checked_call: Option<CheckedCall>,
}

/// Mistakes that were made in the expected results, to see whether the comparison notices them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mutations {
    /// By their kind.
    pub kinds: Vec<Mistakes>,
}

/// Mistakes of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mistakes {
    /// What they are, in words.
    pub kind: String,
    /// How many there were.
    pub tried: usize,
    /// How many of them were noticed.
    pub noticed: usize,
}

/// The share of mistakes of every kind that a comparison must notice.
const LEAST_NOTICED: f64 = 0.95;

impl Mistakes {
    fn share(&self) -> f64 {
        self.noticed as f64 / self.tried.max(1) as f64
    }
}

impl Mutations {
    fn note(&mut self, kind: &str, is_noticed: bool) {
        let known = self.kinds.iter().position(|known| known.kind == kind);
        let index = known.unwrap_or_else(|| {
            self.kinds.push(Mistakes { kind: kind.to_owned(), tried: 0, noticed: 0 });
            self.kinds.len() - 1
        });
        self.kinds[index].tried += 1;
        self.kinds[index].noticed += usize::from(is_noticed);
    }

    /// The kind of which the smallest share was noticed.
    fn worst(&self) -> Option<&Mistakes> {
        self.kinds.iter().min_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// The smallest share of a kind that was noticed.
    pub fn score(&self) -> f64 {
        self.worst().map_or(1.0, Mistakes::share)
    }

    /// Whether too few of a kind were. One element among few may be near zero.
    pub fn are_missed(&self) -> bool {
        let is_missed = |of: &Mistakes| {
            let may_be_missed = if of.tried >= 6 { 2 } else { 0 };
            of.share() < LEAST_NOTICED && of.tried - of.noticed > may_be_missed
        };
        self.kinds.iter().any(is_missed)
    }
}

impl fmt::Display for Mutations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Mistakes { kind, tried, noticed }) = self.worst() else { return Ok(()) };
        write!(f, "of {tried} mistakes in the expected results ({kind}) it notices {noticed}")
    }
}

/// Under which circumstances a variant was called, besides at the size of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Covered {
    /// At how many awkward sizes, with two seeds each.
    pub sizes: usize,
    /// Regimes in which its results were compared.
    pub regimes: Vec<Regime>,
    /// Regimes in which the kernel's `inputs` or reference panicked or failed.
    pub failed: Vec<Regime>,
    /// Whether other inputs were put into the same memory.
    pub exchanged: bool,
    /// Whether it was called many times on the same inputs.
    pub repeated: bool,
    /// Whether its data was put beside guard pages.
    pub guarded: bool,
    /// The sizes of pools that it was called from.
    pub pools: Vec<usize>,
    /// Whether several threads called it at once.
    pub at_once: bool,
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if self.sizes > 0 {
            let sizes = if self.sizes == 1 { "size" } else { "sizes" };
            words.push(format!("{} awkward {sizes} with 2 seeds", self.sizes));
        }
        let names = |regimes: &[Regime]| -> String {
            regimes.iter().map(|regime| regime.name()).collect::<Vec<_>>().join(" ")
        };
        if !self.regimes.is_empty() {
            words.push(format!("regimes {}", names(&self.regimes)));
        }
        if !self.failed.is_empty() {
            words.push(format!(
                "not {}, where `inputs` or the reference fails",
                names(&self.failed)
            ));
        }
        let others = [
            (self.exchanged, "exchanged inputs"),
            (self.repeated, "repeated calls"),
            (self.guarded, "guard pages"),
            (self.at_once, "calls at once"),
        ];
        words.extend(others.into_iter().filter(|(made, _)| *made).map(|(_, of)| of.to_owned()));
        if !self.pools.is_empty() {
            let pools: Vec<String> = self.pools.iter().map(ToString::to_string).collect();
            words.push(format!("pools of {} threads", pools.join(", ")));
        }
        f.write_str(&words.join("; "))
    }
}

/// What is special about a call, besides its size and its seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// Nothing.
    #[default]
    Usual,
    /// The numbers of its inputs.
    Regime(Regime),
    /// Its data ends where a page ends, and the next one may not be touched.
    PageEnd,
    /// Its data begins where a page begins, and the one before may not be touched.
    PageStart,
    /// Other inputs were in the same memory before.
    Exchanged,
    /// It was called many times before.
    Repeated,
    /// It is called from a pool of so many threads.
    Pool(usize),
    /// So many threads call it at once.
    AtOnce(usize),
}

impl Circumstance {
    fn of(regime: Regime) -> Self {
        match regime {
            Regime::Usual => Circumstance::Usual,
            regime => Circumstance::Regime(regime),
        }
    }

    /// Whether there is nothing.
    pub fn is_usual(&self) -> bool {
        *self == Circumstance::Usual
    }
}

impl fmt::Display for Circumstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Circumstance::Usual => Ok(()),
            Circumstance::Regime(regime) => {
                write!(f, ", regime `{}`: {}", regime.name(), regime.description())
            }
            Circumstance::PageEnd => f.write_str(", its data at the end of a page"),
            Circumstance::PageStart => f.write_str(", its data at the start of a page"),
            Circumstance::Exchanged => f.write_str(", after other inputs in the same memory"),
            Circumstance::Repeated => f.write_str(", after many calls"),
            Circumstance::AtOnce(threads) => write!(f, ", called by {threads} threads at once"),
            Circumstance::Pool(1) => f.write_str(", in a pool of 1 thread"),
            Circumstance::Pool(threads) => write!(f, ", in a pool of {threads} threads"),
        }
    }
}

/// What a check sees of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedCall {
    /// Seconds that it took, with whatever else ran beside it.
    pub seconds: f64,
    /// Bytes that it returned.
    pub returned_bytes: usize,
}

impl Check {
    /// A check that ended before any comparison.
    pub(crate) fn wrong(wrong: Wrong) -> Self {
        Check { outcome: Err(wrong), ..Check::passed() }
    }

    /// A check that has found nothing.
    pub fn passed() -> Self {
        Check {
            outcome: Ok(()),
            errors: None,
            remarks: Vec::new(),
            unchecked: None,
            mutations: None,
            coverage: Covered::default(),
            digest: None,
            checked_call: None,
        }
    }

    /// Whether results were compared at the size of the row, or should be.
    pub fn is_of_size(&self) -> bool {
        !self.remarks.contains(&Remark::SmallerSize)
    }

    /// Whether the variant could not run, which is no fault of it.
    pub(crate) fn is_declined(&self) -> bool {
        self.outcome.as_ref().is_err_and(Wrong::is_declined)
    }
}

/// A remark of the gate that does not stop a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// There is no reference, so the base was compared with nothing.
    UnverifiedBase,
    /// There is no reference, and the kernel's own function cannot run here.
    NoReference,
    /// Zeros would pass as well: the data or the tolerance cannot tell right from wrong.
    WeakCheck,
    /// An input, by its position among what is only read, holds the same number throughout.
    ConstantInput(usize),
    /// Two calls on the same input gave different bits, both within the tolerance.
    NotDeterministic,
    /// It is so slow that only a part of the trials was made.
    Shortened,
    /// The kernel is so slow that it was compared at a smaller size only.
    SmallerSize,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remark::ConstantInput(position) => {
                return write!(
                    f,
                    "constant input: number {} of what is only read is the same throughout, so a variant that ignores it \
                     passes; give other `inputs`",
                    position + 1
                );
            }
            Remark::UnverifiedBase => {
                "unverified base: the kernel has no `reference`, so its own function was taken as right"
            }
            Remark::NoReference => {
                "unverified: the kernel has no `reference`, and its own function cannot run on this machine"
            }
            Remark::WeakCheck => {
                "weak check: zeros would pass too, so the check cannot tell right from wrong; give other inputs or a smaller `tolerance`"
            }
            Remark::Shortened => {
                "slow: not all awkward sizes and seeds were checked, to save time"
            }
            Remark::SmallerSize => {
                "slow: not compared with the reference at this size, but at a smaller one, to save time"
            }
            Remark::NotDeterministic => {
                "not deterministic: two calls on the same input differ in their bits, within the tolerance"
            }
        })
    }
}

/// What is wrong with a variant, and at which size.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason} (at {size}, seed {seed}{circumstance}{})", self.hint())]
pub struct Wrong {
    /// What is wrong.
    pub reason: Reason,
    /// `axis=value,axis=value`.
    pub size: String,
    /// Seed of the data.
    pub seed: u64,
    /// Who chose the size.
    pub origin: Origin,
    /// What else is special about the call.
    pub circumstance: Circumstance,
}

impl Wrong {
    /// Whether it is none, but a call that could not be made here.
    pub(crate) fn is_declined(&self) -> bool {
        matches!(self.reason, Reason::Fault(Fault::Declined(_)))
    }

    /// A kernel that breaks at a size that nobody listed may just not be defined there.
    fn hint(&self) -> &'static str {
        if !self.circumstance.is_usual() {
            return "";
        }
        match (self.origin, &self.reason) {
            (
                Origin::Awkward,
                Reason::Fault(_)
                | Reason::Definition { .. }
                | Reason::Reported { is_fault: true, .. },
            ) => {
                "; kbench chose this size: if the kernel is not defined there, say so with `valid = ...`, or decline"
            }
            _ => "",
        }
    }
}

/// Who chose the size of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The attribute lists it, or the command line.
    Listed,
    /// The gate, because kernels tend to go wrong there.
    Awkward,
}

/// What is about to be called when a variant is checked: should that be the end of the process, this is where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Whose code it is.
    pub part: Part,
    /// `axis=value,axis=value`.
    pub size: String,
    /// Seed of the data.
    pub seed: u64,
    /// Who chose the size.
    pub origin: Origin,
    /// What else is special about the call.
    #[serde(default, skip_serializing_if = "Circumstance::is_usual")]
    pub circumstance: Circumstance,
}

/// Whose code is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The kernel's `inputs` and reference, which all variants share.
    Definition,
    /// The variant's own.
    Variant,
}

impl Reason {
    /// The call that did not come back, if it is that.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        match self {
            Reason::Fault(fault) => Some(fault),
            Reason::AfterTiming(reason) => reason.fault(),
            _ => None,
        }
    }
}

/// A whole number, and the one that is expected in its place.
#[derive(Clone, Copy, Debug)]
pub struct OtherNumber {
    /// What is there.
    pub got: i128,
    /// What should be.
    pub expected: i128,
}

/// What can be wrong with a variant.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Reason {
    /// Too far from the reference.
    #[error("{errors}")]
    Inexact {
        /// By how much and where.
        errors: Box<ErrorFigures>,
    },
    /// Elements of an output keep what was there before.
    #[error(
        "{count} element(s) of `{output}` are never written, the first at index {first}; if the kernel goes on from what \
         is in `{output}`, say `in_place`"
    )]
    Unwritten {
        /// The output.
        output: String,
        /// How many.
        count: usize,
        /// Where the first is.
        first: usize,
    },
    /// NaN or infinity where the reference has none, or the other way round.
    #[error("`{output}`[{index}] is {got} where {expected} is expected")]
    NotFinite {
        /// The output.
        output: String,
        /// Where.
        index: usize,
        /// What is there.
        got: f64,
        /// What should be.
        expected: f64,
    },
    /// A whole number that is another one in digits that `f64` does not hold.
    #[error("`{output}`[{index}] is {} where {} is expected", numbers.got, numbers.expected)]
    LastDigits {
        /// The output.
        output: String,
        /// Where.
        index: usize,
        /// What is there, and what should be.
        numbers: Box<OtherNumber>,
    },
    /// Another number of outputs than the reference.
    #[error(
        "it has {got} output(s) where {expected} are expected: every variant, and the reference, must return what the \
         kernel's own function returns"
    )]
    Outputs {
        /// How many.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Another number of elements than the reference.
    #[error("`{output}` has {got} element(s) where {expected} are expected")]
    Length {
        /// The output.
        output: String,
        /// How many.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
    /// An input has other bits after the call.
    #[error("it changes an input that is not an output")]
    ChangedInput,
    /// The processor rounds otherwise than before.
    #[error(
        "it leaves the thread with another floating-point mode (rounding, or denormal numbers as zero), which changes what others \
         compute: set it back before returning"
    )]
    FloatMode,
    /// It starts threads that go on after it has returned.
    #[error(
        "it left {count} thread(s) running after {calls} call(s), which would disturb all other rows: join them, or keep them \
         in a pool"
    )]
    LeftThreads {
        /// How many.
        count: usize,
        /// After how many calls.
        calls: usize,
    },
    /// Operands share memory.
    #[error("an output shares memory with another operand: `inputs` must give each its own")]
    Aliased,
    /// Two calls on the same input differ by more than the tolerance.
    #[error("two calls on the same input differ beyond the tolerance; the second: {errors}")]
    Unstable {
        /// By how much and where.
        errors: Box<ErrorFigures>,
    },
    /// Another result after other inputs were in the same memory.
    #[error("its result depends on what was in its memory before: {reason}")]
    Remembers {
        /// What is wrong with it.
        reason: Box<Reason>,
    },
    /// The same result for other inputs in the same memory, and the right one in other memory.
    #[error(
        "its result for other inputs is not what it gives for them in other memory: it keeps what it has seen"
    )]
    GivesOldResults,
    /// Another result after many calls.
    #[error("call {call} on the same input gives another result than those before it")]
    Sporadic {
        /// Which call.
        call: usize,
    },
    /// It is much faster on data that it has seen.
    #[error(
        "a call takes {new} on new inputs and {seen} on those of the call before: it keeps answers, and would be timed \
         without its work"
    )]
    KeepsAnswers {
        /// Its time on new inputs.
        new: String,
        /// Its time on the same ones.
        seen: String,
    },
    /// The comparison does not notice mistakes.
    #[error(
        "the check is too loose: {mutations}; give a smaller `tolerance`, or inputs that tell right from wrong"
    )]
    LooseCheck {
        /// How many.
        mutations: Box<Mutations>,
    },
    /// It was right before it was timed and is not afterwards.
    #[error("right before timing but not after it: {0}")]
    AfterTiming(Box<Reason>),
    /// It panicked or returned an error.
    #[error("{0}")]
    Fault(Fault),
    /// Whatever a worker found.
    #[error("{text}")]
    Reported {
        /// In its words.
        text: String,
        /// Whether it broke, and did not just give a wrong result.
        is_fault: bool,
    },
    /// The kernel's `inputs` or reference panicked.
    #[error("{part} of the kernel {fault}")]
    Definition {
        /// `inputs`, `reference` or `work`.
        part: &'static str,
        /// How.
        fault: Fault,
    },
}
