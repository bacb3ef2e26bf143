//! From words and environment variables to values of flags.

use std::collections::HashMap;
use std::ffi::OsString;

use super::flags::{EXCLUSIVE, FLAGS, Flag, RESERVED, long, short};
use super::workers::ALLOWED;
use crate::cuda::CACHE;
use crate::environment::MACHINE;
use crate::order;
use crate::plan::nearest;
use crate::store::{HOME, READ_LIMIT};

/// Variables that are no twins of flags.
const SETTINGS: [&str; 5] = [MACHINE, CACHE, HOME, READ_LIMIT, ALLOWED];

/// What was typed, flag by flag.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    values: HashMap<&'static str, Vec<String>>,
    /// Words that are no flags.
    pub(super) filters: Vec<String>,
    /// Flags whose value comes from a variable.
    from_variables: Vec<&'static str>,
    /// Variables that look like ours and are not.
    pub(super) unknown_variables: Vec<String>,
}

impl Arguments {
    /// Parses words, then fills in from variables what they leave open.
    pub(super) fn parse(
        words: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, String> {
        let mut arguments = Arguments::default();
        let mut words = words.into_iter().map(text);
        while let Some(word) = words.next() {
            let word = word?;
            if word == "--" {
                for filter in words.by_ref() {
                    arguments.filters.push(filter?);
                }
            } else if let Some(name) = word.strip_prefix("--") {
                arguments.take_long(name, &mut words)?;
            } else if word.len() > 1 && word.starts_with('-') {
                arguments.take_short(&word, &mut words)?;
            } else {
                arguments.filters.push(word);
            }
        }
        arguments.take_variables(variables)?;
        Ok(arguments)
    }

    /// Whether a switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The values of a flag in the order in which they were typed.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The values of a flag, split at commas.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.all(name).iter().flat_map(|value| value.split(','));
        parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    }

    /// The last value of a flag, parsed; an error names the flag.
    pub(super) fn last<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let value = self.all(name).last();
        value.map(|value| parse(value).map_err(|error| self.blame(name, &error))).transpose()
    }

    /// All values of a flag, split at commas and parsed; an error names the flag.
    pub(super) fn each_of_list<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let parts = self.list(name).into_iter();
        parts.map(|part| parse(&part).map_err(|error| self.blame(name, &error))).collect()
    }

    /// An error with the place where the value was given.
    fn blame(&self, name: &str, error: &str) -> String {
        match long(name).filter(|flag| self.from_variables.contains(&flag.name)) {
            Some(flag) => format!("{}: {error}", flag.variable()),
            None => format!("--{name}: {error}"),
        }
    }

    /// All values of a flag, parsed; an error names the flag.
    pub(super) fn each<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let values = self.all(name).iter();
        values.map(|value| parse(value).map_err(|error| self.blame(name, &error))).collect()
    }

    fn take_long(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = Result<String, String>>,
    ) -> Result<(), String> {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let flag = long(name).ok_or_else(|| unknown_flag(name))?;
        match (flag.value, given) {
            (None, Some(value)) => Err(format!("--{name} takes no value, but got `{value}`")),
            (None, None) => self.put(flag, String::new()),
            (Some(_), Some(value)) => self.put(flag, value),
            (Some(value), None) => match words.next() {
                Some(word) => self.put(flag, word?),
                None => Err(format!("--{name} needs a value: --{name} {value}")),
            },
        }
    }

    fn take_short(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = Result<String, String>>,
    ) -> Result<(), String> {
        let mut letters = word.chars().skip(1);
        while let Some(letter) = letters.next() {
            let flag = short(letter).ok_or_else(|| {
                format!(
                    "there is no flag `-{letter}`; a filter that begins with a dash goes after `--`"
                )
            })?;
            if flag.value.is_none() {
                self.put(flag, String::new())?;
                continue;
            }
            let attached: String = letters.by_ref().collect();
            let value =
                if attached.is_empty() { words.next().transpose()? } else { Some(attached) };
            return match value {
                Some(value) => self.put(flag, value),
                None => Err(format!(
                    "`-{letter}` needs a value: -{letter} {}",
                    flag.value.unwrap_or_default()
                )),
            };
        }
        Ok(())
    }

    fn take_variables(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(), String> {
        let ours = variables.into_iter().filter_map(|(name, value)| {
            let is_flag = |name: &String| !SETTINGS.contains(&name.as_str());
            let is_ours = |name: &String| name.starts_with("KBENCH_") && is_flag(name);
            let name = name.into_string().ok().filter(is_ours)?;
            Some((name, value))
        });
        let is_typed = |flag: &&str| self.values.contains_key(flag);
        let excluded = EXCLUSIVE.iter().filter(|set| set.iter().any(is_typed));
        let typed: Vec<&str> =
            self.values.keys().chain(excluded.copied().flatten()).copied().collect();
        for (name, value) in ours {
            let Some(flag) = FLAGS.iter().find(|flag| flag.variable() == name) else {
                self.unknown_variables.push(name);
                continue;
            };
            let value = text(value).map_err(|error| format!("{name}: {error}"))?;
            if value.is_empty() || typed.contains(&flag.name) {
                continue;
            }
            match flag.value {
                // Several values of a flag that may be repeated are separated by semicolons.
                Some(_) => {
                    for value in value.split(';').filter(|value| !value.is_empty()) {
                        self.put(flag, value.to_owned())?;
                    }
                    self.from_variables.push(flag.name);
                }
                None => match value.as_str() {
                    "1" | "true" | "yes" | "on" => self.put(flag, String::new())?,
                    "0" | "false" | "no" | "off" => {}
                    _ => {
                        return Err(format!(
                            "{name} is a switch: set it to 1 or 0, not to `{value}`"
                        ));
                    }
                },
            }
        }
        order::sort(&mut self.unknown_variables);
        Ok(())
    }

    fn put(&mut self, flag: &'static Flag, value: String) -> Result<(), String> {
        self.values.entry(flag.name).or_default().push(value);
        Ok(())
    }
}

