//! `--worker`, and the foreign workers that `kbench.toml` lists.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use super::file::{FILE, distrust, nearest_file, read, workspace};
use crate::foreign::ForeignProgram;
use crate::plan::nearest;
use crate::settings::{self, Mistake, Setting, SettingsError};
use crate::visible::on_one_line;

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

/// What a run starts, and what is said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) programs: Vec<ForeignProgram>,
    /// Lines about programs of the file: which are started, and which are not, and why.
    pub(super) remarks: Vec<String>,
}

/// Which workers of the file are started although `--worker` does not name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByDefault<'a> {
    /// None, as for `--list`.
    Nothing,
    /// All that have no `default = false`.
    All,
    /// Those of them that the variable allows: on a CI machine the file may be part of a stranger's change.
    Allowed(&'a [Wanted]),
}

/// The variable by which CI services are known.
const CI: &str = "CI";

/// The variable that allows workers where `CI` is set: names, or names with their commands.
pub(crate) const ALLOWED: &str = "KBENCH_ALLOWED_WORKERS";

/// The programs that are meant: those that `--worker` names, and in a run those that the file lists for every run.
pub(super) fn programs(wanted: &[Wanted], is_list: bool) -> Result<Chosen, String> {
    let path = workspace().map(|root| root.join(FILE));
    let mut file = File::default();
    // Thresholds and limits of a member may be in a file of its own.
    let elsewhere = nearest_file()?.filter(|(nearest, _)| Some(nearest) != path.as_ref());
    if let Some((path, text)) = elsewhere
        && listed(&text).is_ok_and(|listed| !listed.is_empty())
    {
        let text = "only those of a kbench.toml beside Cargo.lock are";
        file.refused = Some(format!("the workers of `{}` are not started: {text}", path.display()));
    }
    if let Some(path) = &path {
        file.read(path)?;
    }
    let allowed = match is_list || file.listed.is_empty() {
        true => None,
        false => allowed()?,
    };
    let by_default = match &allowed {
        _ if is_list => ByDefault::Nothing,
        None => ByDefault::All,
        Some(allowed) => ByDefault::Allowed(allowed),
    };
    let mut chosen = file.choose(wanted, by_default)?;
    if !is_list && !wanted.contains(&Wanted::None) {
        chosen.remarks.extend(file.refused.map(|why| format!("warning: {why}")));
    }
    Ok(chosen)
}

/// What `kbench.toml` lists.
#[derive(Debug, Default)]
struct File {
    listed: Vec<Listed>,
    /// Why workers that a file lists are not started, and what to do.
    refused: Option<String>,
}

impl File {
    fn read(&mut self, path: &Path) -> Result<(), String> {
        let text = read(path)?.unwrap_or_default();
        let listed = listed(&text).map_err(|error| format!("`{}`: {error}", path.display()))?;
        if let Some(why) = distrust(path).filter(|_| !listed.is_empty()) {
            let path = path.display();
            self.refused = Some(format!(
                "the workers of `{path}` are not started: {why}; change that, or write --worker NAME=COMMAND"
            ));
            return Ok(());
        }
        self.listed = listed;
        for Listed { program, default } in &mut self.listed {
            program.folder = path.parent().map(ToOwned::to_owned);
            program.is_shared = *default;
        }
        Ok(())
    }

