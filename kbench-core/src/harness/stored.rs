//! Runs that are kept: shown without measuring anything.

use super::against::Against;
use super::chosen::{choose, is_chosen};
use super::output::{Export, print, say, write_exports};
use super::{Exit, Failure, Options, deliver};
use crate::baseline::{Machine, Trends};
use crate::calendar::date_and_time;
use crate::environment::Environment;
use crate::order;
use crate::report::{self, Format, Report, RowKey, RowReport};
use crate::store::{Store, merge, read_kept, read_parts};
use crate::visible::on_one_line;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// `--load-baseline NAME`: shows a run that was measured before.
pub(super) fn load(options: &Options) -> Result<Exit, Failure> {
    let store = Store::find(options.package);
    let name = options.load_baseline.as_deref().unwrap_or_default();
    let mut report = store
        .baseline(name)
        .map_err(|error| Failure::Refused(format!("--load-baseline: {error}")))?;
    say(&format!("loaded: run {} of {}", report.run, date_and_time(report.started)));
    select(&mut report, options)?;
    if let Some(baseline) = options.baseline.as_deref() {
        let against = Against::stored(&store, baseline, &report).map_err(Failure::Refused)?;
        against.put_beside(&store, &mut report);
    }
    Ok(deliver(&report, options))
}

/// `--merge PATH`: shows runs of several machines as one.
pub(super) fn merged(options: &Options) -> Result<Exit, Failure> {
    let parts = read_parts(&documents(&options.merge)?)?;
    let mut report = merge(parts).map_err(|error| Failure::Refused(error.to_string()))?;
    select(&mut report, options)?;
    Ok(deliver(&report, options))
}

/// Leaves what flags select; an error if that is nothing of what there was.
fn select(report: &mut Report, options: &Options) -> Result<(), Failure> {
    let before = report.rows.len();
    choose(report, &options.configuration.selection);
    if report.rows.is_empty() && before > 0 {
        return Err(Failure::Nothing(format!("none of the {before} rows of the run is selected")));
    }
    Ok(())
}

/// Files by name, and all documents of folders.
fn documents(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let unread =
            |error| Failure::Refused(format!("`{}` cannot be read: {error}", path.display()));
        for entry in fs::read_dir(path).map_err(unread)? {
            let file = entry.map_err(unread)?.path();
            if file.extension().is_some_and(|extension| extension == "json") {
                found.push(file);
            }
        }
    }
    order::sort(&mut found);
    Ok(found)
}

/// `--history`: rows over the runs of this machine that are kept.
pub(super) fn history(options: &Options) -> Result<Exit, Failure> {
    let store = Store::find(options.package);
    let environment = Environment::read();
    // What ran on a device is about the device of the newest run.
    let newest = store.runs().iter().rev().find_map(|(_, path)| read_kept(path).ok());
    let device = newest.as_ref().and_then(|run| run.device.as_ref()).map(|device| &device.info);
    let selection = &options.configuration.selection;
    let here = Machine { environment: &environment, device };
    let trends = trends(&store, &here, |row| is_chosen(selection, row));
    let found = trends.all();
    if found.is_empty() {
        let (runs, home) = (trends.runs, store.home().display());
        if runs == 0 {
            return Err(Failure::Nothing(format!(
                "no run of this program on this machine is kept in `{home}`; every run of `cargo bench` is from now on"
            )));
        }
        return Err(Failure::Nothing(format!(
            "none of the {runs} runs of this machine in `{home}` has such a row; --list-baselines shows what is kept"
        )));
    }
    let Trends { runs, foreign, .. } = trends;
    let others =
        if foreign > 0 { format!(" ({foreign} of other machines)") } else { String::new() };
    let head = format!("{runs} runs of this machine{others}, times against the sentinel\n");
    Ok(print(&(head + &report::history(&found, options.style))))
}

/// Writes the page and the exports that were asked for.
pub(super) fn write(report: &Report, options: &Options) -> Exit {
    let store = Store::find(options.package);
    let is_page = |export: &Export| export.format == Format::Html;
    let has_page = options.page || options.exports.iter().any(is_page);
    // A history costs the reading of every run; only pages have one.
    let found = if has_page {
        let keys: HashSet<RowKey> = report.rows.iter().map(RowReport::key).collect();
        trends(&store, &Machine::of(report), |row| keys.contains(&row.key())).all()
    } else {
        Vec::new()
    };
    let written = write_exports(report, &found, &options.exports);
    if !options.page {
        return written;
    }
    match store.write_page(&report::html(report, &found)) {
        Ok(path) => {
            say(&format!("report: {}", path.display()));
            written
        }
        Err(error) => {
            say(&format!("error: there is no page: {error}"));
            written.or(Exit::Internal)
        }
    }
}

/// Rows that are wanted over the runs that are kept; what cannot be read is named and left alone.
fn trends(store: &Store, here: &Machine<'_>, is_wanted: impl Fn(&RowReport) -> bool) -> Trends {
    let mut trends = Trends::default();
    for (_, path) in store.runs() {
        match read_kept(&path) {
            Ok(run) => trends.add(&run, here, &is_wanted),
            Err(error) => say(&format!("warning: {error}; it is left alone")),
        }
    }
    trends
}

/// `--list-baselines`: names of baselines, then runs, oldest first.
pub(super) fn list(options: &Options) -> String {
    let store = Store::find(options.package);
    let baselines = store.baselines();
    let runs = store.runs();
    let mut text = format!("{} baselines in {}\n", baselines.len(), store.home().display());
    for name in &baselines {
        let line = format!("{name}: {}", store.programs(name).join(", "));
        text += &format!("  {}\n", on_one_line(&line));
    }
    text += &format!("{} runs of {}\n", runs.len(), store.program());
    runs.iter().for_each(|(name, _)| text += &format!("  {}\n", on_one_line(name)));
    text
}
