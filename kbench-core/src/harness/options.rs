//! From values of flags to what the run does.

use std::ffi::OsString;
use std::path::PathBuf;

use super::against::Foreign;
use super::arguments::Arguments;
use super::duration;
use super::file::nearest_file;
use super::flags::FLAGS;
use super::keep::USUAL_RUNS;
use super::output::{Export, has_folder};
use super::selected::selection;
use super::values::{at_least, folder, one_of, whole};
use super::workers::{self, Wanted};
use crate::Configuration;
use crate::crossover::Search;
use crate::gate::{Policy, PolicyError};
use crate::infer::{ErrorRate, Rules};
use crate::kernel;
use crate::measure::{Budget, Effort, Isolation};
use crate::plan::{Ignored, nearest};
use crate::report::{Style, TestFormat};
use crate::store::check_name;
use crate::value::Regime;
use crate::worker::{DeviceRequest, USUAL_TIMEOUT};
use crate::{DEFAULT_SEED, Workers};

/// What a program does when the command line does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultMode {
    /// Check only, as cargo expects of a bench target that is run by `cargo test`.
    Test,
    /// Measure, as people expect of a program that they start themselves.
    Measure,
    /// The same; where there is no device and no rows are named, element types after the first have one size.
    MeasureBriefly,
}

/// What the run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Test,
    Measure,
    Profile,
    List,
    ListKernels,
    ListSizes,
    ListBaselines,
    Load,
    Merge,
    History,
    Help,
    Version,
}

impl Mode {
    /// Whether it is about runs that are kept, and starts nothing.
    pub(super) fn is_about_kept_runs(self) -> bool {
        matches!(self, Mode::ListBaselines | Mode::Load | Mode::Merge | Mode::History)
    }
}

/// Everything the command line says.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    /// The package that the program is of.
    pub(super) package: Option<&'static str>,
    pub(super) configuration: Configuration,
    pub(super) workers: Vec<Wanted>,
    pub(super) format: TestFormat,
    pub(super) style: Style,
    pub(super) quiet: bool,
    pub(super) exports: Vec<Export>,
    pub(super) gate: Option<Policy>,
    pub(super) tune: bool,
    pub(super) plot: bool,
    pub(super) page: bool,
    pub(super) summary: Option<PathBuf>,
    pub(super) keep: usize,
    pub(super) save_baseline: Option<String>,
    pub(super) baseline: Option<String>,
    pub(super) foreign: Foreign,
    pub(super) load_baseline: Option<String>,
    pub(super) merge: Vec<PathBuf>,
    pub(super) warnings: Vec<String>,
}

impl Options {
    /// Reads words and environment variables.
    pub(super) fn read(
        words: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        default: DefaultMode,
        workers: Workers,
    ) -> Result<Self, String> {
        let arguments = Arguments::parse(words, variables)?;
        let quiet = arguments.is_on("quiet");
        let tune = arguments.is_on("tune");
        contradictions(&arguments)?;
        let gate = arguments.last("gate", policy)?;
        let selection = selection(&arguments)?;
        let is_whole = arguments.is_on("all-types") || selection.names_rows();
        Ok(Options {
            mode: mode(&arguments, default),
            package: None,
            configuration: Configuration {
                selection,
                brief: default == DefaultMode::MeasureBriefly && !is_whole,
                full: arguments.is_on("full"),
                effort: effort(&arguments)?,
                threads: threads(&arguments)?,
                modes: modes(&arguments),
                device: DeviceRequest {
                    ordinal: arguments.last("device", whole::<usize>)?.unwrap_or(0),
                    dump: arguments.last("dump", folder)?,
                    off: arguments.is_on("no-gpu"),
                },
                timeout: arguments.last("timeout", duration::parse)?.unwrap_or(USUAL_TIMEOUT),
                regimes: arguments.last("regimes", regimes)?,
                seed: arguments.last("seed", whole::<u64>)?.unwrap_or(DEFAULT_SEED),
                order_seed: arguments.last("order-seed", whole::<u64>)?,
                rules: Rules {
                    error_rate: error_rate(&arguments)?,
                    margin: arguments.last("margin", margin)?,
                    limits: gate.as_ref().map_or([None; 2], |gate| [Some(gate.time), gate.explain]),
                    ..Rules::default()
                },
                search: search(&arguments),
                workers,
                isolation: if arguments.is_on("isolate") {
                    Isolation::Isolated
                } else {
                    Isolation::Shared
                },
                inspect: arguments.is_on("benchmem"),
                past: None,
            },
            workers: arguments.each("worker", workers::wanted)?,
            format: format(&arguments, quiet)?,
            style: style(&arguments)?,
            quiet,
            exports: exports(&arguments)?,
            tune,
            plot: arguments.is_on("plot"),
            page: arguments.is_on("report"),
            summary: arguments.last("summary", summary)?,
            keep: arguments.last("keep", whole::<usize>)?.unwrap_or(USUAL_RUNS),
            save_baseline: arguments.last("save-baseline", baseline_name)?,
            baseline: arguments.all("baseline").last().cloned(),
            foreign: match arguments.is_on("foreign-baseline") {
                true => Foreign::Measured,
                false => Foreign::Refused,
            },
            merge: arguments.list("merge").into_iter().map(PathBuf::from).collect(),
            load_baseline: arguments.all("load-baseline").last().cloned(),
            gate,
            warnings: arguments
                .unknown_variables
                .iter()
                .map(|name| unknown_variable(name))
                .collect(),
        })
    }

