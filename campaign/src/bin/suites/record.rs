//! Raw results: one line of JSON for every run of a suite.

use campaign::truth::Kernel;
use serde::{Deserialize, Serialize};

/// One run of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The suite's number.
    pub(crate) suite: u64,
    /// Seconds of the budget for every row.
    pub(crate) per_row: f64,
    /// Further flags that kbench was given.
    pub(crate) flags: String,
    /// Wall seconds from start to exit, checks included.
    pub(crate) seconds: f64,
    /// Bases and variants.
    pub(crate) rows: Vec<Row>,
    /// Every crossover that there is.
    pub(crate) crossovers: Vec<Crossover>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The kernel's name.
    pub(crate) kernel: String,
    /// The number of its cell.
    pub(crate) id: u64,
    /// The variant's number; 0 is the base.
    pub(crate) variant: u64,
    /// Launches that measured it.
    pub(crate) launches: u64,
    /// The comparison with the base; none of the base itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comparison: Option<Comparison>,
}

/// A variant against its base: what is true, and what kbench says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The drawn difference in percent; none of `affine`, whose differences come from its crossovers.
    pub(crate) effect: Option<i64>,
    /// The true speed-up.
    pub(crate) truth: f64,
    /// Lower end of the interval of the speed-up.
    pub(crate) low: Option<f64>,
    /// Upper end; none where there is no limit.
    pub(crate) high: Option<f64>,
    /// The verdict as it is printed; none of a row that was not compared.
    pub(crate) verdict: Option<String>,
}

/// A crossover and what the search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Crossover {
    /// The number of the pair of cost models.
    pub(crate) id: u64,
    /// Where it is.
    pub(crate) truth: f64,
    /// Every bracket in which the winner changes, with both ends.
    pub(crate) brackets: Vec<(f64, f64)>,
}

impl Row {
    /// The kernel with drawn effects that it belongs to; none for `affine`.
    pub(crate) fn drawn(&self) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.name() == self.kernel)
    }
}

/// All records of a file.
pub(crate) fn read(text: &str) -> Result<Vec<Record>, String> {
    let record = |(index, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("line {}: no record of a suite: {error}", index + 1))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let comparison = Comparison {
            effect: Some(-5),
            truth: 1.0 / 0.95,
            low: Some(1.01),
            high: None,
            verdict: Some("provisional faster".into()),
        };
        let base =
            Row { kernel: "memory".into(), id: 3, variant: 0, launches: 7, comparison: None };
        let variant = Row { variant: 2, comparison: Some(comparison), ..base.clone() };
        let record = Record {
            suite: 4,
            per_row: 0.2,
            flags: "--kernel memory".into(),
            seconds: 1.5,
            rows: vec![base, variant],
            crossovers: vec![Crossover { id: 1, truth: 700.0, brackets: vec![(640.0, 704.0)] }],
            error: None,
        };
        let line = serde_json::to_string(&record).expect("JSON");
        assert_eq!(read(&format!("{line}\n\n{line}\n")), Ok(vec![record; 2]));
        assert!(read("{}").expect_err("no record").starts_with("line 1: no record of a suite"));
    }
}
