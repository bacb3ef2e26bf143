//! Where the tuning file of a crate is.

use std::path::{Path, PathBuf};

const NAME: &str = "kbench.toml";

/// The nearest file from the crate's folder up to its workspace, which is where the first `Cargo.lock` is. Without one
/// there is no telling where the project ends, and only the crate's own folder counts. A compiler that was not started by
/// cargo knows no folder.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    if !folder.is_absolute() {
        return None;
    }
    let locked = folder.ancestors().position(|folder| folder.join("Cargo.lock").is_file());
    folder
        .ancestors()
        .take(locked.unwrap_or(0) + 1)
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A tree of empty files, gone when dropped.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("kbench-{}-{name}", std::process::id()));
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
                fs::write(path, "").expect("a file");
            }
            Tree(root)
        }

        fn find(&self, folder: &str) -> Option<PathBuf> {
            let found = find(&self.0.join(folder))?;
            Some(found.strip_prefix(&self.0).expect("inside").to_owned())
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_nearest_file_counts() {
        let tree = Tree::new("near", &["Cargo.lock", NAME, "a/kbench.toml", "a/x", "b/x"]);
        assert_eq!(tree.find("a"), Some("a/kbench.toml".into()));
        assert_eq!(tree.find("b"), Some(NAME.into()));
    }

    #[test]
    fn files_outside_of_the_workspace_do_not_count() {
        let tree = Tree::new("far", &[NAME, "workspace/Cargo.lock", "workspace/a/x", "alone/x"]);
        assert_eq!(tree.find("workspace/a"), None);
        assert_eq!(tree.find("alone"), None);
        assert_eq!(tree.find(""), Some(NAME.into()));
        assert_eq!(find(Path::new("")), None);
    }
}
