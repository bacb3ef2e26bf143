//! Raw results: one line of JSON for every comparison.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::experiment::Experiment;
use crate::tool::{Answer, Verdict};

/// One comparison and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// When it began, in seconds since 1970.
    pub(crate) started: f64,
    /// Which round it belongs to.
    pub(crate) round: u32,
    /// Seed of the run.
    pub(crate) seed: u64,
    /// What was compared.
    #[serde(flatten)]
    pub(crate) experiment: Experiment,
    /// Load average of the last minute, before it began.
    pub(crate) loadavg: Option<f64>,
    /// Processors that others used meanwhile.
    pub(crate) foreign: Option<f64>,
    /// Processors that a hypervisor kept for itself meanwhile.
    pub(crate) stolen: Option<f64>,
    /// Wall seconds; of a run of several cells, this one's share.
    pub(crate) wall: f64,
    /// Logarithm of the other's amount over the base's.
    pub(crate) truth: f64,
    /// The same of their times, says the tool.
    pub(crate) estimate: Option<f64>,
    /// Lower end of its interval.
    pub(crate) low: Option<f64>,
    /// Upper end.
    pub(crate) high: Option<f64>,
    /// What the tool concludes.
    pub(crate) verdict: Verdict,
    /// Why there is no answer.
    pub(crate) error: Option<String>,
}

impl Record {
    /// Whether others used at most so much of a processor; where the system does not tell, nobody is accused.
    pub(crate) fn is_undisturbed(&self, most: f64) -> bool {
        self.foreign.is_none_or(|foreign| foreign <= most)
    }

    /// With the answer of the tool, or the reason why there is none.
    pub(crate) fn answered(self, answer: Result<Answer, String>) -> Self {
        match answer {
            Ok(answer) => Record {
                estimate: Some(answer.estimate),
                low: answer.interval.map(|interval| interval.low),
                high: answer.interval.map(|interval| interval.high),
                verdict: answer.verdict,
                ..self
            },
            Err(error) => Record { verdict: Verdict::Error, error: Some(error), ..self },
        }
    }
}

/// What can go wrong with a file of records.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// It cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line is no record.
    #[error("{}:{line}: no record of a campaign: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From one.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A file to which records are appended, each at once: whatever happens, nothing measured is lost.
pub(crate) struct Records {
    path: PathBuf,
    file: File,
}

impl Records {
    /// Opens a file, old or new.
    pub(crate) fn append_to(path: &Path) -> Result<Self, RecordError> {
        let path = path.to_owned();
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Ok(Records { path, file }),
            Err(source) => Err(RecordError::File { path, source }),
        }
    }

    /// Writes one line.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), RecordError> {
        let line = serde_json::to_string(record).map_err(io::Error::from);
        line.and_then(|line| self.file.write_all((line + "\n").as_bytes()))
            .map_err(|source| RecordError::File { path: self.path.clone(), source })
    }
}

/// All records of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>, RecordError> {
    let text = fs::read_to_string(path)
        .map_err(|source| RecordError::File { path: path.to_owned(), source })?;
    let record = |(index, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|source| RecordError::Line {
            path: path.to_owned(),
            line: index + 1,
            source,
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(record).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use campaign::Workload;

    use super::*;
    use crate::experiment::Null;
    use crate::experiment::tests::experiment;

    /// A record of kbench, chain, same, without an answer.
    pub(crate) fn record(percent: f64) -> Record {
        let experiment = experiment(Workload::Chain, Null::Same, percent);
        Record {
            started: 1e9,
            round: 1,
            seed: 7,
            experiment,
            loadavg: Some(0.5),
            foreign: Some(0.25),
            stolen: None,
            wall: 2.0,
            truth: experiment.pairs()[0].truth(),
            estimate: None,
            low: None,
            high: None,
            verdict: Verdict::Inconclusive,
            error: None,
        }
    }

    #[test]
    fn only_others_disturb() {
        assert!(record(0.0).is_undisturbed(0.25) && !record(0.0).is_undisturbed(0.2));
        assert!(Record { foreign: None, ..record(0.0) }.is_undisturbed(0.0));
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("campaign-record-{}", std::process::id()));
        let mut records = Records::append_to(&path).expect("writable");
        let failed = record(-0.5).answered(Err("no luck".to_owned()));
        let written = [record(0.5), failed];
        written.iter().for_each(|record| records.write(record).expect("writable"));
        let text = fs::read_to_string(&path).expect("readable");
        assert!(text.contains(r#""effect":-0.5"#) && text.contains(r#""budget":2.0"#), "{text}");
        assert_eq!(read(&path).expect("records"), written);
        fs::write(&path, "{}\n").expect("writable");
        assert!(read(&path).expect_err("no record").to_string().contains(":1: no record"));
        fs::remove_file(&path).expect("removable");
    }
}
