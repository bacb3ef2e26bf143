//! Somebody who ends workers from outside, or stops them for a while.

use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Time between two attempts: not that of a run divided by a whole number, so that all its moments are met.
const PAUSE: Duration = Duration::from_millis(3_700);

/// How long a worker is stopped.
const STOP: Duration = Duration::from_millis(300);

/// Starts one, who goes home when what this gives is dropped.
pub(crate) fn start() -> Sender<()> {
    let (sender, stopped) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        for attempt in 0.. {
            if stopped.recv_timeout(PAUSE) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
            let Some(victim) = children().pop() else { continue };
            match attempt % 3 {
                0 => signal("KILL", &victim),
                1 => {
                    signal("STOP", &victim);
                    std::thread::sleep(STOP);
                    signal("CONT", &victim);
                }
                _ => signal("TERM", &victim),
            }
        }
    });
    sender
}

/// Processes that this one has started, by their numbers.
pub(crate) fn children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    children
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn signal(name: &str, process: &str) {
    let mut command = Command::new("kill");
    let _ = command.args([&format!("-{name}"), process]).stderr(Stdio::null()).status();
}
