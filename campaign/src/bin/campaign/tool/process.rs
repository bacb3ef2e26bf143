//! Running a tool's executable to its end, or to the end of our patience.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// It did not start, or its files could not be handled.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// It did not end.
    #[error("{program} did not end within {} s", limit.as_secs())]
    TimedOut {
        /// The executable.
        program: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It ended badly.
    #[error("{program} ended with {status}: {complaint}")]
    Ended {
        /// The executable.
        program: String,
        /// How.
        status: ExitStatus,
        /// The last line of its standard error.
        complaint: String,
    },
    /// It ended well, and says why there is no answer.
    #[error("{program} does not compare: {reason}")]
    Declined {
        /// The executable.
        program: &'static str,
        /// What it says.
        reason: String,
    },
    /// It ended well, and what it left is not understood.
    #[error("no answer in what {program} wrote: {text}")]
    Unreadable {
        /// The executable.
        program: &'static str,
        /// What it wrote.
        text: String,
    },
}

/// How much longer than its budget a run may take: rivals analyse on top of it.
const PATIENCE: u32 = 10;

/// What any run may take, however short its budget.
const LEAST_PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command that should take about as long as its budget; gives its standard output.
pub(super) fn run(command: &mut Command, budget: Duration) -> Result<String, Failure> {
    run_to(command, budget, ExitStatus::success)
}

/// The same for a tool that has other ways to end well.
pub(super) fn run_to(
    command: &mut Command,
    budget: Duration,
    is_good: fn(&ExitStatus) -> bool,
) -> Result<String, Failure> {
    // Where it lies is nobody's business who reads the records.
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let program = program.to_string_lossy().into_owned();
    let trouble = |source| Failure::System { what: format!("running {program}"), source };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(trouble)?;
    let output = collect(child.stdout.take());
    let complaints = collect(child.stderr.take());
    let limit = LEAST_PATIENCE + budget * PATIENCE;
    let Ok(output) = output.recv_timeout(limit) else {
        child.kill().and_then(|()| child.wait()).map_err(trouble)?;
        return Err(Failure::TimedOut { program, limit });
    };
    let status = child.wait().map_err(trouble)?;
    if is_good(&status) {
        return Ok(output);
    }
    let complaints = complaints.recv_timeout(limit).unwrap_or_default();
    let complaint = complaints.lines().last().unwrap_or_default().to_owned();
    Err(Failure::Ended { program, status, complaint })
}

/// Reads a pipe beside everything else; its text comes when the pipe closes.
fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could be read before an error is all there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        // Nobody listens any more after a timeout.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<String, Failure> {
        run(Command::new("sh").args(["-c", script]), Duration::ZERO)
    }

    #[test]
    fn output_comes_back_and_failures_say_why() {
        assert_eq!(shell("echo fine").expect("runs"), "fine\n");
        let failure = shell("echo first >&2; echo no luck >&2; exit 3").expect_err("fails");
        let text = failure.to_string();
        assert!(
            text.contains("no luck") && text.contains('3') && !text.contains("first"),
            "{text}"
        );
        let one = |status: &ExitStatus| status.code() == Some(1);
        let mut command = Command::new("sh");
        command.args(["-c", "echo slower; exit 1"]);
        assert_eq!(run_to(&mut command, Duration::ZERO, one).expect("an answer"), "slower\n");
    }
}
