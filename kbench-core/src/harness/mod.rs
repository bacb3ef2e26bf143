//! The command line: what `kbench::main!()` runs.
//!
//! Speaks libtest's grammar and nextest's protocol; nothing else in the runtime knows about it.

mod against;
mod arguments;
mod chosen;
#[cfg(any(test, fuzzing))]
pub(crate) mod doorway;
mod duration;
mod exit;
mod file;
mod flags;
mod gate;
mod help;
mod keep;
mod options;
mod output;
mod selected;
mod stored;
mod tune;
mod values;
mod workers;

pub use exit::Exit;
pub use options::DefaultMode;

pub use crate::system::Interrupt;

use std::process::ExitCode;

use against::Against;
use keep::Keeper;
use options::{Mode, Options};
use output::{print, print_json, say, write_exports};

use crate::plan::{PlanError, Selection, SizeFilter, nearest};
use crate::report::{
    ListFormat, Progress, Report, TestFormat, json_rows, list, list_kernels, list_sizes, plot,
    terminal, test_report,
};
use crate::store::{Store, StoreError};
use crate::system::listen;
use crate::{Configuration, Suite, SuiteError, Workers};

/// Reads the command line and does what it says. Runs are kept by the name of the package, which [`main!`](crate::main)
/// knows, and of the program.
pub fn main(default: DefaultMode, package: Option<&'static str>) -> ExitCode {
    let workers = Workers::here();
    let arguments = std::env::args_os().skip(1);
    let variables = std::env::vars_os();
    let exit = match Options::read(arguments, variables, default, workers) {
        Ok(options) => run(Options { package, ..options }),
        Err(error) => complain(&error, Exit::Usage),
    };
    exit.into()
}

fn complain(error: &dyn std::fmt::Display, exit: Exit) -> Exit {
    say(&format!("error: {error}"));
    exit
}

fn run(options: Options) -> Exit {
    match options.mode {
        Mode::Help => return print(&help::help()),
        Mode::Version => return print(concat!("kbench ", env!("CARGO_PKG_VERSION"), "\n")),
        _ => {}
    }
    options.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    // A signal ends at once what measures nothing; a file that is being written is there as a whole or not at all.
    if !options.mode.is_about_kept_runs() {
        listen();
    }
    let done = match options.mode {
        // These are about runs that are kept, whatever this program has.
        Mode::ListBaselines => Ok(print(&stored::list(&options))),
        Mode::Load => stored::load(&options),
        Mode::Merge => stored::merged(&options),
        Mode::History => stored::history(&options),
        Mode::Measure => measure(&options),
        _ => suite(&options.configuration, &options).and_then(|suite| look(&suite, &options)),
    };
    done.unwrap_or_else(|error| failure(&error, &options))
}

/// All kernels, those of foreign workers included, with what the command line says about a run.
fn suite(configuration: &Configuration, options: &Options) -> Result<Suite, Failure> {
    let is_list = matches!(options.mode, Mode::List | Mode::ListKernels | Mode::ListSizes);
    let chosen = workers::programs(&options.workers, is_list).map_err(Failure::Refused)?;
    chosen.remarks.iter().for_each(|remark| say(remark));
    let suite = own_suite(configuration)?.with_workers(&chosen.programs)?;
    for why in suite.foreign().iter().filter_map(|worker| worker.unavailable.as_ref()) {
        say(&format!("warning: a worker is left out, and with it its variants: {why}"));
    }
    Ok(suite)
}

/// The kernels of this program, without those of foreign workers.
fn own_suite(configuration: &Configuration) -> Result<Suite, SuiteError> {
    Ok(Suite::discover()?.configure(|own| own.clone_from(configuration)))
}

/// What times nothing: checks, profiles, lists.
fn look(suite: &Suite, options: &Options) -> Result<Exit, Failure> {
    match options.mode {
        Mode::Test => return test(suite, options),
        Mode::Profile => {
            let mut told = String::new();
            suite.profile(&mut |line| told += &format!("{line}\n"))?;
            return Ok(print(&told));
        }
        _ => {}
    }
    let plan = suite.plan()?;
    Ok(print(&match options.mode {
        Mode::ListKernels => list_kernels(&plan),
        Mode::ListSizes => list_sizes(&plan),
        _ if options.format == TestFormat::Terse => list(&plan, ListFormat::Terse),
        _ => list(&plan, ListFormat::Counted),
    }))
}