    fn choose(&self, wanted: &[Wanted], by_default: ByDefault<'_>) -> Result<Chosen, String> {
        let mut chosen = Chosen::default();
        for name in wanted {
            match name {
                Wanted::None => {}
                Wanted::Given(program) if chosen.has(&program.name) => {
                    return Err(format!(
                        "--worker: `{}` is given twice; give each a name of its own",
                        program.name
                    ));
                }
                Wanted::Given(program) => chosen.programs.push(program.clone()),
                Wanted::Listed(name) if chosen.has(name) => {}
                Wanted::Listed(name) => {
                    let found = self.listed.iter().find(|listed| listed.program.name == *name);
                    chosen.start(found.ok_or_else(|| self.unknown(name))?);
                }
            }
        }
        if by_default == ByDefault::Nothing || wanted.contains(&Wanted::None) {
            return Ok(chosen);
        }
        for found in self.listed.iter().filter(|listed| listed.default) {
            let program = &found.program;
            match by_default {
                _ if chosen.has(&program.name) => {}
                ByDefault::Allowed(allowed)
                    if !allowed.iter().any(|entry| allows(entry, program)) =>
                {
                    chosen.remarks.push(format!(
                        "warning: the worker `{0}` is not started, as {CI} is set and {ALLOWED} does not allow its command \
                         `{1}`; --worker {0} starts it",
                        program.name,
                        in_words(&program.command)
                    ));
                }
                _ => chosen.start(found),
            }
        }
        Ok(chosen)
    }

    fn unknown(&self, name: &str) -> String {
        if let Some(why) = &self.refused {
            return format!("--worker: there is no worker `{name}`: {why}");
        }
        let names: Vec<&str> =
            self.listed.iter().map(|listed| listed.program.name.as_str()).collect();
        let there = match names.as_slice() {
            [] => "which lists none".to_owned(),
            names => format!("which lists {}", names.join(", ")),
        };
        let hint = nearest(name, names).map_or_else(
            || format!("; to give its command, write --worker {name}=COMMAND"),
            |near| format!("; did you mean `{near}`?"),
        );
        format!(
            "--worker: there is no worker `{name}` in the kbench.toml beside Cargo.lock, {there}{hint}"
        )
    }
}

/// What the environment allows, where it allows less than the file lists.
fn allowed() -> Result<Option<Vec<Wanted>>, String> {
    let is_on = |value: OsString| !["", "0", "false"].contains(&&*value.to_string_lossy());
    if !env::var_os(CI).is_some_and(is_on) {
        return Ok(None);
    }
    let entries = env::var(ALLOWED).unwrap_or_default();
    let entries: Result<_, String> = entries_of(&entries).into_iter().map(wanted).collect();
    entries.map(Some).map_err(|error| format!("{ALLOWED}: {error}"))
}

/// Entries, which are separated by semicolons that are not quoted, as in [`words`].
fn entries_of(text: &str) -> Vec<&str> {
    let (mut quote, mut is_escaped) = (None, false);
    let is_end = |c: char| {
        match (c, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (';', None) => return true,
            _ => {}
        }
        false
    };
    text.split(is_end).filter(|entry| !entry.trim().is_empty()).collect()
}

/// Whether an entry of the variable allows a program: by its name, or by its name and this very command.
fn allows(entry: &Wanted, program: &ForeignProgram) -> bool {
    match entry {
        Wanted::None => false,
        Wanted::Listed(name) => *name == program.name,
        Wanted::Given(allowed) => {
            allowed.name == program.name && allowed.command == program.command
        }
    }
}

impl Chosen {
    fn has(&self, name: &str) -> bool {
        self.programs.iter().any(|program| program.name == name)
    }

    /// A program of the file, which is named before it runs.
    fn start(&mut self, Listed { program, .. }: &Listed) {
        let folder = program.folder.as_deref().unwrap_or(Path::new("."));
        self.remarks.push(format!(
            "note: starting the worker `{}` in `{}`: {}",
            program.name,
            folder.display(),
            in_words(&program.command)
        ));
        self.programs.push(program.clone());
    }
}

