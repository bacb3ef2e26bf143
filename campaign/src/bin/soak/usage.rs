//! What the controller takes of the machine: it must not grow with the number of runs.

use std::fmt;
use std::fs;

use super::assassin::children;
use super::audit::Audit;
use super::kernels::left_behind;

/// Growth of memory from the first half of all runs to the second that is no leak: allocators keep what they had.
const GROWTH: f64 = 1.25;

/// What it takes at one moment, between two runs.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    resident_kb: u64,
    threads: u64,
    files: usize,
    children: usize,
    /// Processes that its workers have started and that outlived them.
    orphans: usize,
}

impl Usage {
    /// What it takes now.
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
            let digits: String = line.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        Usage {
            resident_kb: figure("VmRSS:"),
            threads: figure("Threads:"),
            files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            children: children().len(),
            orphans: orphans(),
        }
    }
}

fn orphans() -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let command = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    let ours = format!("sleep\0{}\0", left_behind(std::process::id())).into_bytes();
    processes.filter_map(command).filter(|command| *command == ours).count()
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Usage { resident_kb, threads, files, children, orphans } = self;
        let mebibytes = resident_kb / 1024;
        let processes = children + orphans;
        write!(f, "{mebibytes} MiB, {threads} threads, {files} files, {processes} processes left")
    }
}

/// One of its figures.
type Figure = fn(&Usage) -> u64;

/// Compares the second half of all runs with the first; the very first run opens what is opened once.
pub(crate) fn audit(usages: &[Usage], audit: &mut Audit) {
    let Some((_, usages)) = usages.split_first() else { return };
    let (first, second) = usages.split_at(usages.len() / 2);
    if first.is_empty() {
        return;
    }
    let most = |usages: &[Usage], figure: Figure| usages.iter().map(figure).max();
    let figures: [(&str, Figure); 3] = [
        ("kB of memory", |usage| usage.resident_kb),
        ("threads", |usage| usage.threads),
        ("open files", |usage| usage.files as u64),
    ];
    for (name, figure) in figures {
        let (before, after) = (most(first, figure).unwrap_or(0), most(second, figure).unwrap_or(0));
        if after as f64 > before as f64 * GROWTH + 1.0 {
            audit.complain(format!("{name} grew from {before} to {after}"));
        }
    }
    if usages.iter().any(|usage| usage.children > 1 || usage.orphans > 0) {
        audit.complain("processes were left behind".to_owned());
    }
}
