//! Registry entries: constants that say everything about a kernel and its variants that is known without running it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Definition, Implementation, guard};

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// As given by `file!()`.
    pub file: &'static str,
    /// Line of the attribute.
    pub line: u32,
    /// Column of the attribute.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// An operation for one element type.
pub struct KernelEntry {
    /// The kernel's name.
    pub name: &'static str,
    /// The element type's name, or the generic arguments of this instance.
    pub element: &'static str,
    /// Position of the element type in `types = [...]`.
    pub element_index: usize,
    /// The module of the annotated function.
    pub module: &'static str,
    /// Where the attribute stands.
    pub location: Location,
    /// Names of the axes.
    pub axes: &'static [&'static str],
    /// The sizes to measure.
    pub sizes: Sizes,
    /// Names of all parameters that carry data.
    pub parameters: &'static [&'static str],
    /// Names of the outputs: the `&mut` parameters, then the return value.
    pub outputs: &'static [&'static str],
    /// Whether outputs are also inputs.
    pub in_place: InPlace,
    /// Relative tolerance, when the attribute sets it.
    pub tolerance: Option<f64>,
    /// The reference's path, when there is one.
    pub reference: Option<&'static str>,
    /// The regimes in which it is checked; the automatic ones when absent.
    pub regimes: Option<Regimes>,
    /// The kernel's user code behind a type-erased door.
    pub definition: &'static dyn Definition,
}

impl KernelEntry {
    /// `module::path::kernel`.
    pub fn path(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    /// What parts of `&mut` parameters are called, which are known as `.0.field`.
    pub(crate) fn names_of_written(&self, fields: &[String]) -> Vec<String> {
        let name = |field: &String| {
            let field = field.trim_start_matches('.');
            let (place, below) = field.split_at(field.find('.').unwrap_or(field.len()));
            let output = place.parse().ok().and_then(|place: usize| self.outputs.get(place));
            format!("{}{below}", output.unwrap_or(&"output"))
        };
        fields.iter().map(name).collect()
    }

    /// What parts of the return value are called, which are known as `.field`.
    pub(crate) fn names_of_returned(&self, fields: &[String]) -> Vec<String> {
        let output = self.outputs.last().unwrap_or(&"output");
        fields.iter().map(|field| format!("{output}{field}")).collect()
    }
}

/// Regimes that an author has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Regimes {
    /// Their names.
    pub names: &'static [&'static str],
    /// Why the others are left out.
    pub reason: &'static str,
}

/// One implementation of a kernel, for one element type.
pub struct VariantEntry {
    /// The kernel that it implements.
    pub kernel: &'static KernelEntry,
    /// The variant's name.
    pub name: &'static str,
    /// Whether this is the kernel's own function, the base of comparisons.
    pub is_base: bool,
    /// The module of the annotated function.
    pub module: &'static str,
    /// The annotated function's name, by which the tuning file knows the variant.
    pub function: &'static str,
    /// A hash of the function's signature and body, so that a threshold measured for other code is noticed.
    pub code: &'static str,
    /// Where the attribute stands.
    pub location: Location,
    /// Where it runs.
    pub backend: Backend,
    /// From where on its author claims that it beats the base.
    pub threshold: Option<Threshold>,
    /// Sizes at which this variant is defined, when they are not all of the kernel's.
    pub valid: Option<Condition>,
    /// Performance targets.
    pub expectations: &'static [Expectation],
    /// Why it is left out unless asked for.
    pub ignore: Option<&'static str>,
    /// Relative tolerance of this variant alone.
    pub tolerance: Option<f64>,
    /// Floating-point operations of this variant alone.
    pub flops: Option<fn(&[usize]) -> f64>,
    /// Bytes moved by this variant alone.
    pub bytes: Option<fn(&[usize]) -> f64>,
    /// Whether its crate was compiled with debug assertions.
    pub debug_assertions: bool,
    /// Whether it takes every output as a slice or an array of numbers, so that it cannot make one longer.
    pub has_fixed_outputs: bool,
    /// Whether its author says that several threads may call it at once.
    pub is_reentrant: bool,
    /// How to call it.
    pub implementation: Implementation,
}

