//! `--tune`: measured thresholds into the tuning files of the crates that they belong to.

use std::path::{Path, PathBuf};

use super::Exit;
use super::file::{FILE, read, workspace};
use super::output::say;
use crate::crossover::Claim;
use crate::files;
use crate::report::Report;
use crate::tuning::{Collected, TunedThreshold, collect, merge};

/// Writes what a report says about thresholds.
pub(super) fn tune(report: &Report) -> Exit {
    let Collected { thresholds, undecided } = collect(report);
    undecided.iter().for_each(|line| say(&format!("note: not tuned: {line}")));
    if thresholds.is_empty() {
        say("note: nothing to tune: no variant with `threshold = tuned(...)` or a number has a \
             threshold that was measured");
        return Exit::Fine;
    }
    let mut targets: Vec<(Target, Vec<TunedThreshold>)> = Vec::new();
    for (threshold, claim) in &thresholds {
        let target = Target::of(&threshold.krate, &thresholds, *claim);
        match targets.iter_mut().find(|(known, _)| *known == target) {
            Some((_, of_target)) => of_target.push(threshold.clone()),
            None => targets.push((target, vec![threshold.clone()])),
        }
    }
    let mut exit = Exit::Fine;
    for (target, thresholds) in &targets {
        if let Err(error) = target.write(thresholds) {
            say(&format!("error: `{}` cannot be tuned: {error}", target.path.display()));
            exit = Exit::Internal;
        }
    }
    let is_number = |claim: &Claim| matches!(claim, Claim::Number(_));
    if thresholds.iter().any(|(_, claim)| is_number(claim)) {
        say("note: `threshold = tuned(N)` takes the measured value; a plain number stays as it is");
    }
    exit
}

/// A tuning file.
#[derive(Debug, PartialEq)]
struct Target {
    path: PathBuf,
    /// The manifest of the crate, when the file is new: what was compiled without a file depends on it instead.
    manifest: Option<PathBuf>,
    /// Whether the crate's sources are on this machine.
    is_at_home: bool,
}

impl Target {
    /// The file of a crate: the one that it was compiled with, or a new one beside its manifest.
    fn of(krate: &str, thresholds: &[(TunedThreshold, Claim)], claim: Claim) -> Self {
        let of_crate = thresholds.iter().filter(|(threshold, _)| threshold.krate == krate);
        let claims = [claim].into_iter().chain(of_crate.map(|(_, claim)| *claim));
        let tuned = claims.filter_map(|claim| match claim {
            Claim::Tuned(tuned) => Some(tuned),
            Claim::None | Claim::Number(_) | Claim::Condition => None,
        });
        // What lies outside belongs to others: cargo's copies of dependencies are not for editing.
        let workspace = workspace();
        let is_ours = |path: &Path| workspace.as_ref().is_some_and(|ours| path.starts_with(ours));
        for tuned in tuned.filter(|tuned| is_ours(Path::new(tuned.folder))) {
            if let Some(file) = tuned.file.map(Path::new).filter(|file| file.is_file()) {
                return Target { path: file.to_owned(), manifest: None, is_at_home: true };
            }
            let folder = Path::new(tuned.folder);
            if folder.is_dir() {
                let manifest = Some(folder.join("Cargo.toml"));
                return Target { path: folder.join(FILE), manifest, is_at_home: true };
            }
        }
        Target { path: PathBuf::from(FILE), manifest: None, is_at_home: false }
    }

    fn write(&self, thresholds: &[TunedThreshold]) -> Result<(), String> {
        let existing = read(&self.path)?;
        let is_new = existing.is_none();
        let existing = existing.unwrap_or_default();
        let text = merge(&existing, thresholds).map_err(|error| error.to_string())?;
        files::replace(&self.path, text.as_bytes()).map_err(|error| error.to_string())?;
        // Cargo watches the file that a crate was compiled with. There was none, so it watches the manifest.
        if let Some(manifest) = self.manifest.as_ref().filter(|_| is_new)
            && let Err(error) = files::touch(manifest)
        {
            say(&format!(
                "warning: `{}` cannot be touched ({error}): rebuild the crate by hand",
                manifest.display()
            ));
        }
        let count = thresholds.len();
        let plural = if count == 1 { "" } else { "s" };
        let path = self.path.display();
        say(&match self.is_at_home {
            true => {
                format!("tuned {count} threshold{plural} in `{path}`; the next build takes them")
            }
            false => format!(
                "tuned {count} threshold{plural} in `{path}`; put it beside the crate's Cargo.toml"
            ),
        });
        Ok(())
    }
}
