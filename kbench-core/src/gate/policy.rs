//! What a gate lets pass: `--gate 5%`, a named policy, and the limits of `kbench.toml`.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::plan::nearest;
use crate::settings::{self, Mistake, Setting, SettingsError};

/// Memory of a call may grow by this share where nobody says otherwise.
const MEMORY: f64 = 0.20;

/// A crossover may move by this many octaves where nobody says otherwise.
const CROSSOVER: f64 = 1.0;

/// Limits, as shares of what was.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Slower by more than this: fails.
    pub time: f64,
    /// Slower by more than this: is to be explained.
    pub explain: Option<f64>,
    /// More memory than this: fails.
    pub memory: f64,
    /// Octaves by which a crossover may come later.
    pub crossover: f64,
    /// Limits of time of single kernels, by name or path.
    pub kernels: BTreeMap<String, f64>,
}

/// Why limits make no sense.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not a limit.
    #[error(
        "`{0}` is not a limit; write for example 5%, or `review` (5 % to explain, 10 % and 20 % more memory to fail)"
    )]
    Limit(String),
    /// Not a number of octaves.
    #[error("{0} is not a number of octaves; write for example 1.0")]
    Octaves(f64),
    /// The file is not what it should be; the source tells where.
    #[error("its gate cannot be read: {0}")]
    File(#[source] SettingsError),
}

impl Policy {
    /// Time alone, and what is usual for the rest.
    fn of_time(time: f64) -> Self {
        Policy {
            time,
            explain: None,
            memory: MEMORY,
            crossover: CROSSOVER,
            kernels: BTreeMap::new(),
        }
    }

    /// The limit of a kernel's time.
    pub fn time_limit(&self, kernel: &str) -> f64 {
        let own = self.kernels.get(kernel).or_else(|| self.kernels.get(name_of(kernel)));
        own.copied().unwrap_or(self.time)
    }

    /// Limits of kernels that are not among some, each with the one that may have been meant. Other programs may have limits
    /// in the same file, so that a name that resembles none is nobody's mistake.
    pub fn misspelt<'a>(&'a self, kernels: &'a [String]) -> Vec<(&'a str, &'a str)> {
        let names = || kernels.iter().flat_map(|path| [path.as_str(), name_of(path)]);
        let unknown = self.kernels.keys().filter(|limited| names().all(|name| name != *limited));
        unknown.filter_map(|limited| Some((limited.as_str(), nearest(limited, names())?))).collect()
    }

    /// The same with the limits of a file, of which only the table `gate` is read:
    ///
    /// ```toml
    /// [gate]
    /// explain = "2%"
    /// memory = "10%"
    /// crossover = 0.5          # octaves
    ///
    /// [gate.kernels]
    /// saxpy = "1%"
    /// ```
    pub fn with_file(mut self, text: &str) -> Result<Self, PolicyError> {
        match self.read(text) {
            Ok(()) => Ok(self),
            Err(mistake) => Err(PolicyError::File(mistake.within(text))),
        }
    }

    /// Takes the limits of a file. Other tables than `gate` are for others.
    fn read(&mut self, text: &str) -> Result<(), Mistake> {
        let tables = settings::tables(text)?;
        let Some(gate) = tables.get("gate") else { return Ok(()) };
        for (key, value) in settings::table(gate)? {
            match key.get_ref().as_ref() {
                "explain" => self.explain = Some(limit(value)?),
                "memory" => self.memory = limit(value)?,
                "crossover" => self.crossover = octaves(value)?,
                "kernels" => {
                    for (kernel, value) in settings::table(value)? {
                        self.kernels.insert(kernel.to_string(), limit(value)?);
                    }
                }
                _ => {
                    let known = ["explain", "memory", "crossover", "kernels"];
                    return Err(settings::unknown(key, &known));
                }
            }
        }
        Ok(())
    }
}

/// A share of the file.
fn limit(setting: &Setting<'_>) -> Result<f64, Mistake> {
    share(settings::text(setting)?).map_err(|error| Mistake::at(setting, error))
}