inventory::collect!(VariantEntry);

/// Where a variant runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// On the calling thread.
    Serial,
    /// On a rayon pool.
    Parallel,
    /// On a CUDA device.
    Cuda,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 3] = [Backend::Serial, Backend::Parallel, Backend::Cuda];

    /// The name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Serial => "serial",
            Backend::Parallel => "parallel",
            Backend::Cuda => "cuda",
        }
    }
}

/// Whether a kernel's outputs are also its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Outputs are only written.
    No,
    /// Every call needs fresh data.
    Fresh,
    /// A call on the last result is as good.
    Reuse,
}

/// The sizes that an attribute lists.
pub enum Sizes {
    /// Every combination of the values of the axes.
    Grid(&'static [Values]),
    /// Shapes with labels.
    Labelled(&'static [(&'static str, &'static [usize])]),
}

/// The values of one axis.
pub enum Values {
    /// As listed.
    List(&'static [usize]),
    /// 2^from ..= 2^to.
    PowersOfTwo {
        /// First exponent.
        from: u32,
        /// Last exponent.
        to: u32,
    },
}

/// A condition on the axes, with the text it was written in.
#[derive(Clone, Copy)]
pub struct Condition {
    /// As written.
    pub text: &'static str,
    /// Whether it holds at a size.
    pub holds: fn(&[usize]) -> bool,
}

impl Condition {
    /// Whether it holds at a size; one that panics there does not.
    pub fn guarded(&self, size: &[usize]) -> bool {
        guard(|| (self.holds)(size)).unwrap_or(false)
    }
}

/// From where on a variant is claimed to beat the base.
#[derive(Clone, Copy)]
pub enum Threshold {
    /// From this amount of work on.
    Work(u64),
    /// Where a condition on the axes holds.
    When(Condition),
    /// From this amount of work on, as measured on this kind of machine.
    Tuned(Tuned),
}

impl Threshold {
    /// Whether a size, which has this amount of work, is on the variant's side.
    pub fn holds(&self, work: f64, size: &[usize]) -> bool {
        match self {
            Threshold::Work(from) => work >= *from as f64,
            Threshold::When(condition) => condition.guarded(size),
            Threshold::Tuned(tuned) => work >= tuned.work as f64,
        }
    }

    /// Whether it is made at no size at all.
    pub fn is_never(&self) -> bool {
        matches!(self, Threshold::Tuned(tuned) if tuned.work == Tuned::NEVER)
    }

    /// What is doubtful about where it comes from, in words.
    pub fn doubt(&self) -> Option<String> {
        let Threshold::Tuned(Tuned { default, source, .. }) = self else { return None };
        match source {
            TuningSource::NoFile | TuningSource::NoEntry | TuningSource::Measured { .. } => None,
            TuningSource::Foreign { machine } => Some(format!(
                "its threshold is the default {default}: kbench.toml knows it for another machine \
                 only ({machine}); --tune adds this one"
            )),
            TuningSource::Stale { on } => Some(format!(
                "its threshold was tuned on {on}, and its code has changed since; run --tune again"
            )),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold::Work(work) => write!(f, "{work}"),
            Threshold::When(condition) => f.write_str(condition.text),
            Threshold::Tuned(Tuned { work, source, .. }) => match source {
                TuningSource::Measured { on, .. } | TuningSource::Stale { on } => match *work {
                    Tuned::NEVER => write!(f, "never (tuned {on})"),
                    work => write!(f, "{work} (tuned {on})"),
                },
                _ => write!(f, "{work} (default)"),
            },
        }
    }
}

/// A threshold that the tuning file may set: `threshold = tuned(1 << 16)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// The amount of work that holds: the measured one, or else the default.
    pub work: u64,
    /// The amount of work in the attribute.
    pub default: u64,
    /// Where the work comes from.
    pub source: TuningSource,
    /// The folder of the crate's manifest.
    pub folder: &'static str,
    /// The tuning file that was read when the crate was compiled.
    pub file: Option<&'static str>,
}

impl Tuned {
    /// The work of a variant that was never seen to win: the largest number that the file can hold.
    pub const NEVER: u64 = i64::MAX as u64;
}

/// What the tuning file said about a variant when its crate was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningSource {
    /// There was no tuning file: the default holds.
    NoFile,
    /// The file has nothing about the variant's function: the default holds.
    NoEntry,
    /// The function was measured, but only on other kinds of machine: the default holds.
    Foreign {
        /// One of those.
        machine: &'static str,
    },
    /// Measured on this kind of machine.
    Measured {
        /// The date.
        on: &'static str,
        /// Lower end of the crossover.
        low: u64,
        /// Upper end of the crossover.
        high: u64,
    },
    /// Measured on this kind of machine, before the function was changed. The measured work holds all the same: it is
    /// the better guess.
    Stale {
        /// The date.
        on: &'static str,
    },
}

/// A performance target of a variant.
#[derive(Clone, Copy)]
pub struct Expectation {
    /// As written.
    pub text: &'static str,
    /// What is judged.
    pub metric: Metric,
    /// From which side.
    pub bound: Bound,
    /// The limit: a ratio, a share, or seconds.
    pub value: f64,
    /// At which sizes; all when absent.
    pub at: Option<Condition>,
}

/// What an expectation judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Speed-up over the base.
    Speedup,
    /// Time of the best other variant of the cell over its own.
    Best,
    /// Share of the binding ceiling.
    Ceiling,
    /// Time of one call.
    Time,
}

