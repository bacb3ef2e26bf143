//! Runs that are kept: shown without measuring anything.

use super::against::{Against, Foreign};
use super::{Exit, Failure, Options, deliver};
use crate::store::Store;

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