    pub(super) fn has_filters(&self) -> bool {
        let selection = &self.configuration.selection;
        !selection.filters.is_empty()
            || !selection.skip.is_empty()
            || selection.ignored == Ignored::Only
    }

    pub(super) fn first_filter(&self) -> Option<&str> {
        self.configuration.selection.filters.first().map(String::as_str)
    }
}

/// Flags that cannot be meant together.
fn contradictions(arguments: &Arguments) -> Result<(), String> {
    let tune = arguments.is_on("tune");
    if tune && arguments.is_on("no-search") {
        return Err("--tune needs the search that --no-search leaves out; give one".into());
    }
    if tune && arguments.is_on("base") {
        return Err(
            "--tune is about thresholds over the kernel's own function; leave out --base".into()
        );
    }
    let names_sizes = ["size", "axis", "skip"].iter().any(|name| arguments.is_on(name));
    if tune && (names_sizes || !arguments.filters.is_empty()) {
        let text = "--tune needs all sizes of a kernel: select with --kernel, and without \
                    --size, --axis or filters";
        return Err(text.into());
    }
    let shows = ["load-baseline", "merge", "history"].iter().find(|name| arguments.is_on(name));
    let wants = ["save-baseline", "tune"].iter().find(|name| arguments.is_on(name));
    if let (Some(shows), Some(wants)) = (shows, wants) {
        return Err(format!("--{shows} measures nothing, and --{wants} needs a new run; give one"));
    }
    for (one, others) in [
        ("merge", &["load-baseline", "baseline", "history"][..]),
        ("history", &["load-baseline", "baseline", "gate", "export", "report", "summary"]),
    ] {
        let other = others.iter().find(|other| arguments.is_on(other));
        if let Some(other) = other.filter(|_| arguments.is_on(one)) {
            return Err(format!(
                "--{one} and --{other} have nothing to do with each other; give one"
            ));
        }
    }
    Ok(())
}

/// How CUDA variants are timed: in those modes that are named, or in all.
fn modes(arguments: &Arguments) -> Vec<kernel::Mode> {
    let all = kernel::Mode::OF_DEVICE;
    let named: Vec<_> = all.into_iter().filter(|mode| arguments.is_on(mode.name())).collect();
    if named.is_empty() { all.to_vec() } else { named }
}

/// `large,ties`, `all` or `none`.
fn regimes(text: &str) -> Result<Vec<Regime>, String> {
    let known = || Regime::AUTOMATIC.into_iter().chain(Regime::ON_REQUEST);
    match text {
        "all" => return Ok(known().collect()),
        "none" => return Ok(Vec::new()),
        _ => {}
    }
    let regime = |name: &str| {
        Regime::of_name(name.trim()).ok_or_else(|| {
            let names: Vec<&str> = known().map(Regime::name).collect();
            format!("`{name}` is no regime; there are all, none, {}", names.join(", "))
        })
    };
    text.split(',').map(regime).collect()
}

