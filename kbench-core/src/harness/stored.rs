//! Runs that are kept: shown without measuring anything.

use super::against::{Against, Foreign};
use super::{Exit, Failure, Options, deliver};
use crate::store::{Store, merge, read_run};
use std::fs;
use std::path::PathBuf;

/// `--load-baseline NAME`: shows a run that was measured before.
pub(super) fn load(options: &Options) -> Result<Exit, Failure> {
    let store = Store::find();
    let name = options.load_baseline.as_deref().unwrap_or_default();
    let mut report = store.baseline(name)?;
    if let Some(baseline) = options.baseline.as_deref() {
        let against =
            Against::find(&store, baseline, Foreign::Refused).map_err(Failure::Refused)?;
        against.put_beside_stored(&store, &mut report);
    }
    Ok(deliver(&report, options))
}

/// `--merge PATH`: shows runs of several machines as one.
pub(super) fn merged(options: &Options) -> Result<Exit, Failure> {
    let mut parts = Vec::new();
    for path in documents(&options.merge)? {
        parts.push(read_run(&path)?);
    }
    let report = merge(parts).map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(deliver(&report, options))
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
    found.sort();
    Ok(found)
}

/// `--list-baselines`: names of baselines, then runs, oldest first.
pub(super) fn list() -> String {
    let store = Store::find();
    let baselines = store.baselines();
    let runs = store.runs();
    let mut text = format!("{} baselines in {}\n", baselines.len(), store.home().display());
    baselines.iter().for_each(|name| text += &format!("  {name}\n"));
    text += &format!("{} runs\n", runs.len());
    runs.iter().for_each(|(name, _)| text += &format!("  {name}\n"));
    text
}
