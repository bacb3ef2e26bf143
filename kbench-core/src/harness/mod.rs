//! The command line: what `kbench::main!()` runs.
//!
//! Speaks libtest's grammar and nextest's protocol; nothing else in the runtime knows about it.

mod arguments;
mod duration;
mod exit;
mod flags;
mod gate;
mod help;
mod options;
mod output;
mod tune;

pub use exit::Exit;
pub use options::DefaultMode;

use std::process::ExitCode;

use options::{Mode, Options};
use output::{print, say, write_exports};

use crate::plan::{PlanError, nearest};
use crate::report::{
    ListFormat, Progress, Report, TestFormat, json_rows, list, list_kernels, list_sizes, terminal,
    test_report,
};
use crate::{Suite, SuiteError, Workers};

/// Reads the command line and does what it says.
pub fn main(default: DefaultMode) -> ExitCode {
    let workers = Workers::here();
    let arguments = std::env::args_os().skip(1);
    let variables = std::env::vars_os();
    let exit = match Options::read(arguments, variables, default, workers) {
        Ok(options) => run(options),
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
    let suite = match Suite::discover() {
        Ok(suite) => {
            suite.configure(|configuration| *configuration = options.configuration.clone())
        }
        Err(error) => return complain(&error, Exit::Usage),
    };
    let result = match options.mode {
        Mode::Test => test(&suite, &options),
        Mode::Measure => measure(&suite, &options),
        Mode::Profile => {
            let mut told = String::new();
            suite.profile(&mut |line| told += &format!("{line}\n")).map(|()| print(&told))
        }
        _ => suite.plan().map(|plan| match options.mode {
            Mode::ListKernels => print(&list_kernels(&plan)),
            Mode::ListSizes => print(&list_sizes(&plan)),
            _ if options.format == TestFormat::Terse => print(&list(&plan, ListFormat::Terse)),
            _ => print(&list(&plan, ListFormat::Counted)),
        }),
    };
    result.unwrap_or_else(|error| failure(&suite, &error, &options))
}

fn test(suite: &Suite, options: &Options) -> Result<Exit, SuiteError> {
    let mut progress = progress(options);
    let report = suite.test_watched(&mut progress);
    progress.clear();
    let report = report?;
    let printed = print(&test_report(&report, options.format, options.style));
    Ok(printed.or(write_exports(&report, &options.exports)).or(outcome(&report)))
}

fn measure(suite: &Suite, options: &Options) -> Result<Exit, SuiteError> {
    let mut progress = progress(options);
    let report = suite.run_watched(&mut progress);
    progress.clear();
    let report = report?;
    let printed = match options.format {
        TestFormat::Json => match json_rows(&report) {
            Ok(text) => print(&text),
            Err(error) => complain(&error, Exit::Internal),
        },
        TestFormat::Pretty | TestFormat::Terse => print(&terminal(&report, options.style)),
    };
    let tuned = if options.tune { tune::tune(&report) } else { Exit::Fine };
    let gate = options.gate.map_or(Exit::Fine, |gate| gate.judge(&report));
    let written = write_exports(&report, &options.exports);
    Ok(printed.or(written).or(tuned).or(outcome(&report)).or(gate))
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

fn failure(suite: &Suite, error: &SuiteError, options: &Options) -> Exit {
    match error {
        SuiteError::NothingSelected => {
            let hint = options.first_filter().and_then(|filter| nearest_part(suite, filter));
            let hint = match hint {
                Some(_) if options.configuration.selection.exact => {
                    "; with --exact a filter is a whole name, as --list shows it".to_owned()
                }
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            // Cargo hands one filter to every test and bench target; libtest passes where it matches nothing, and so
            // does test mode.
            let empty = suite.empty_report().ok();
            match empty.filter(|_| options.mode == Mode::Test && options.has_filters()) {
                Some(report) => {
                    say(&format!("note: {error}{hint}"));
                    let text = test_report(&report, options.format, options.style);
                    print(&text).or(write_exports(&report, &options.exports))
                }
                None => complain(&format!("{error}{hint}"), Exit::NothingSelected),
            }
        }
        SuiteError::Plan(PlanError::Unknown { .. }) => complain(error, Exit::NothingSelected),
        SuiteError::Plan(_) | SuiteError::Registry(_) => complain(error, Exit::Usage),
    }
}

/// The kernel or variant whose name is closest to a filter that matched nothing.
fn nearest_part(suite: &Suite, filter: &str) -> Option<String> {
    let kernels = suite.kernels();
    let names = kernels.iter().flat_map(|kernel| {
        [kernel.entry.name].into_iter().chain(kernel.variants.iter().map(|variant| variant.name))
    });
    nearest(filter, names).map(str::to_owned)
}