/// A command as it would be typed.
fn in_words(command: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    on_one_line(&command.iter().map(word).collect::<Vec<_>>().join(" ")).into_owned()
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

    fn file(text: &str) -> File {
        File { listed: listed(text).expect("workers"), refused: None }
    }

    fn names(wanted: &[Wanted], by_default: ByDefault<'_>) -> Vec<String> {
        let chosen = file(FILE).choose(wanted, by_default).expect("known");
        chosen.programs.into_iter().map(|program| program.name).collect()
    }

    #[test]
    fn those_of_the_file_are_taken_unless_they_wait_to_be_asked_for() {
        let torch = Wanted::Listed("torch".into());
        assert_eq!(names(&[], ByDefault::All), ["numpy"]);
        assert_eq!(names(std::slice::from_ref(&torch), ByDefault::All), ["torch", "numpy"]);
        assert_eq!(names(&[Wanted::None, torch.clone()], ByDefault::All), ["torch"]);
        assert_eq!(names(&[torch.clone(), torch], ByDefault::Nothing), ["torch"]);
        let own = Wanted::Given(given("numpy", &["mine"]));
        let both = file(FILE).choose(&[own], ByDefault::All);
        let both = both.expect("known");
        assert_eq!(both.programs, [given("numpy", &["mine"])], "what is typed wins");
        assert_eq!(both.remarks, [""; 0], "and is known to whoever typed it");
    }

    #[test]
    fn a_list_starts_those_that_are_named_and_no_others() {
        assert_eq!(names(&[], ByDefault::Nothing), [""; 0]);
        assert_eq!(names(&[Wanted::Listed("numpy".into())], ByDefault::Nothing), ["numpy"]);
    }

    #[test]
    fn where_ci_is_set_a_command_is_allowed_by_its_name_or_as_a_whole() {
        let allowed = |entries: &[&str]| {
            let entries: Vec<Wanted> =
                entries.iter().map(|entry| wanted(entry).expect("an entry")).collect();
            names(&[], ByDefault::Allowed(&entries))
        };
        assert_eq!(allowed(&["numpy"]), ["numpy"]);
        assert_eq!(allowed(&["torch", "numpy=python3 n.py"]), ["numpy"], "torch waits to be named");
        for entries in [&[][..], &["none"], &["torch"], &["numpy=python3 evil.py"], &["numpy=n.py"]]
        {
            assert_eq!(allowed(entries), [""; 0], "{entries:?}");
        }
        let named = [Wanted::Listed("numpy".into())];
        assert_eq!(names(&named, ByDefault::Allowed(&[])), ["numpy"], "whoever names it allows it");
        let left = file(FILE).choose(&[], ByDefault::Allowed(&[])).expect("fine");
        let remark = left.remarks.join("\n");
        for part in ["warning: the worker `numpy`", "`python3 n.py`", ALLOWED, "--worker numpy"] {
            assert!(remark.contains(part), "{remark}");
        }
    }

    #[test]
    fn entries_end_at_semicolons_outside_of_quotes() {
        assert_eq!(entries_of("a;b=sh -c 'x; y';; c "), ["a", "b=sh -c 'x; y'", " c "]);
        assert_eq!(entries_of(r#"a="it's; b";c"#), [r#"a="it's; b""#, "c"]);
        assert_eq!(entries_of(r"a=sh -c 'it'\''s; b';c\;d"), [r"a=sh -c 'it'\''s; b'", r"c\;d"]);
        assert_eq!(entries_of(" ; "), [""; 0]);
    }

    #[test]
    fn a_command_of_the_file_is_named_before_it_is_started() {
        let text = "[[worker]]\nname = 'a'\ncommand = ['sh', '-c', \"echo it's\", '']";
        let chosen = file(text).choose(&[], ByDefault::All).expect("known");
        assert_eq!(
            chosen.remarks,
            [r"note: starting the worker `a` in `.`: sh -c 'echo it'\''s' ''"]
        );
        let typed = words(&in_words(&chosen.programs[0].command)).expect("a command");
        assert_eq!(typed, chosen.programs[0].command);
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let error = file(FILE).choose(&[Wanted::Listed("trch".into())], ByDefault::All);
        let error = error.expect_err("no such worker");
        assert!(
            error.contains("lists numpy, torch") && error.contains("did you mean `torch`?"),
            "{error}"
        );
        let error = File::default()
            .choose(&[Wanted::Listed("x".into())], ByDefault::All)
            .expect_err("no worker");
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
