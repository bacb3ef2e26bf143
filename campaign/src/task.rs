//! A task as text, so that it reaches a tool's executable through its environment.

use std::env;
use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::{self, chain};
use crate::sweep::{self, ring, sweep};
use crate::{COPY, ORIGINAL};

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// [`chain()`]
    Chain,
    /// [`sweep()`]
    Sweep,
}

/// Which of the functions that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The one that most tasks call.
    Original,
    /// The same at another address.
    Copy,
}

/// Some amount of work by one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What kind.
    pub workload: Workload,
    /// Which function.
    pub code: Code,
    /// Rounds or chunks.
    pub amount: u64,
}

/// Why there is no task.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TaskError {
    /// The variable is not set.
    #[error("`{0}` is not set; this program is run by `campaign`")]
    Missing(String),
    /// The text is no task.
    #[error("`{0}` is no task; one is for example `chain/original/100500`")]
    Malformed(String),
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 2] = [Workload::Chain, Workload::Sweep];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Chain => "chain",
            Workload::Sweep => "sweep",
        }
    }

    /// Rounds or chunks of the smaller task.
    pub fn amount(self) -> u64 {
        match self {
            Workload::Chain => chain::ROUNDS,
            Workload::Sweep => sweep::CHUNKS,
        }
    }
}

impl Code {
    const ALL: [Code; 2] = [Code::Original, Code::Copy];

    fn name(self) -> &'static str {
        match self {
            Code::Original => "original",
            Code::Copy => "copy",
        }
    }
}

impl Task {
    /// The task that a variable of the environment names; what it needs is made ready.
    pub fn from_environment(variable: &str) -> Result<Self, TaskError> {
        let text = env::var(variable).map_err(|_| TaskError::Missing(variable.to_owned()))?;
        let task: Task = text.parse()?;
        if task.workload == Workload::Sweep {
            ring();
        }
        Ok(task)
    }

    /// Does it.
    #[inline]
    pub fn run(self) {
        match (self.workload, self.code) {
            (Workload::Chain, Code::Original) => keep(chain::<ORIGINAL>(self.amount)),
            (Workload::Chain, Code::Copy) => keep(chain::<COPY>(self.amount)),
            (Workload::Sweep, Code::Original) => keep(sweep::<ORIGINAL>(ring(), self.amount)),
            (Workload::Sweep, Code::Copy) => keep(sweep::<COPY>(ring(), self.amount)),
        }
    }
}

/// Makes a result look needed.
#[inline]
fn keep<T>(result: T) {
    black_box(result);
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.workload.name(), self.code.name(), self.amount)
    }
}

impl FromStr for Task {
    type Err = TaskError;

    fn from_str(text: &str) -> Result<Self, TaskError> {
        let task = |text: &str| {
            let (workload, rest) = text.split_once('/')?;
            let (code, amount) = rest.split_once('/')?;
            Some(Task {
                workload: Workload::ALL.into_iter().find(|known| known.name() == workload)?,
                code: Code::ALL.into_iter().find(|known| known.name() == code)?,
                amount: amount.parse().ok()?,
            })
        };
        task(text).ok_or_else(|| TaskError::Malformed(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_survives_its_journey_as_text() {
        for workload in Workload::ALL {
            for code in Code::ALL {
                let task = Task { workload, code, amount: 100_500 };
                assert_eq!(task.to_string().parse(), Ok(task));
            }
        }
        assert!("chain/original".parse::<Task>().is_err());
        assert!("chain/original/many".parse::<Task>().is_err());
    }
}
