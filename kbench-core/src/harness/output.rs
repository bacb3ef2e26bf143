//! Writing results: to stdout, and to files as a whole or not at all.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::Exit;
use crate::report::{Report, csv, json};

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) format: Format,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Json,
}

impl Export {
    /// `FORMAT=PATH`. A folder that does not exist is an error now, not after an hour of measuring.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or_else(|| format!("`{text}` names no file; write for example csv=results.csv"))?;
        let format = match format {
            "csv" => Format::Csv,
            "json" => Format::Json,
            _ => return Err(format!("there is no format `{format}`; there are: csv, json")),
        };
        if path == "-" {
            return Err("results are printed anyway; name a file, or use --format json".into());
        }
        let path = PathBuf::from(path);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(format!("the folder `{}` does not exist", folder.display()));
        }
        if path.is_dir() {
            return Err(format!("`{}` is a folder; name a file", path.display()));
        }
        Ok(Export { format, path })
    }
}

/// Says something beside the results; nobody may be listening.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints results; a reader that went away is not an error.
pub(super) fn print(text: &str) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("error: results cannot be printed: {error}"));
            Exit::Internal
        }
        _ => Exit::Fine,
    }
}

/// Writes all exports; one that fails does not stop the others.
pub(super) fn write_exports(report: &Report, exports: &[Export]) -> Exit {
    let mut exit = Exit::Fine;
    for Export { format, path } in exports {
        let text = match format {
            Format::Csv => Ok(csv(report)),
            Format::Json => json(report).map_err(io::Error::other),
        };
        if let Err(error) = text.and_then(|text| write_atomically(path, &text)) {
            say(&format!("error: `{}` cannot be written: {error}", path.display()));
            exit = Exit::Internal;
        }
    }
    exit
}

/// A reader sees the old file or the new one, never a part. What is no plain file (a pipe, a device) is written to.
pub(super) fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
