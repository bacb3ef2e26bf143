//! Where words of a command line come in, for fuzz targets and tests.

use std::ffi::OsString;

use super::DefaultMode;
use super::chosen::choose;
use super::options::Options;
pub(crate) use super::workers::listed;
use crate::Workers;
use crate::doorway::REPORT;
use crate::plan::SizeFilter;

/// Bytes as a command line: words, one a line; then, behind a zero, variables as `NAME=VALUE`.
pub fn command_line(bytes: &[u8]) {
    let (words, variables) = match bytes.iter().position(|byte| *byte == 0) {
        Some(zero) => (&bytes[..zero], &bytes[zero + 1..]),
        None => (bytes, &[][..]),
    };
    let variables = lines(variables).map(|line| {
        let equals = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
        (text(&line[..equals]), text(line.get(equals + 1..).unwrap_or_default()))
    });
    let words = lines(words).map(text);
    match Options::read(words, variables, DefaultMode::Test, Workers::SameProcess) {
        Ok(options) => agree(&options),
        Err(error) => {
            let has_place = ["--", "KBENCH_", "`"].iter().any(|mark| error.contains(mark));
            assert!(has_place, "an error that names no place: {error}");
        }
    }
}

/// What holds for a command line that makes sense.
fn agree(options: &Options) {
    let selection = &options.configuration.selection;
    for size in &selection.sizes {
        assert_eq!(size.to_string().parse::<SizeFilter>().as_ref(), Ok(size));
    }
    if let Some(partition) = selection.partition {
        assert_eq!(partition.to_string().parse(), Ok(partition));
        assert!(partition.share() >= 1);
    }
    let effort = &options.configuration.effort;
    for rows in [0, 1, 1 << 20] {
        effort.for_rows(rows);
    }
    choose(&mut REPORT.clone(), selection);
}

/// Lines of bytes; none when there is nothing.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').take(if bytes.is_empty() { 0 } else { usize::MAX })
}

/// Bytes as the system gives them.
#[cfg(unix)]
fn text(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn text(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
