//! `--worker`, and the foreign workers that `kbench.toml` lists.

use super::file::nearest_file;
use crate::foreign::ForeignProgram;
use crate::plan::nearest;
use crate::settings::{self, Mistake, Setting, SettingsError};

/// The name by which none of the listed ones is wanted.
const NONE: &str = "none";

/// A foreign worker, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// None of those that are listed.
    None,
    /// One that is listed.
    Listed(String),
    /// One that is given with its command.
    Given(ForeignProgram),
}

/// What a value of the flag means.
pub(super) fn wanted(text: &str) -> Result<Wanted, String> {
    let (name, command) = match text.split_once('=') {
        Some((name, command)) => (name.trim(), Some(command)),
        None => (text.trim(), None),
    };
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("`{text}` begins with no name; write NAME or NAME=COMMAND"));
    }
    match command {
        None if name == NONE => Ok(Wanted::None),
        None => Ok(Wanted::Listed(name.to_owned())),
        Some(command) => {
            let command = words(command)?;
            if command.is_empty() {
                return Err(format!("the worker `{name}` has no command; write {name}=COMMAND"));
            }
            Ok(Wanted::Given(ForeignProgram::new(name, command)))
        }
    }
}

/// The programs that are meant: those of the file that are not kept for those who ask, and those that are named.
pub(super) fn programs(wanted: &[Wanted]) -> Result<Vec<ForeignProgram>, String> {
    let Some((path, text)) = nearest_file()? else { return chosen(wanted, Vec::new()) };
    let mut listed = listed(&text).map_err(|error| format!("`{}`: {error}", path.display()))?;
    for Listed { program, default } in &mut listed {
        program.folder = path.parent().map(ToOwned::to_owned);
        program.is_shared = *default;
    }
    chosen(wanted, listed)
}

fn chosen(wanted: &[Wanted], listed: Vec<Listed>) -> Result<Vec<ForeignProgram>, String> {
    let mut chosen: Vec<ForeignProgram> = Vec::new();
    for name in wanted {
        match name {
            Wanted::None => {}
            Wanted::Given(program) if chosen.iter().any(|known| known.name == program.name) => {
                return Err(format!(
                    "--worker: `{}` is given twice; give each a name of its own",
                    program.name
                ));
            }
            Wanted::Given(program) => chosen.push(program.clone()),
            Wanted::Listed(name) => match listed.iter().find(|l| l.program.name == *name) {
                Some(found) => chosen.push(found.program.clone()),
                None => return Err(unknown(name, &listed)),
            },
        }
    }
    let is_wanted = |listed: &Listed| listed.default && !wanted.contains(&Wanted::None);
    chosen.extend(listed.into_iter().filter(is_wanted).map(|listed| listed.program));
    let mut names: Vec<String> = Vec::new();
    chosen.retain(|program| {
        let is_new = !names.contains(&program.name);
        names.push(program.name.clone());
        is_new
    });
    Ok(chosen)
}

fn unknown(name: &str, listed: &[Listed]) -> String {
    let names: Vec<&str> = listed.iter().map(|listed| listed.program.name.as_str()).collect();
    let there = match names.as_slice() {
        [] => "and lists none".to_owned(),
        names => format!("which lists {}", names.join(", ")),
    };
    let hint = nearest(name, names).map_or_else(
        || format!("; to give its command, write --worker {name}=COMMAND"),
        |near| format!("; did you mean `{near}`?"),
    );
    format!("--worker: there is no worker `{name}` in kbench.toml, {there}{hint}")
}

/// A worker of the file.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    program: ForeignProgram,
    /// Whether it is started without being asked for.
    default: bool,
}

/// The part of the file that is about workers; the rest is for others:
///
/// ```toml
/// [[worker]]
/// name = "numpy"
/// command = ["python3", "kernels/python/numpy_variants.py"]   # in the folder of the file
/// default = false                                             # only with --worker numpy
/// ```
pub(crate) fn listed(text: &str) -> Result<Vec<Listed>, SettingsError> {
    let read = || -> Result<Vec<Listed>, Mistake> {
        match settings::tables(text)?.get("worker") {
            Some(workers) => settings::list(workers)?.iter().map(entry).collect(),
            None => Ok(Vec::new()),
        }
    };
    read().map_err(|mistake| mistake.within(text))
}

/// One table `[[worker]]`.
fn entry(setting: &Setting<'_>) -> Result<Listed, Mistake> {
    let known = ["name", "command", "default"];
    let table = settings::table(setting)?;
    if let Some(key) = table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
        return Err(settings::unknown(key, &known));
    }
    let name = name(settings::required(setting, "name")?)?;
    let command = command(settings::required(setting, "command")?)?;
    let default = table.get("default").map_or(Ok(true), settings::flag)?;
    Ok(Listed { program: ForeignProgram::new(name, command), default })
}