/// A number of octaves of the file.
fn octaves(setting: &Setting<'_>) -> Result<f64, Mistake> {
    let octaves = settings::number(setting)?;
    match octaves.is_finite() && octaves >= 0.0 {
        true => Ok(octaves),
        false => Err(Mistake::at(setting, PolicyError::Octaves(octaves))),
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        match text.trim() {
            "review" => Ok(Policy { explain: Some(0.05), ..Policy::of_time(0.10) }),
            other => share(other).map(Policy::of_time),
        }
    }
}

/// The name at the end of a kernel's path.
fn name_of(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// `5%` as a share.
fn share(text: &str) -> Result<f64, PolicyError> {
    let wrong = || PolicyError::Limit(text.to_owned());
    let number = text.trim();
    let number = number.strip_suffix('%').unwrap_or(number).trim();
    let percent: f64 = number.parse().map_err(|_| wrong())?;
    if (0.0..=1000.0).contains(&percent) { Ok(percent / 100.0) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_kernel_that_is_misspelt_is_noticed() {
        let file =
            "[gate.kernels]\nsaxpi = '1%'\nsaxpy = '1%'\n'mine::dto' = '1%'\nelsewhere = '1%'";
        let policy = "5%".parse::<Policy>().expect("a limit").with_file(file).expect("limits");
        let kernels = ["mine::saxpy", "mine::dot"].map(String::from);
        assert_eq!(policy.misspelt(&kernels), [("mine::dto", "mine::dot"), ("saxpi", "saxpy")]);
    }

    #[test]
    fn a_limit_is_a_percentage_or_a_policy() {
        let time = |text: &str| text.parse::<Policy>().expect("a limit").time;
        assert_eq!((time("5%"), time("12.5 %"), time("2")), (0.05, 0.125, 0.02));
        let review: Policy = "review".parse().expect("known");
        assert_eq!((review.explain, review.time, review.memory), (Some(0.05), 0.10, 0.20));
        for text in ["", "x", "-1%", "nan", "5%%5", "5%%", "reviews"] {
            let error = text.parse::<Policy>().expect_err(text).to_string();
            assert!(error.contains("write for example 5%"), "{error}");
        }
    }

    #[test]
    fn a_file_sets_limits_of_kernels_and_leaves_the_rest_alone() {
        let text = "format = 1\n[[threshold]]\nvalue = 3\n[gate]\nmemory = \"10%\"\ncrossover = 0.5\n\
                    [gate.kernels]\nsaxpy = \"1%\"\n\"a::b::dot\" = \"20%\"\n";
        let policy = "5%".parse::<Policy>().expect("a limit").with_file(text).expect("fine");
        assert_eq!((policy.memory, policy.crossover, policy.explain), (0.1, 0.5, None));
        let limits = ["x::saxpy", "a::b::dot", "c::dot"].map(|kernel| policy.time_limit(kernel));
        assert_eq!(limits, [0.01, 0.2, 0.05]);
        let whole = policy.clone().with_file("gate.crossover = 2").expect("fine");
        assert_eq!((whole.crossover, whole.memory), (2.0, 0.1));
        for (text, part) in [
            ("[gate]\nmemroy = \"1%\"", "memroy"),
            ("[gate]\nmemory = \"much\"", "`much` is not a limit"),
            ("[gate]\ncrossover = nan", "number of octaves"),
            ("[gate]\ncrossover = -1.0", "number of octaves"),
            ("[gate]\nmemory = 10", "integer, expected a string"),
            ("[gate]\ncrossover = 'one'", "string, expected a number"),
            ("[gate]\nkernels = ['saxpy']", "array, expected a table"),
            ("gate = '5%'", "string, expected a table"),
            ("[gate", "cannot be read"),
        ] {
            let error = policy.clone().with_file(text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.contains("at line ") && error.contains(", column "), "{error}");
        }
    }
}
