//! `kbench.toml`: measured thresholds, limits of the gate, foreign workers.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Its name.
pub(super) const FILE: &str = "kbench.toml";

/// The file that is nearest: in the current folder or one above, up to the one with the lock file.
pub(super) fn nearest_file() -> Result<Option<(PathBuf, String)>, String> {
    let Ok(here) = env::current_dir() else { return Ok(None) };
    for folder in here.ancestors() {
        let path = folder.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`{}` cannot be read: {error}", path.display())),
        }
        if folder.join("Cargo.lock").is_file() {
            break;
        }
    }
    Ok(None)
}