fn test(suite: &Suite, options: &Options) -> Result<Exit, Failure> {
    let mut progress = progress(options);
    let report = suite.test_watched(&mut progress);
    progress.clear();
    let report = report?;
    let printed = print_tests(&report, options);
    let exit = printed.or(write_exports(&report, &[], &options.exports)).or(outcome(&report));
    Ok(exit.unless_interrupted())
}

fn print_tests(report: &Report, options: &Options) -> Exit {
    let text = test_report(report, options.format, options.style);
    if options.format == TestFormat::Json { print_json(&text) } else { print(&text) }
}

fn measure(options: &Options) -> Result<Exit, Failure> {
    let store = Store::find(options.package);
    let mut keeper = Keeper::begin(&store, options.keep, options.save_baseline.as_deref())?;
    let against = match &options.baseline {
        Some(name) => {
            let ordinal = options.configuration.device.ordinal;
            let is_gated = options.gate.is_some();
            Against::here(&store, name, options.foreign, ordinal, is_gated)
                .map_err(Failure::Refused)?
        }
        None => None,
    };
    let past = against.as_ref().and_then(Against::past);
    let suite = suite(&Configuration { past, ..options.configuration.clone() }, options)?;
    let mut progress = progress(options);
    let report = suite.run_watched(&mut progress, &mut keeper);
    progress.clear();
    let mut report = report?;
    if let Some(against) = against {
        against.put_beside(&store, &mut report);
    }
    let is_blocked =
        options.gate.as_ref().is_some_and(|policy| !policy.judge(&report).blocked.is_empty());
    if is_blocked && options.baseline == options.save_baseline {
        keeper.spare_baseline("this run is beyond the limits of the gate");
    }
    if report.unfinished.is_some() {
        keeper.spare_baseline("this run is unfinished");
    }
    let kept = keeper.keep(&mut report);
    let tuned = match (options.tune, &report.unfinished) {
        (true, None) => tune::tune(&report),
        (true, Some(_)) => {
            say("note: kbench.toml stays as it was, for this run is unfinished");
            Exit::Fine
        }
        (false, _) => Exit::Fine,
    };
    Ok(deliver(&report, options).or(kept).or(tuned).unless_interrupted())
}

/// Prints a report, writes what was asked for, and says how the run ended.
fn deliver(report: &Report, options: &Options) -> Exit {
    let printed = match options.format {
        TestFormat::Json => match json_rows(report) {
            Ok(text) => print_json(&text),
            Err(error) => complain(&error, Exit::Internal),
        },
        TestFormat::Pretty | TestFormat::Terse => {
            let charts = if options.plot { plot(report, options.style) } else { String::new() };
            print(&(terminal(report, options.style) + &charts))
        }
    };
    let written = stored::write(report, options);
    let ruled = options.gate.as_ref().map(|policy| (policy, policy.judge(report)));
    let gate =
        ruled.as_ref().map_or(Exit::Fine, |(policy, ruling)| gate::tell(report, policy, ruling));
    let ruling = ruled.as_ref().map(|(_, ruling)| ruling);
    let summary = gate::write_summary(report, ruling, options.summary.as_deref());
    printed.or(written).or(outcome(report)).or(gate).or(summary)
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The suite.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing of what was asked for.
    #[error("{0}")]
    Nothing(String),
    /// A baseline that does not fit.
    #[error("{0}")]
    Refused(String),
}

fn progress(options: &Options) -> Progress {
    if options.quiet { Progress::silent() } else { Progress::detect() }
}

