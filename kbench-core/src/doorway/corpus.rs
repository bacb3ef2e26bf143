//! What is kept in `fuzz/corpus`, and variations of it: a little fuzzing in every test run, the same in each.
//!
//! An entry that once broke something has a name that says what; it stays.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::{command_line, foreign_messages, run_document, tuning_file, worker_messages};
use crate::hash::fnv64;
use crate::value::SplitMix;

/// Pieces that change the meaning of what they get into.
const PIECES: [&str; 16] = [
    "18446744073709551615",
    "-1",
    "1e308",
    "0",
    "null",
    "\"",
    "\\",
    "=",
    ",",
    "\n",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "../",
    "[[threshold]]\n",
    "--",
];

/// Entries of a target, by name.
fn entries(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files =
        std::fs::read_dir(&folder).expect("a corpus").map(|file| file.expect("a file").path());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut entries: Vec<(String, Vec<u8>)> =
        files.map(|path| (name(&path), std::fs::read(&path).expect("readable"))).collect();
    entries.sort();
    entries
}

/// Bytes with a few changes.
fn varied(bytes: &[u8], random: &mut SplitMix) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = bytes.len().min(at + 1 + random.below(16) as usize);
        match random.below(5) {
            0 => bytes.splice(at..at, PIECES[random.below(16) as usize].bytes()).for_each(drop),
            1 => bytes.splice(at..end, PIECES[random.below(16) as usize].bytes()).for_each(drop),
            2 => bytes.drain(at..end).for_each(drop),
            3 => bytes.extend_from_within(at..end),
            _ => bytes[at..end].iter_mut().take(1).for_each(|b| *b ^= 1 << random.below(8)),
        }
    }
    bytes
}

/// Gives a target every entry, and so many variations of each.
fn give(name: &str, target: fn(&[u8]), variations: usize) {
    let entries = entries(name);
    assert!(!entries.is_empty());
    for (entry, bytes) in entries {
        let mut random = SplitMix(fnv64(entry.as_bytes()));
        for variation in 0..=variations {
            let input = if variation == 0 { bytes.clone() } else { varied(&bytes, &mut random) };
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            let shown = input[..input.len().min(2000)].escape_ascii();
            assert!(outcome.is_ok(), "{name}/{entry}, variation {variation}: {shown}");
        }
    }
}

#[test]
fn no_command_line_is_too_strange_to_be_answered() {
    give("command_line", command_line, 60);
}

#[test]
fn no_tuning_file_is_too_strange_to_be_answered() {
    give("tuning_file", tuning_file, 60);
}

#[test]
fn no_run_document_is_too_strange_to_be_answered() {
    give("run_document", run_document, 2);
}

#[test]
fn no_foreign_worker_is_too_strange_to_be_answered() {
    give("foreign_messages", foreign_messages, 60);
}

#[test]
fn no_worker_is_too_strange_to_be_answered() {
    give("worker_messages", worker_messages, 6);
}
