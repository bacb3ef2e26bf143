//! The command line: what `kbench::main!()` runs.
//!
//! Speaks libtest's grammar and nextest's protocol; nothing else in the runtime knows about it.

mod arguments;
mod duration;
mod exit;
mod flags;
mod help;
mod options;
mod output;

pub use exit::Exit;
pub use options::DefaultMode;

use std::process::ExitCode;

use options::{Mode, Options};
use output::{print, write_exports};

use crate::plan::nearest;
use crate::report::{
    Progress, Report, TestFormat, json_rows, list, list_kernels, list_sizes, terminal, test_report,
};
use crate::{Suite, SuiteError};

/// Reads the command line and does what it says.
pub fn main(default: DefaultMode) -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let variables = std::env::vars_os();
    let exit = match Options::read(arguments, variables, default) {
        Ok(options) => run(options),
        Err(error) => complain(&error, Exit::Usage),
    };
    exit.into()
}

fn complain(error: &dyn std::fmt::Display, exit: Exit) -> Exit {
    eprintln!("error: {error}");
    exit
}

fn run(options: Options) -> Exit {
    match options.mode {
        Mode::Help => return print(&help::help()),
        Mode::Version => return print(concat!("kbench ", env!("CARGO_PKG_VERSION"), "\n")),
        _ => {}
    }
    options.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    let suite = match Suite::discover() {
        Ok(suite) => {
            suite.configure(|configuration| *configuration = options.configuration.clone())
        }
        Err(error) => return complain(&error, Exit::Usage),
    };
    let result = match options.mode {
        Mode::Test => test(&suite, &options),
        Mode::Measure => measure(&suite, &options),
        _ => suite.plan().map(|plan| {
            let terse = options.format == TestFormat::Terse;
            match options.mode {
                Mode::ListKernels => print(&list_kernels(&plan)),
                Mode::ListSizes => print(&list_sizes(&plan)),
                _ => print(&list(&plan, options.only_ignored(), terse)),
            }
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
    Ok(printed.or(write_exports(&report, &options.exports)).or(outcome(&report)))
}

fn progress(options: &Options) -> Progress {
    if options.quiet { Progress::silent() } else { Progress::detect() }
}

fn outcome(report: &Report) -> Exit {
    let mut names: Vec<String> = Vec::new();
    for row in report.failed() {
        let name = format!("  {}/{}/{}: {}", row.kernel, row.variant, row.element, row.status);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Exit::Fine;
    }
    eprintln!(
        "error: {} of {} rows failed\n{}",
        report.failed().count(),
        report.rows.len(),
        names.join("\n")
    );
    Exit::CheckFailed
}

fn failure(suite: &Suite, error: &SuiteError, options: &Options) -> Exit {
    match error {
        // Cargo hands one filter to every test and bench target; libtest passes where it matches nothing, and so do we.
        SuiteError::NothingSelected if options.mode == Mode::Test && options.has_filters() => {
            print(
                "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n",
            )
        }
        SuiteError::NothingSelected => {
            let hint = options.first_filter().and_then(|filter| nearest_part(suite, filter));
            let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            complain(&format!("{error}{hint}"), Exit::NothingSelected)
        }
        SuiteError::Plan(_) => complain(error, Exit::NothingSelected),
        SuiteError::Registry(_) => complain(error, Exit::Usage),
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
