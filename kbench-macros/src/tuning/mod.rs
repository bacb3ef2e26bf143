//! What the tuning file `kbench.toml` says about a function on this kind of machine.
//!
//! No part of it needs the runtime: `kbench::dispatch!` takes measured thresholds in production as well.
#![cfg_attr(not(feature = "run"), allow(dead_code))] // The attribute, which reports where a value is from, is left out.

mod file;
mod machine;
mod place;

use std::env;
use std::fs;
use std::path::Path;

use file::Entry;
pub(crate) use machine::VARIABLE as MACHINE;

/// The answer for one function.
pub(crate) struct Tuning {
    /// The folder of the crate's manifest; empty when the compiler was not started by cargo.
    pub(crate) folder: String,
    /// The tuning file, if there is one.
    pub(crate) file: Option<String>,
    pub(crate) finding: Finding,
}

/// What was found.
#[derive(Debug, PartialEq)]
pub(crate) enum Finding {
    NoFile,
    NoEntry,
    /// There are entries for other kinds of machine only; this is one of them.
    Foreign {
        machine: String,
    },
    Measured(Measured),
}

/// A threshold that was measured on this kind of machine.
#[derive(Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) value: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// The date.
    pub(crate) on: String,
    /// Whether the function was another one then.
    pub(crate) is_stale: bool,
}

impl Tuning {
    /// Looks for a function of the crate that is being compiled. Who knows its code gives the hash of it.
    pub(crate) fn of(function: &str, code: Option<&str>) -> Result<Self, String> {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let Some(path) = place::find(Path::new(&folder)) else {
            return Ok(Tuning { folder, file: None, finding: Finding::NoFile });
        };
        let path = path.display().to_string();
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        let entries = file::entries(&text)
            .map_err(|mistake| format!("{path}:{}: {}", mistake.line, mistake.text))?;
        let krate = env::var("CARGO_CRATE_NAME").unwrap_or_default();
        let about = entries.iter().filter(|e| e.krate == krate && e.function == function);
        let finding = look_up(about.collect(), &machine::kind(), code)
            .map_err(|mistake| format!("{path}:{mistake}"))?;
        Ok(Tuning { folder, file: Some(path), finding })
    }

    /// The measured work.
    pub(crate) fn value(&self) -> Option<u64> {
        match &self.finding {
            Finding::Measured(measured) => Some(measured.value),
            Finding::NoFile | Finding::NoEntry | Finding::Foreign { .. } => None,
        }
    }

    /// The file whose change calls for another compilation: the tuning file, or else the manifest, which the runtime
    /// touches when it creates one.
    pub(crate) fn tracked(&self) -> Option<String> {
        let manifest = || Path::new(&self.folder).join("Cargo.toml").display().to_string();
        self.file.clone().or_else(|| (!self.folder.is_empty()).then(manifest))
    }
}

/// The finding among the entries about one function.
fn look_up(entries: Vec<&Entry>, machine: &str, code: Option<&str>) -> Result<Finding, String> {
    let mut here = entries.iter().filter(|entry| entry.machine == machine);
    let Some(first) = here.next() else {
        return Ok(match entries.first() {
            Some(other) => Finding::Foreign { machine: other.machine.clone() },
            None => Finding::NoEntry,
        });
    };
    if let Some(other) = here.find(|other| other.kernel != first.kernel) {
        return Err(format!(
            "{}: functions of two kernels, `{}` and `{}`, are both called `{}`; rename one of them, delete both tables \
             and run with --tune again",
            other.line, first.kernel, other.kernel, first.function,
        ));
    }
    let is_stale = code.is_some_and(|code| !first.code.is_empty() && first.code != code);
    Ok(Finding::Measured(Measured {
        value: first.value,
        low: first.low,
        high: first.high,
        on: first.measured.clone(),
        is_stale,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(machine: &str, kernel: &str, value: u64) -> Entry {
        Entry {
            line: 7,
            krate: "kernels".into(),
            function: "saxpy_rayon".into(),
            kernel: kernel.into(),
            machine: machine.into(),
            value,
            low: value - 1,
            high: value + 1,
            code: "00ff".into(),
            measured: "2026-11-15".into(),
        }
    }

    fn found(entries: &[Entry], code: Option<&str>) -> Result<Finding, String> {
        look_up(entries.iter().collect(), "here", code)
    }

    fn measured(value: u64, is_stale: bool) -> Finding {
        let (low, high, on) = (value - 1, value + 1, "2026-11-15".into());
        Finding::Measured(Measured { value, low, high, on, is_stale })
    }

    #[test]
    fn only_this_kind_of_machine_counts() {
        let entries = [entry("there", "saxpy", 5), entry("here", "saxpy", 7)];
        assert_eq!(found(&entries, None), Ok(measured(7, false)));
        let foreign = Finding::Foreign { machine: "there".into() };
        assert_eq!(found(&entries[..1], None), Ok(foreign));
        assert_eq!(found(&[], None), Ok(Finding::NoEntry));
    }

    #[test]
    fn a_function_that_was_changed_is_noticed_and_keeps_its_value() {
        let entries = [entry("here", "saxpy", 7)];
        assert_eq!(found(&entries, Some("00ff")), Ok(measured(7, false)));
        assert_eq!(found(&entries, Some("00fe")), Ok(measured(7, true)));
        let unknown = [Entry { code: String::new(), ..entry("here", "saxpy", 7) }];
        assert_eq!(found(&unknown, Some("00fe")), Ok(measured(7, false)));
    }

    #[test]
    fn two_kernels_with_functions_of_one_name_are_not_mixed_up() {
        let entries = [entry("here", "saxpy", 7), entry("here", "other", 7)];
        let message = found(&entries, None).expect_err("ambiguous");
        assert!(message.contains("rename one of them"), "{message}");
    }

    #[test]
    fn what_is_tracked_is_the_file_or_what_the_runtime_touches() {
        let tuning = |folder: &str, file: Option<&str>| Tuning {
            folder: folder.into(),
            file: file.map(Into::into),
            finding: Finding::NoFile,
        };
        assert_eq!(tuning("/a", Some("/kbench.toml")).tracked().as_deref(), Some("/kbench.toml"));
        assert_eq!(tuning("/a", None).tracked().as_deref(), Some("/a/Cargo.toml"));
        assert_eq!(tuning("", None).tracked(), None);
    }
}