fn outcome(report: &Report) -> Exit {
    let mut names: Vec<String> = Vec::new();
    for row in report.failed() {
        let name = format!("  {}/{}/{}: {}", row.kernel, row.variant, row.element, row.status);
        if names.last() != Some(&name) && !names.iter().rev().take(100).any(|known| *known == name)
        {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Exit::Fine;
    }
    let all = report.rows.len() + report.searched.len();
    let failed = report.failed().count();
    say(&format!("error: {failed} of {all} rows failed\n{}", names.join("\n")));
    Exit::CheckFailed
}

fn failure(error: &Failure, options: &Options) -> Exit {
    match error {
        Failure::Suite(SuiteError::NothingSelected) => nothing_selected(error, options),
        Failure::Suite(SuiteError::Plan(PlanError::Unknown { .. })) => {
            complain(error, Exit::NothingSelected)
        }
        Failure::Store(
            StoreError::Unwritable { .. } | StoreError::Busy { .. } | StoreError::Unwritten(_),
        ) => complain(error, Exit::Internal),
        Failure::Nothing(_) => complain(error, Exit::NothingSelected),
        Failure::Suite(_) | Failure::Store(_) | Failure::Refused(_) => complain(error, Exit::Usage),
    }
}

fn nothing_selected(error: &Failure, options: &Options) -> Exit {
    // No worker is started once more for a hint.
    let suite = own_suite(&options.configuration).ok();
    let filter = options.first_filter();
    let near = suite.as_ref().zip(filter).and_then(|(suite, filter)| nearest_part(suite, filter));
    let hint = match near {
        Some(_) if options.configuration.selection.exact => {
            "; with --exact a filter is a whole name, as --list shows it".to_owned()
        }
        Some(near) => format!("; did you mean `{near}`?"),
        None => size_hint(&options.configuration.selection).unwrap_or_default(),
    };
    // Cargo hands one filter to every test and bench target; libtest passes where it matches nothing, and so does test
    // mode.
    let empty = suite.and_then(|suite| suite.empty_report().ok());
    let is_test = options.mode == Mode::Test && options.has_filters();
    match empty {
        // Who splits a few kernels among many machines has some with nothing to do.
        Some(report) if options.mode == Mode::Measure && is_empty_share(options) => {
            let share = report.plan.partition.as_deref().unwrap_or_default();
            say(&format!("note: the share {share} has no kernel"));
            write_exports(&report, &[], &options.exports)
        }
        Some(report) if is_test => {
            say(&format!("note: {error}{hint}"));
            print_tests(&report, options).or(write_exports(&report, &[], &options.exports))
        }
        _ => complain(&format!("{error}{hint}"), Exit::NothingSelected),
    }
}

/// That `--size` finds no sizes that are not listed.
fn size_hint(selection: &Selection) -> Option<String> {
    let of = |filter: &SizeFilter| match filter {
        SizeFilter::Where(_) => Some(filter.to_string()),
        SizeFilter::Label(_) => None,
    };
    let condition = selection.sizes.iter().find_map(of)?;
    let value = condition.split_once('=').and_then(|(axis, value)| {
        let is_one = axis.chars().all(|c| c.is_alphanumeric() || c == '_');
        value.parse::<usize>().ok().filter(|_| is_one).map(|value| format!("--axis {axis}={value}"))
    });
    Some(match value {
        Some(flag) => {
            format!("; --size selects among the listed sizes, and {flag} measures this one")
        }
        None => "; --size selects among the listed sizes, which --list-sizes shows".to_owned(),
    })
}

/// Whether nothing is selected only because it is the share of others.
fn is_empty_share(options: &Options) -> bool {
    let mut whole = options.configuration.clone();
    whole.selection.partition.take().is_some()
        && own_suite(&whole)
            .is_ok_and(|suite| suite.plan().is_ok_and(|plan| !plan.cells.is_empty()))
}

/// The kernel or variant whose name is closest to a filter that matched nothing.
fn nearest_part(suite: &Suite, filter: &str) -> Option<String> {
    let kernels = suite.kernels();
    let names = kernels.iter().flat_map(|kernel| {
        [kernel.entry.name].into_iter().chain(kernel.variants.iter().map(|variant| variant.name))
    });
    nearest(filter, names).map(str::to_owned)
}
