//! The one way to the system's files: below a root, which tests replace.

#[cfg(test)]
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::files;

/// More than any file that is read here has, and little enough to be read in a moment.
const MOST_BYTES: u64 = 8 << 20;

/// A directory that stands for `/`.
pub(super) struct Root(PathBuf);

impl Root {
    /// The root of this machine.
    pub(super) fn machine() -> Self {
        Root(PathBuf::from("/"))
    }

    /// The text of a file, if there is one that can be read.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        text(&self.0.join(path))
    }

    /// The text of a file of one line, unless it is blank.
    pub(super) fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// Whether there is such a file or directory.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

/// The text of a plain file; bytes that are no text are replaced.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    files::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A made-up tree of files in a temporary directory, gone when dropped.
#[cfg(test)]
pub(super) struct Fake(PathBuf);

#[cfg(test)]
impl Fake {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kbench-environment-{}-{number}", std::process::id());
        let fake = Fake(std::env::temp_dir().join(name));
        fs::create_dir_all(&fake.0).unwrap();
        for (path, text) in files {
            let path = fake.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fake
    }

    pub(super) fn root(&self) -> Root {
        Root(self.0.clone())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_blank_or_a_directory_has_no_line() {
        let fake = Fake::new(&[("folder/blank", " \n"), ("folder/word", " word\n")]);
        let root = fake.root();
        assert_eq!(
            ["none", "folder", "folder/blank"].map(|path| root.line(path)),
            [const { None }; 3]
        );
        assert_eq!(root.line("folder/word").as_deref(), Some("word"));
        assert!(root.has("folder") && !root.has("none"));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let fake = Fake::new(&[]);
        fs::write(fake.path().join("odd"), b"a\xffb").unwrap();
        assert_eq!(fake.root().text("odd").as_deref(), Some("a\u{fffd}b"));
    }
}