fn name<'t>(setting: &'t Setting<'_>) -> Result<&'t str, Mistake> {
    let name = settings::text(setting)?;
    let is_plain = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '=');
    match is_plain && name != NONE {
        true => Ok(name),
        false => Err(Mistake::at(
            setting,
            format!("`{name}` is no name for a worker: no blanks, no `=`, and not `{NONE}`"),
        )),
    }
}

fn command(setting: &Setting<'_>) -> Result<Vec<String>, Mistake> {
    match settings::list(setting)? {
        [] => Err(Mistake::at(
            setting,
            "a command has at least one word: [\"python3\", \"variants.py\"]",
        )),
        words => words.iter().map(|word| settings::text(word).map(str::to_owned)).collect(),
    }
}

/// The words of a command, with quotes and backslashes as shells have them.
fn words(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => match characters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err(format!("`{command}` ends with a backslash")),
            },
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("`{command}` has a {open} that is not closed")),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, command: &[&str]) -> ForeignProgram {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        ForeignProgram::new(name, command)
    }

    #[test]
    fn a_worker_is_named_or_given_with_its_command() {
        assert_eq!(wanted("torch"), Ok(Wanted::Listed("torch".into())));
        assert_eq!(wanted("none"), Ok(Wanted::None));
        let command = r#"mine=env A=1 "my python" it\'s 'a "b"'"#;
        let program = given("mine", &["env", "A=1", "my python", "it's", "a \"b\""]);
        assert_eq!(wanted(command), Ok(Wanted::Given(program)));
        for (text, reason) in [
            ("", "begins with no name"),
            ("=python3 x.py", "begins with no name"),
            ("mine= ", "has no command"),
            ("mine='x", "is not closed"),
            ("mine=x\\", "ends with a backslash"),
        ] {
            let error = wanted(text).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }

    const FILE: &str = "[gate]\nmemory = '10%'\n[[worker]]\nname = 'numpy'\ncommand = ['python3', 'n.py']\n\
                        [[worker]]\nname = 'torch'\ncommand = ['python3', 't.py']\ndefault = false\n";

    #[test]
    fn those_of_the_file_are_taken_unless_they_wait_to_be_asked_for() {
        let names = |wanted: &[Wanted]| -> Vec<String> {
            let chosen = chosen(wanted, listed(FILE).expect("two workers")).expect("known");
            chosen.into_iter().map(|program| program.name).collect()
        };
        let torch = Wanted::Listed("torch".into());
        assert_eq!(names(&[]), ["numpy"]);
        assert_eq!(names(std::slice::from_ref(&torch)), ["torch", "numpy"]);
        assert_eq!(names(&[Wanted::None, torch]), ["torch"]);
        let own = Wanted::Given(given("numpy", &["mine"]));
        let both = chosen(&[own], listed(FILE).expect("two workers")).expect("known");
        assert_eq!(both, [given("numpy", &["mine"])], "what is typed wins");
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let error = chosen(&[Wanted::Listed("trch".into())], listed(FILE).expect("two"));
        let error = error.expect_err("no such worker");
        assert!(
            error.contains("lists numpy, torch") && error.contains("did you mean `torch`?"),
            "{error}"
        );
        let error = chosen(&[Wanted::Listed("x".into())], Vec::new()).expect_err("no worker");
        assert!(error.contains("lists none") && error.contains("--worker x=COMMAND"), "{error}");
        for (text, reason) in [
            ("[[worker]]\nname = 'a'", "missing field `command`"),
            ("[[worker]]\nname = 'a'\ncommand = []", "at least one word"),
            ("[[worker]]\nname = 'a b'\ncommand = ['x']", "no name for a worker"),
            ("[[worker]]\nname = 'a'\ncommand = ['x']\nenv = 3", "unknown field `env`"),
            ("[[worker]]\nname = 'a'\ncommand = 'x'", "string, expected an array"),
            ("[[worker]]\nname = 'a'\ncommand = ['x', 1]", "integer, expected a string"),
            ("[[worker]]\nname = 'a'\ncommand = ['x']\ndefault = 0", "expected true or false"),
            ("[worker]\nname = 'a'\ncommand = ['x']", "table, expected an array"),
            ("worker = [3]", "integer, expected a table"),
        ] {
            let error = listed(text).expect_err(reason).to_string();
            assert!(error.contains(reason) && error.contains("line "), "{error}");
        }
    }
}