/// The side on which a target lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `>=` or `>`.
    AtLeast,
    /// `<=` or `<`.
    AtMost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_holds_from_its_work_on_or_where_its_condition_does() {
        let condition = Condition { text: "rows > 2", holds: |size| size[0] > 2 };
        let tuned = Tuned {
            work: 100,
            default: 10,
            source: TuningSource::Stale { on: "2026-11-15" },
            folder: "/demo",
            file: Some("/demo/kbench.toml"),
        };
        let texts = ["100", "100 (tuned 2026-11-15)"];
        for (threshold, text) in [Threshold::Work(100), Threshold::Tuned(tuned)].iter().zip(texts) {
            assert_eq!([99.0, 100.0].map(|work| threshold.holds(work, &[1])), [false, true]);
            assert_eq!(threshold.to_string(), text);
        }
        let threshold = Threshold::When(condition);
        assert_eq!([2, 3].map(|rows| threshold.holds(0.0, &[rows])), [false, true]);
        assert_eq!(threshold.to_string(), "rows > 2");
    }

    #[test]
    fn figures_of_another_machine_and_of_former_code_are_noticed() {
        let from = |source| {
            let tuned = Tuned { work: 10, default: 10, source, folder: "/demo", file: None };
            Threshold::Tuned(tuned).doubt()
        };
        let foreign = from(TuningSource::Foreign { machine: "abacus, 1 core" });
        assert!(foreign.is_some_and(|doubt| doubt.contains("abacus") && doubt.contains("--tune")));
        let stale = from(TuningSource::Stale { on: "2026-01-01" });
        assert!(
            stale.is_some_and(|doubt| doubt.contains("2026-01-01") && doubt.contains("--tune"))
        );
        assert_eq!(from(TuningSource::NoFile), None);
        assert_eq!(Threshold::Work(10).doubt(), None);
    }

    #[test]
    fn a_variant_that_never_wins_is_claimed_to_win_nowhere() {
        let source = TuningSource::Measured { on: "2026-01-01", low: 9, high: Tuned::NEVER };
        let tuned = Tuned { work: Tuned::NEVER, default: 10, source, folder: "/demo", file: None };
        let never = Threshold::Tuned(tuned);
        assert!(never.is_never() && !never.holds(1e18, &[1]) && !Threshold::Work(10).is_never());
        assert_eq!(never.to_string(), "never (tuned 2026-01-01)");
    }
}
