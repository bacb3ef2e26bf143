//! Telling whoever watches a run what goes on.

/// Someone who watches a run.
pub trait Watch {
    /// Something goes on: `done` of `total` steps of a stage, now at `what`.
    fn step(&mut self, stage: Stage, done: f64, total: f64, what: &str);

    /// It is decided how much is measured.
    fn planned(&mut self, _: Planned) {}
}

/// How much is to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Rows that are measured.
    pub rows: usize,
    /// The fewest launches of a row, and the most; none before calls were calibrated.
    pub launches: Option<(u32, u32)>,
    /// Seconds from now on, at most.
    pub seconds: f64,
}

/// The parts of a run that take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Comparing results with references.
    Checking,
    /// Compiling device code.
    Compiling,
    /// Finding the number of calls.
    Calibrating,
    /// Taking samples.
    Measuring,
    /// Taking samples at sizes that nobody listed.
    Searching,
}

/// Somebody who watches the stages of a run, or those of a search.
pub enum Told<'a> {
    /// Every stage is what it is.
    AsItIs(&'a mut dyn Watch),
    /// Every stage is part of the search.
    OfSearch(&'a mut dyn Watch),
}

impl Watch for Told<'_> {
    fn step(&mut self, stage: Stage, done: f64, total: f64, what: &str) {
        match self {
            Told::AsItIs(watch) => watch.step(stage, done, total, what),
            Told::OfSearch(watch) => watch.step(Stage::Searching, done, total, what),
        }
    }

    fn planned(&mut self, planned: Planned) {
        match self {
            Told::AsItIs(watch) => watch.planned(planned),
            // A search has many small plans.
            Told::OfSearch(_) => {}
        }
    }
}

/// Watches nothing.
impl Watch for () {
    fn step(&mut self, _: Stage, _: f64, _: f64, _: &str) {}
}