fn mode(arguments: &Arguments, default: DefaultMode) -> Mode {
    // In the order of precedence: looking comes before doing, and `cargo bench -- --test` has both of the last two.
    let modes = [
        ("help", Mode::Help),
        ("version", Mode::Version),
        ("list", Mode::List),
        ("list-kernels", Mode::ListKernels),
        ("list-sizes", Mode::ListSizes),
        ("list-baselines", Mode::ListBaselines),
        ("load-baseline", Mode::Load),
        ("merge", Mode::Merge),
        ("history", Mode::History),
        ("test", Mode::Test),
        ("profile", Mode::Profile),
        ("bench", Mode::Measure),
    ];
    let chosen = modes.iter().find(|(name, _)| arguments.is_on(name)).map(|(_, mode)| *mode);
    chosen.unwrap_or(match default {
        DefaultMode::Test => Mode::Test,
        DefaultMode::Measure | DefaultMode::MeasureBriefly => Mode::Measure,
    })
}

fn effort(arguments: &Arguments) -> Result<Effort, String> {
    let preset = match (arguments.is_on("quick"), arguments.is_on("thorough")) {
        (true, true) => return Err("--quick and --thorough contradict each other; give one".into()),
        (true, false) => Effort::quick(),
        (false, true) => Effort::thorough(),
        (false, false) => Effort::default(),
    };
    let budget = arguments.last("budget", duration::parse)?;
    let warm_up = arguments.last("warm-up-time", duration::parse)?;
    Ok(Effort {
        budget: budget.map_or(preset.budget, Budget::Fixed),
        measurement_time: arguments
            .last("measurement-time", duration::parse)?
            .unwrap_or(preset.measurement_time),
        samples: arguments.last("sample-size", |text| at_least(text, 4u32))?.or(preset.samples),
        warm_up: warm_up.unwrap_or(preset.warm_up),
        shortest_warm_up: warm_up.unwrap_or(preset.shortest_warm_up),
        iterations: arguments.last("iterations", |text| at_least(text, 1u64))?,
        launches: arguments.last("launches", |text| at_least(text, 1u32))?.or(preset.launches),
        ..preset
    })
}

fn error_rate(arguments: &Arguments) -> Result<ErrorRate, String> {
    let kinds = [("discovery", ErrorRate::Discovery), ("family", ErrorRate::Family)];
    let given = arguments.last("error-rate", |text| one_of("error rate", kinds, text))?;
    Ok(given.unwrap_or_default())
}

/// A share from a percentage, with its sign or without: `2%`, `0.5`.
fn margin(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let share = number.ok().map(|percent| percent / 100.0);
    share.filter(|share| 0.0 < *share && *share < 1.0).ok_or_else(|| {
        format!("`{text}` is not a margin between 0 and 100 %; write for example 2%")
    })
}

fn search(arguments: &Arguments) -> Option<Search> {
    let tolerance = match (arguments.is_on("quick"), arguments.is_on("thorough")) {
        (true, _) => 0.5,
        (false, true) => 0.1,
        (false, false) => Search::default().tolerance,
    };
    (!arguments.is_on("no-search")).then_some(Search { tolerance })
}

fn threads(arguments: &Arguments) -> Result<Vec<usize>, String> {
    let mut threads = Vec::new();
    for count in arguments.each_of_list("threads", |text| at_least(text, 1usize))? {
        if !threads.contains(&count) {
            threads.push(count);
        }
    }
    Ok(threads)
}

fn format(arguments: &Arguments, quiet: bool) -> Result<TestFormat, String> {
    let formats =
        [("pretty", TestFormat::Pretty), ("terse", TestFormat::Terse), ("json", TestFormat::Json)];
    let given = arguments.last("format", |text| one_of("format", formats, text))?;
    Ok(given.unwrap_or(if quiet { TestFormat::Terse } else { TestFormat::Pretty }))
}

fn style(arguments: &Arguments) -> Result<Style, String> {
    let given = arguments.last("color", |text| match text {
        "auto" => Ok(Style::detect()),
        "always" => Ok(Style::COLOURED),
        "never" => Ok(Style::PLAIN),
        other => Err(format!("`{other}` is not auto, always or never")),
    })?;
    Ok(given.unwrap_or_else(Style::detect))
}

/// Limits of the command line, with those of the file.
fn policy(text: &str) -> Result<Policy, String> {
    let policy: Policy = text.parse().map_err(|error: PolicyError| error.to_string())?;
    match nearest_file()? {
        Some((path, text)) => {
            policy.with_file(&text).map_err(|error| format!("`{}`: {error}", path.display()))
        }
        None => Ok(policy),
    }
}

