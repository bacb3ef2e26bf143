//! Reading run documents: those of the store, and those that anybody may have written.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{StoreError, read_document};
use crate::files::{self, TooLarge};
use crate::report::Report;

/// The variable that says how long documents from elsewhere may be.
pub(crate) const READ_LIMIT: &str = "KBENCH_READ_LIMIT";

/// Ten times what the largest suite that we know has written; what is read of it takes several times that in memory.
const USUAL_LIMIT: u64 = 64 << 20;

/// Bytes that a document from elsewhere may have: 64 MiB, or what `KBENCH_READ_LIMIT` says.
pub fn read_limit() -> Result<u64, StoreError> {
    match env::var(READ_LIMIT) {
        Ok(text) if !text.is_empty() => {
            bytes(&text).ok_or(StoreError::BadLimit { variable: READ_LIMIT, text })
        }
        _ => Ok(USUAL_LIMIT),
    }
}

/// Documents that are read together may have so many times the length of one.
const TOGETHER: u64 = 16;

/// Reads run documents that anybody may have written, which have sixteen times [`read_limit`] bytes at most.
pub fn read_parts(paths: &[PathBuf]) -> Result<Vec<Report>, StoreError> {
    let limit = read_limit()?;
    let together = limit.saturating_mul(TOGETHER);
    let lengths = paths.iter().map(|path| fs::metadata(path).map_or(0, |metadata| metadata.len()));
    if lengths.fold(0, u64::saturating_add) > together {
        return Err(StoreError::TooLargeTogether { limit: together, variable: READ_LIMIT });
    }
    paths.iter().map(|path| read(path, limit)).collect()
}

/// Bytes from a number with a unit: `512MiB`, `2 GiB`, `1000000`.
fn bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Reads a run document that anybody may have written: a regular file of at most [`read_limit`] bytes.
pub fn read_run(path: &Path) -> Result<Report, StoreError> {
    read(path, read_limit()?)
}

/// Reads a run of the store. Those of this user are read however long they are.
pub fn read_kept(path: &Path) -> Result<Report, StoreError> {
    let (text, _) = text_of_kept(path)?;
    document(path, &text)
}

/// The text of a document of the store, and whether it is this user's own.
pub(super) fn text_of_kept(path: &Path) -> Result<(String, bool), StoreError> {
    let file = files::open(path).map_err(StoreError::reading(path))?;
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let is_own = !is_link && file.metadata().is_ok_and(|metadata| files::is_own(&metadata));
    let limit = if is_own { u64::MAX } else { read_limit()? };
    let text = files::read_file(file, limit).and_then(files::text_of);
    Ok((text.map_err(|error| unread(path, error))?, is_own))
}

fn read(path: &Path, limit: u64) -> Result<Report, StoreError> {
    let text = files::read_text(path, limit).map_err(|error| unread(path, error))?;
    document(path, &text)
}

pub(super) fn document(path: &Path, text: &str) -> Result<Report, StoreError> {
    read_document(text).map_err(|source| StoreError::Unreadable { path: path.to_owned(), source })
}

fn unread(path: &Path, error: io::Error) -> StoreError {
    let limit = error.get_ref().and_then(|source| source.downcast_ref::<TooLarge>());
    match limit {
        Some(TooLarge { limit }) => {
            StoreError::TooLarge { path: path.to_owned(), limit: *limit, variable: READ_LIMIT }
        }
        None => StoreError::reading(path)(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;

    #[test]
    fn limits_have_units() {
        for (text, expected) in [
            ("1000", Some(1000)),
            ("64MiB", Some(64 << 20)),
            ("2 GiB", Some(2 << 30)),
            ("3KiB", Some(3 << 10)),
            ("0", None),
            ("MiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("1GB", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn documents_that_are_merged_have_a_limit_together() {
        let folder = Folder::new();
        let text = include_str!("fixtures/schema-1.json");
        let part = |name: &str, length: u64| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("made");
            let file = fs::File::options().write(true).open(&path).expect("there");
            file.set_len(length.max(text.len() as u64)).expect("sparse");
            path
        };
        let small: Vec<PathBuf> = (0..20).map(|i| part(&format!("{i}.json"), 0)).collect();
        assert_eq!(read_parts(&small).expect("small").len(), 20);
        let large: Vec<PathBuf> = (0..17).map(|_| part("large.json", USUAL_LIMIT)).collect();
        let error = read_parts(&large).expect_err("too long").to_string();
        assert!(error.contains("more than 1 GiB together"), "{error}");
    }

    #[test]
    fn a_document_from_elsewhere_has_a_limit_and_the_users_own_run_has_none() {
        let folder = Folder::new();
        let path = folder.path().join("long.json");
        let file = fs::File::create(&path).expect("made");
        file.set_len(USUAL_LIMIT + 1).expect("sparse");
        let error = read_run(&path).expect_err("too long").to_string();
        assert!(error.contains("more than 64 MiB") && error.contains(READ_LIMIT), "{error}");
        let error = read_kept(&path).expect_err("no run").to_string();
        assert!(error.contains("no JSON"), "{error}");
    }
}
