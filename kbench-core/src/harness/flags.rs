//! Every flag, once: parsing, `--help`, environment twins and hints are all made from this table.

/// A flag of the command line.
#[derive(Debug)]
pub(super) struct Flag {
    /// Without dashes.
    pub(super) name: &'static str,
    /// One letter, or none.
    pub(super) short: Option<char>,
    /// What its value is called; flags without a value are switches.
    pub(super) value: Option<&'static str>,
    /// Where `--help` shows it.
    pub(super) group: Group,
    /// One line.
    pub(super) help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Mode,
    Select,
    Effort,
    Gpu,
    Results,
    Libtest,
    /// Understood, without effect, and not worth a line.
    Hidden,
}

impl Group {
    /// Those that `--help` shows, with their titles.
    pub(super) const SHOWN: [(Group, &'static str); 6] = [
        (Group::Mode, "Mode"),
        (Group::Select, "Select"),
        (Group::Effort, "Effort"),
        (Group::Gpu, "GPU"),
        (Group::Results, "Results"),
        (Group::Libtest, "As in Rust's own test harness"),
    ];
}

const fn switch(name: &'static str, group: Group, help: &'static str) -> Flag {
    Flag { name, short: None, value: None, group, help }
}

const fn option(name: &'static str, value: &'static str, group: Group, help: &'static str) -> Flag {
    Flag { name, short: None, value: Some(value), group, help }
}

/// In the order of `--help`.
pub(super) const FLAGS: &[Flag] = &[
    switch("bench", Group::Mode, "check and measure (what `cargo bench` passes)"),
    switch(
        "test",
        Group::Mode,
        "check and measure nothing (the default of bench targets without --bench)",
    ),
    switch("full", Group::Mode, "with --test: check every selected size, however long that takes"),
    option(
        "regimes",
        "NAME,...",
        Group::Mode,
        "check on these kinds of data alone besides the usual ones, as a failure names them (or: none)",
    ),
    switch(
        "list",
        Group::Mode,
        "list what is selected; starts no worker that --worker does not name",
    ),
    switch(
        "list-kernels",
        Group::Mode,
        "list kernels with their types and variants; starts workers as --list does",
    ),
    switch(
        "list-sizes",
        Group::Mode,
        "list kernels with their sizes; starts workers as --list does",
    ),
    Flag { short: Some('h'), ..switch("help", Group::Mode, "this text") },
    Flag { short: Some('V'), ..switch("version", Group::Mode, "the version of kbench") },
    option(
        "kernel",
        "NAME,...",
        Group::Select,
        "kernels by name or path, or a module for all of its kernels",
    ),
    option("variant", "NAME,...", Group::Select, "variants by name"),
    option("backend", "NAME,...", Group::Select, "serial, parallel or cuda"),
    option("type", "NAME,...", Group::Select, "element types"),
    switch(
        "all-types",
        Group::Select,
        "all element types at all sizes, where a suite measures those after the first at one size",
    ),
    option(
        "size",
        "LABEL|CONDITION",
        Group::Select,
        "a labelled shape, or for example 'dim>=1024' or 'rows=1&&dim>64' or 'm=n'",
    ),
    option(
        "axis",
        "NAME=VALUE,...",
        Group::Select,
        "measure these values of an axis instead of the listed ones",
    ),
    option(
        "base",
        "NAME",
        Group::Select,
        "compare with this variant instead of the kernel's own function",
    ),
    option(
        "along",
        "AXIS",
        Group::Select,
        "look for crossovers along this axis (default: the one that spans most)",
    ),
    option(
        "partition",
        "slice:M/N",
        Group::Select,
        "the M-th of N shares of the kernels (or hash:M/N; slice:auto asks Slurm or GitLab)",
    ),
    option(
        "worker",
        "NAME[=COMMAND]",
        Group::Select,
        "add the variants of another program: one that the kbench.toml beside Cargo.lock lists, or any command; may be repeated (none: not even those that it lists)",
    ),
    switch("quick", Group::Effort, "a first look: 0.1 s per row, 20 s in all"),
    switch(
        "thorough",
        Group::Effort,
        "for publication: 30 s per row; from 36 rows on 18 min and 0.36 s per row",
    ),
    option(
        "budget",
        "TIME",
        Group::Effort,
        "wall time of a run, checks included (default: 5s per row; from 36 rows on 3 min and 0.06s per row)",
    ),
    option(
        "measurement-time",
        "TIME",
        Group::Effort,
        "time in samples of a row that is equal to its base (default 1s)",
    ),
    option(
        "launches",
        "N",
        Group::Effort,
        "processes that measure (default: by what a start costs and where the noise is)",
    ),
    switch("isolate", Group::Effort, "measure every variant in launches of its own"),
    switch("no-search", Group::Effort, "measure no sizes between the listed ones for crossovers"),
    option("sample-size", "N", Group::Effort, "samples per row, instead of a time"),
    option(
        "warm-up-time",
        "TIME",
        Group::Effort,
        "untimed calls before a row is calibrated (default 20ms; less when time is short)",
    ),
    option("iterations", "N", Group::Effort, "calls per sample, instead of calibration"),
    option(
        "threads",
        "N,...",
        Group::Effort,
        "measure parallel variants in pools of these many threads",
    ),
    option(
        "timeout",
        "TIME",
        Group::Effort,
        "a call that takes longer fails, and the run goes on (default 60s; samples: by calibration)",
    ),
    option("seed", "N", Group::Effort, "seed of the data"),
    option(
        "order-seed",
        "N",
        Group::Effort,
        "seed of order and placement, to repeat those of a run (default: another one for every run)",
    ),
    option("device", "N", Group::Gpu, "the CUDA device, by its number (default 0)"),
    switch("no-gpu", Group::Gpu, "skip CUDA variants, and let no other find a GPU"),
    switch("hot", Group::Gpu, "time CUDA variants back to back, caches as the last call left them"),
    switch(
        "cold",
        Group::Gpu,
        "time them with an empty second-level cache; if no other mode is named, time CPU variants with cold caches, too",
    ),
    switch("graph", Group::Gpu, "time them in a CUDA graph of many calls"),
    switch(
        "end-to-end",
        Group::Gpu,
        "time them from data on the host to results on the host (default: all four)",
    ),
    switch(
        "profile",
        Group::Gpu,
        "call every CUDA variant once inside a profiler range, for ncu and nsys; times nothing",
    ),
    option("dump", "DIR", Group::Gpu, "write the PTX of device code to a folder"),
    option(
        "export",
        "FORMAT=PATH",
        Group::Results,
        "write the results as json, csv, markdown, html, go, libtest, gbench, criterion (a folder), bmf, github or junit; may be repeated",
    ),
    option(
        "save-baseline",
        "NAME",
        Group::Results,
        "keep this run, and its executable, as a baseline",
    ),
    option(
        "baseline",
        "NAME",
        Group::Results,
        "compare with a baseline, whose executable is measured in turns with this one; a document by its path starts nothing",
    ),
    switch(
        "foreign-baseline",
        Group::Results,
        "accept one of another machine if its executable is kept: both are measured here",
    ),
    option(
        "load-baseline",
        "NAME",
        Group::Results,
        "report on a baseline, or a run document by its path, and measure nothing",
    ),
    option(
        "merge",
        "PATH,...",
        Group::Results,
        "report on the parts of a suite (see --partition): run documents, or folders of them",
    ),
    switch(
        "plot",
        Group::Results,
        "draw speed-up by size, and scaling by threads, after the tables",
    ),
    switch(
        "history",
        Group::Mode,
        "rows over the runs of this machine that are kept, and what changed when",
    ),
    switch("list-baselines", Group::Mode, "list baselines and the runs that are kept"),
    switch("report", Group::Results, "write target/kbench/report/index.html: one page with charts"),
    option("keep", "N", Group::Results, "runs that are kept in target/kbench (default 100)"),
    option(
        "error-rate",
        "discovery|family",
        Group::Results,
        "at most 5 % of the differences named are false (default), or with a chance of 5 % any; --gate always uses family",
    ),
    option(
        "margin",
        "PERCENT",
        Group::Results,
        "smaller differences are none that matter (default 2% from ten comparisons on; below, 1%, and certain ones are named)",
    ),
    option(
        "gate",
        "LIMIT",
        Group::Results,
        "exit 102 when a row is slower than the baseline by more than LIMIT, such as 5%, or a target is missed",
    ),
    option(
        "summary",
        "PATH",
        Group::Results,
        "write a Markdown summary for a pull request (also where GITHUB_STEP_SUMMARY says)",
    ),
    switch("tune", Group::Results, "write measured thresholds to kbench.toml, for the next build"),
    option(
        "format",
        "pretty|terse|json",
        Group::Results,
        "how results are printed (default pretty)",
    ),
    option("color", "auto|always|never", Group::Results, "colour (default auto)"),
    Flag {
        short: Some('q'),
        ..switch("quiet", Group::Results, "no progress, and one character per test")
    },
    switch(
        "benchmem",
        Group::Results,
        "count allocations and processor events of a call (see kbench::Allocator)",
    ),
    switch("exact", Group::Libtest, "filters and skips are whole names"),
    option("skip", "FILTER", Group::Libtest, "leave out names that contain this; may be repeated"),
    switch("ignored", Group::Libtest, "only variants marked `ignore`"),
    switch("include-ignored", Group::Libtest, "variants marked `ignore` as well"),
    switch("nocapture", Group::Hidden, ""),
    switch("no-capture", Group::Hidden, ""),
    switch("show-output", Group::Hidden, ""),
    option("test-threads", "N", Group::Hidden, ""),
    option("logfile", "PATH", Group::Hidden, ""),
    switch("report-time", Group::Hidden, ""),
    switch("ensure-time", Group::Hidden, ""),
    switch("fail-fast", Group::Hidden, ""),
    switch("shuffle", Group::Hidden, ""),
    option("shuffle-seed", "N", Group::Hidden, ""),
    Flag { short: Some('Z'), ..option("unstable", "FLAG", Group::Hidden, "") },
];

/// Flags of which one excludes the others: when one is typed, variables of the others do not count.
pub(super) const EXCLUSIVE: &[&[&str]] = &[
    &["quick", "thorough"],
    &["ignored", "include-ignored"],
    &[
        "help",
        "version",
        "list",
        "list-kernels",
        "list-sizes",
        "list-baselines",
        "history",
        "load-baseline",
        "merge",
        "test",
        "bench",
    ],
];

/// Flags that later versions give a meaning; naming one is an error that says so, not a typing error.
pub(super) const RESERVED: &[&str] = &["metric"];

/// The flag of a long name.
pub(super) fn long(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// The flag of a letter.
pub(super) fn short(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(letter))
}

impl Flag {
    /// `KBENCH_SAMPLE_SIZE` for `--sample-size`.
    pub(super) fn variable(&self) -> String {
        format!("KBENCH_{}", self.name.to_uppercase().replace('-', "_"))
    }
}