fn text(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("`{}` is not valid UTF-8", word.to_string_lossy()))
}

fn unknown_flag(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!(
            "--{name} is not available in this version of kbench; --help shows what is"
        );
    }
    match nearest(name, FLAGS.iter().map(|flag| flag.name)) {
        Some(near) => format!("there is no flag `--{name}`; did you mean `--{near}`?"),
        None => format!("there is no flag `--{name}`; --help shows all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str], variables: &[(&str, &str)]) -> Result<Arguments, String> {
        Arguments::parse(
            words.iter().map(OsString::from),
            variables.iter().map(|(name, value)| (name.into(), value.into())),
        )
    }

    #[test]
    fn values_come_attached_or_as_the_next_word() {
        let arguments =
            parse(&["a", "--seed=3", "--kernel", "x,y", "-qZunstable-options", "b"], &[]);
        let arguments = arguments.expect("valid");
        assert_eq!(arguments.filters, ["a", "b"]);
        assert_eq!(arguments.all("seed"), ["3"]);
        assert_eq!(arguments.list("kernel"), ["x", "y"]);
        assert!(arguments.is_on("quiet") && arguments.is_on("unstable"));
    }

    #[test]
    fn after_two_dashes_everything_is_a_filter() {
        assert_eq!(parse(&["--", "--seed", "-x"], &[]).expect("valid").filters, ["--seed", "-x"]);
    }

    #[test]
    fn a_variable_fills_in_and_a_flag_wins() {
        let variables = [("KBENCH_SEED", "7"), ("KBENCH_QUICK", "1"), ("KBENCH_THOROUGH", "0")];
        let arguments = parse(&["--seed", "5"], &variables).expect("valid");
        assert_eq!(arguments.all("seed"), ["5"]);
        assert!(arguments.is_on("quick") && !arguments.is_on("thorough"));
        assert_eq!(parse(&[], &variables).expect("valid").all("seed"), ["7"]);
        let thorough = parse(&["--thorough"], &variables).expect("valid");
        assert!(!thorough.is_on("quick"), "a typed flag beats the variable of its opposite");
    }

    #[test]
    fn every_visible_flag_has_a_twin() {
        for flag in FLAGS.iter().filter(|flag| flag.name != "help") {
            let value = if flag.value.is_some() { "x" } else { "1" };
            let arguments = parse(&[], &[(&flag.variable(), value)]).expect(flag.name);
            assert!(arguments.is_on(flag.name), "{}", flag.name);
        }
    }

    #[test]
    fn mistakes_are_named_with_the_nearest_choice() {
        let error = |words: &[&str]| parse(words, &[]).expect_err("a mistake");
        assert!(error(&["--bugdet", "3"]).contains("did you mean `--budget`?"));
        assert!(error(&["--metric"]).contains("not available in this version"));
        assert!(error(&["--seed"]).contains("needs a value"));
        assert!(error(&["--quick=3"]).contains("takes no value"));
        assert!(error(&["-x"]).contains("no flag `-x`"));
        let unknown = parse(&[], &[("KBENCH_BUGDET", "3")]).expect("only a warning");
        assert_eq!(unknown.unknown_variables, ["KBENCH_BUGDET"]);
    }
}
