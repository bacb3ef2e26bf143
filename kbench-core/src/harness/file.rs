//! `kbench.toml`: measured thresholds, limits of the gate, foreign workers.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::files::{is_own, read_text};

/// Its name.
pub(super) const FILE: &str = "kbench.toml";

/// Bytes that it may have: far more than anybody writes.
const MOST_BYTES: u64 = 1 << 20;

/// The folder of the lock file: the current one, or the nearest above it.
pub(super) fn workspace() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    here.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).map(Path::to_owned)
}

/// The file that is nearest: in the current folder or one above, up to the one with the lock file. Without a lock file it is that
/// of the current folder, for what lies above may be anybody's.
pub(super) fn nearest_file() -> Result<Option<(PathBuf, String)>, String> {
    let Ok(here) = env::current_dir() else { return Ok(None) };
    let root = workspace().unwrap_or_else(|| here.clone());
    for folder in here.ancestors().take_while(|folder| folder.starts_with(&root)) {
        let path = folder.join(FILE);
        if let Some(text) = read(&path)? {
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}

/// The text of such a file; none where there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    match read_text(path, MOST_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("`{}` cannot be read: {error}", path.display())),
    }
}

/// Why commands of a file are not run, if they are not: whoever can change the file, or the folder in which they run, decides
/// what they do.
pub(super) fn distrust(path: &Path) -> Option<String> {
    let is_ours = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| is_own(&found));
    let folder = path.parent().unwrap_or(Path::new("."));
    if !is_ours(path) || !fs::metadata(path).is_ok_and(|found| is_own(&found)) {
        return Some("it belongs to another user".to_owned());
    }
    if !fs::metadata(folder).is_ok_and(|found| is_own(&found)) {
        return Some("its folder belongs to another user".to_owned());
    }
    [path, folder]
        .into_iter()
        .find(|path| may_be_changed_by_all(path))
        .map(|path| format!("everybody may change `{}`", path.display()))
}

#[cfg(unix)]
fn may_be_changed_by_all(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|found| found.mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn may_be_changed_by_all(_: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::store::tests::Folder;

    #[test]
    fn a_file_that_others_may_have_written_is_not_trusted() {
        let folder = Folder::new();
        let path = folder.path().join(FILE);
        fs::write(&path, "").expect("written");
        assert_eq!(distrust(&path), None);
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        };
        set(&path, 0o666);
        assert!(distrust(&path).is_some_and(|why| why.contains("everybody may change")));
        set(&path, 0o664);
        assert_eq!(distrust(&path), None, "a group may be the user's own");
        set(folder.path(), 0o777);
        assert!(distrust(&path).is_some_and(|why| why.contains("everybody may change")));
        set(folder.path(), 0o755);
        // A link to a file of somebody else, as far as there is somebody else.
        let linked = folder.path().join("linked");
        symlink("/etc/passwd", &linked).expect("linked");
        let is_root = is_own(&fs::metadata("/etc/passwd").expect("there"));
        assert_eq!(distrust(&linked).is_some(), !is_root);
    }
}
