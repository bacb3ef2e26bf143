//! What a worker prints, on its way to the controller's standard error.
//!
//! Kernels may print, and libraries do when they give up. All of it is passed on line by line, up to an amount that a person
//! might read; the last lines are kept, for they often say why a process ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::kernel::PANIC_NOTE;

/// Bytes of one worker that are passed on.
const MOST_BYTES: usize = 64 << 10;

/// A line is cut here.
const LONGEST_LINE: u64 = 4 << 10;

/// Lines that are kept for the end.
const LAST_LINES: usize = 3;

/// Bytes of a last line that are shown.
const SHOWN: usize = 300;

/// Passes on what one worker prints, in a thread that ends when nobody can print any more.
pub(crate) struct Output {
    last: Arc<Mutex<VecDeque<String>>>,
    thread: JoinHandle<()>,
}

impl Output {
    /// Passes on what comes through a pipe.
    pub(crate) fn of(pipe: PipeReader) -> Self {
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let kept = last.clone();
        let thread = std::thread::spawn(move || {
            pass_on(pipe, &mut std::io::stderr(), |line| keep(&kept, line));
        });
        Output { last, thread }
    }

    /// The last lines of a worker that has ended. They may still be on their way, and whoever it has started may go on
    /// printing for ever.
    pub(crate) fn last_words(&self, patience: Duration) -> Option<String> {
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        let lines = lock(&self.last);
        (!lines.is_empty()).then(|| Vec::from_iter(lines.iter().cloned()).join(" / "))
    }
}

fn lock(lines: &Mutex<VecDeque<String>>) -> MutexGuard<'_, VecDeque<String>> {
    lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn keep(lines: &Mutex<VecDeque<String>>, line: &str) {
    let line = line.trim();
    if is_about_the_stack(line) {
        return;
    }
    let mut lines = lock(lines);
    if line.is_empty() {
        return lines.clear();
    }
    if lines.len() == LAST_LINES {
        lines.pop_front();
    }
    lines.push_back(line.chars().take(SHOWN).collect());
}

/// Whether a line only tells by which way a process came to its end: `12: module::function`, `at file.rs:1:2`.
fn is_about_the_stack(line: &str) -> bool {
    let number = line.split(':').next().unwrap_or_default();
    let is_frame = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_frame || ["at ", "note: ", "stack backtrace:"].iter().any(|start| line.starts_with(start))
}

/// Passes on lines, and hands over those that say something. Notes about panics are for the controller alone; an empty one
/// says that what was printed before is of no interest any more.
fn pass_on(pipe: impl Read, to: &mut impl Write, mut hand_over: impl FnMut(&str)) {
    let mut reader = BufReader::new(pipe);
    let (mut line, mut left) = (Vec::new(), Some(MOST_BYTES));
    loop {
        line.clear();
        match (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // A note may follow what was printed without the end of a line.
        let note = line.windows(PANIC_NOTE.len()).position(|part| part == PANIC_NOTE.as_bytes());
        let printed = &line[..note.unwrap_or(line.len())];
        let text = String::from_utf8_lossy(printed);
        if !text.trim().is_empty() {
            hand_over(&text);
        }
        if let Some(note) = note {
            hand_over(&String::from_utf8_lossy(&line[note + PANIC_NOTE.len()..]));
        }
        match left.map(|left| left.checked_sub(printed.len())) {
            None => continue,
            Some(Some(rest)) => {
                left = Some(rest);
                let _ = to.write_all(printed);
            }
            Some(None) => {
                left = None;
                let _ =
                    writeln!(to, "note: what else the kernels of this launch print is not shown");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &[u8]) -> (String, Vec<String>) {
        let (mut out, mut lines) = (Vec::new(), Vec::new());
        pass_on(text, &mut out, |line| lines.push(line.trim().to_owned()));
        (String::from_utf8(out).expect("text"), lines)
    }

    #[test]
    fn lines_are_passed_on_and_notes_of_panics_are_not() {
        let text = format!("one\n{PANIC_NOTE}panicked at x.rs:1\n\u{ff}two");
        let (out, lines) = passed(text.as_bytes());
        assert_eq!(out, "one\n\u{ff}two");
        assert_eq!(lines, ["one", "panicked at x.rs:1", "\u{ff}two"]);
        let (out, lines) = passed(format!("a dot.{PANIC_NOTE}\nmore\n").as_bytes());
        assert_eq!(
            (out.as_str(), lines),
            ("a dot.more\n", vec!["a dot.".into(), String::new(), "more".into()])
        );
    }

    #[test]
    fn a_kernel_that_prints_without_end_is_cut_short() {
        let (out, lines) = passed("a line of some length\n".repeat(100_000).as_bytes());
        assert!(out.len() < MOST_BYTES + 100 && out.ends_with("is not shown\n"), "{}", out.len());
        assert_eq!(lines.len(), 100_000);
        let (out, _) = passed(&vec![b'x'; 1 << 20]);
        assert!(out.len() < MOST_BYTES + 100, "{}", out.len());
    }

    #[test]
    fn the_last_lines_are_kept() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let output = Output::of(reader);
        for number in 0..10 {
            writeln!(writer, "{PANIC_NOTE}line {number}\n").expect("written");
            if number == 6 {
                writeln!(writer, "{PANIC_NOTE}").expect("written");
            }
        }
        writeln!(writer, "stack backtrace:\n  12: core::panicking::panic\n    at ./a.rs:1:2\n")
            .expect("written");
        drop(writer);
        let words = output.last_words(Duration::from_secs(20));
        assert_eq!(words.as_deref(), Some("line 7 / line 8 / line 9"));
    }
}