fn summary(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    has_folder(&path).map(|()| path)
}

fn baseline_name(name: &str) -> Result<String, String> {
    check_name(name).map(|()| name.to_owned()).map_err(|error| error.to_string())
}

fn exports(arguments: &Arguments) -> Result<Vec<Export>, String> {
    let exports = arguments.each("export", Export::parse)?;
    for (i, export) in exports.iter().enumerate() {
        if exports[..i].iter().any(|other| other.path == export.path) {
            let path = export.path.display();
            return Err(format!(
                "--export: `{path}` is named twice; the second would replace the first"
            ));
        }
    }
    Ok(exports)
}

fn unknown_variable(name: &str) -> String {
    let variables: Vec<String> = FLAGS.iter().map(|flag| flag.variable()).collect();
    let near = nearest(name, variables.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("the environment variable {name} means nothing to kbench{hint}")
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Group, long};
    use super::*;
    use std::time::Duration;

    fn options(words: &[&str]) -> Result<Options, String> {
        let words = words.iter().map(OsString::from);
        Options::read(words, [], DefaultMode::Test, Workers::SameProcess)
    }

    #[test]
    fn modes_are_those_of_cargo() {
        let mode = |words: &[&str]| options(words).expect("valid").mode;
        assert_eq!(mode(&[]), Mode::Test);
        assert_eq!(mode(&["--bench"]), Mode::Measure);
        assert_eq!(mode(&["--test", "--bench"]), Mode::Test);
        assert_eq!(mode(&["--list", "--format", "terse", "--bench"]), Mode::List);
        let read =
            Options::read([], [], DefaultMode::Measure, Workers::SameProcess).expect("valid");
        assert_eq!(read.mode, Mode::Measure);
    }

    #[test]
    fn a_brief_suite_is_whole_for_those_who_name_rows() {
        let is_brief = |default, words: &[&str]| {
            let words = words.iter().map(OsString::from);
            let read = Options::read(words, [], default, Workers::SameProcess).expect("valid");
            read.configuration.brief
        };
        let brief = DefaultMode::MeasureBriefly;
        assert!(is_brief(brief, &[]) && is_brief(brief, &["--backend", "serial"]));
        for named in [["--type", "f16"], ["--kernel", "softmax"], ["--size", "large"]] {
            assert!(!is_brief(brief, &named), "{named:?}");
        }
        assert!(!is_brief(brief, &["--all-types"]) && !is_brief(brief, &["softmax"]));
        assert!(!is_brief(DefaultMode::Measure, &[]));
    }

    #[test]
    fn effort_flags_refine_their_preset() {
        let effort = options(&["--quick", "--budget", "5s"]).expect("valid").configuration.effort;
        assert_eq!(effort.budget, Budget::Fixed(Duration::from_secs(5)));
        let preset = options(&[]).expect("valid").configuration.effort.budget;
        assert!(matches!(preset, Budget::Scaled(_)), "{preset:?}");
        assert_eq!(effort.measurement_time, Effort::quick().measurement_time);
        let given = options(&["--warm-up-time", "30ms"]).expect("valid").configuration.effort;
        assert_eq!(given.for_rows(100_000).warm_up, Duration::from_millis(30));
    }

    #[test]
    fn verdicts_are_given_by_the_rules_that_are_asked_for() {
        let rules = |words: &[&str]| options(words).expect("valid").configuration.rules;
        assert_eq!(rules(&[]).error_rate, ErrorRate::Discovery);
        assert_eq!(rules(&["--error-rate", "family"]).error_rate, ErrorRate::Family);
        assert_eq!(rules(&[]).margin, None);
        for text in ["3%", "3", "3 %"] {
            assert_eq!(rules(&["--margin", text]).margin, Some(0.03));
        }
        let set = [("KBENCH_ERROR_RATE".into(), "family".into())];
        let read = Options::read([], set, DefaultMode::Test, Workers::SameProcess).expect("valid");
        assert_eq!(read.configuration.rules.error_rate, ErrorRate::Family);
    }

    /// For every flag that does not take any text, a value that it cannot take and what to write instead.
    const REFUSED: [(&str, &str, &str); 33] = [
        ("size", "dim>=many=1", "write for example"),
        ("axis", "dim", "dim=64,128"),
        ("axis", "dim=x", "write for example 4096"),
        ("backend", "cdua", "did you mean `cuda`?"),
        ("partition", "slice:5/4", "slice:1/4"),
        ("worker", "mine= ", "write mine=COMMAND"),
        ("budget", "soon", "write for example 60s"),
        ("budget", "9000h", "8760h"),
        ("measurement-time", "-1s", "write for example 60s"),
        ("warm-up-time", "0", "write for example 60s"),
        ("timeout", "never", "write for example 60s"),
        ("regimes", "hug", "there are all, none, constant"),
        ("launches", "0", "the least is 1"),
        ("sample-size", "1", "the least is 4"),
        ("iterations", "1.5", "not a whole number"),
        ("threads", "1,0", "the least is 1"),
        ("threads", "all", "not a whole number"),
        ("seed", "-1", "not a whole number"),
        ("order-seed", "any", "not a whole number"),
        ("device", "gpu", "not a whole number"),
        ("dump", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "name a folder"),
        ("gate", "some", "write for example 5%"),
        ("error-rate", "famly", "did you mean `family`?"),
        ("margin", "some", "write for example 2%"),
        ("margin", "0", "write for example 2%"),
        ("keep", "all", "not a whole number"),
        ("save-baseline", "../x", "use letters, digits"),
        ("save-baseline", "nul", "to Windows"),
        ("export", "cvs=x", "did you mean `csv`?"),
        ("export", "csv", "write for example csv=results.csv"),
        ("export", "csv=no/such/folder/x", "does not exist"),
        ("format", "jsn", "did you mean `json`?"),
        ("color", "red", "auto, always or never"),
    ];

    #[test]
    fn a_bad_value_is_blamed_on_the_flag_or_the_variable_that_gave_it() {
        for (flag, value, advice) in REFUSED {
            let typed = options(&[&format!("--{flag}={value}")]).expect_err(value);
            assert!(typed.starts_with(&format!("--{flag}: ")), "{typed}");
            let variable = long(flag).expect("a flag").variable();
            let set = [(variable.clone().into(), value.into())];
            let set = Options::read([], set, DefaultMode::Test, Workers::SameProcess);
            let set = set.expect_err(value);
            assert!(set.starts_with(&format!("{variable}: ")), "{set}");
            assert!(typed.contains(advice) && set.contains(advice), "{typed}");
        }
    }

    #[test]
    fn every_flag_is_tested_with_a_bad_value_or_takes_any() {
        let any = [
            "kernel",
            "variant",
            "type",
            "base",
            "along",
            "skip",
            "baseline",
            "load-baseline",
            "merge",
            "summary",
        ];
        let shown = FLAGS.iter().filter(|flag| flag.value.is_some());
        for flag in shown.filter(|flag| flag.group != Group::Hidden) {
            let is_tested = REFUSED.iter().any(|(name, ..)| *name == flag.name);
            assert!(is_tested || any.contains(&flag.name), "--{}", flag.name);
        }
    }

    #[test]
    fn impossible_values_are_refused_with_their_flag() {
        for (words, part) in [
            (vec!["--threads", "0"], "--threads: 0 is too few"),
            (vec!["--budget", "soon"], "--budget: `soon` is not a duration"),
            (vec!["--backend", "cdua"], "did you mean `cuda`?"),
            (vec!["--quick", "--thorough"], "contradict"),
            (vec!["--sample-size", "1"], "--sample-size: 1 is too few"),
            (vec!["--export", "xml=x"], "there is no format `xml`"),
            (vec!["--export", "csv=no/such/folder/x.csv"], "does not exist"),
            (vec!["--summary", "no/such/folder/x.md"], "does not exist"),
            (vec!["--export", "csv=x", "--export", "json=x"], "named twice"),
            (vec!["--dump", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], "name a folder"),
            (vec!["--dump", ""], "name a folder"),
            (vec!["--partition", "3"], "slice:1/4"),
            (vec!["--axis", "dim"], "dim=64,128"),
            (vec!["--save-baseline", "../x"], "use letters, digits"),
            (vec!["--gate", "some"], "write for example 5%"),
            (vec!["--load-baseline", "a", "--save-baseline", "b"], "measures nothing"),
            (vec!["--keep", "all"], "--keep"),
            (vec!["--color", "red"], "`red` is not auto, always or never"),
        ] {
            let error = options(&words).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
