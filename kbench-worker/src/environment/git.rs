//! The commit that is checked out, read from git's own files.

use std::path::{Path, PathBuf};

use super::root::text;

/// References may point to references; more than a few that do are a ring.
const MOST_STEPS: usize = 5;

/// The commit that is checked out in the repository around a directory.
pub(super) fn commit(directory: &Path) -> Option<String> {
    Repository::around(directory)?.commit()
}

/// Where git keeps what belongs to one work tree, and what all work trees share.
struct Repository {
    own: PathBuf,
    common: PathBuf,
}

impl Repository {
    fn around(directory: &Path) -> Option<Self> {
        let parent = directory.ancestors().find(|parent| parent.join(".git").exists())?;
        let mut own = parent.join(".git");
        // In a linked work tree or a submodule it is a file that says where the directory is.
        if let Some(text) = text(&own) {
            own = parent.join(text.strip_prefix("gitdir:")?.trim());
        }
        let common = match text(&own.join("commondir")) {
            Some(text) => own.join(text.trim()),
            None => own.clone(),
        };
        Some(Repository { own, common })
    }

    fn commit(&self) -> Option<String> {
        let mut name = "HEAD".to_owned();
        for _ in 0..MOST_STEPS {
            let value = self.value(&name)?;
            match value.strip_prefix("ref:") {
                Some(next) => name = reference(next)?.to_owned(),
                None => return is_hash(&value).then_some(value),
            }
        }
        None
    }

    /// What a reference holds: a file of its own, else a line in the file of packed ones.
    fn value(&self, name: &str) -> Option<String> {
        text(&self.own.join(name))
            .or_else(|| text(&self.common.join(name)))
            .map(|value| value.trim().to_owned())
            .or_else(|| packed(&text(&self.common.join("packed-refs"))?, name).map(str::to_owned))
    }
}

/// A name that leads to a file within the repository.
fn reference(name: &str) -> Option<&str> {
    let name = name.trim();
    (name.starts_with("refs/") && !name.contains("..")).then_some(name)
}

/// The hash of a reference among packed ones: `hash name`, with remarks after `#` and tagged commits after `^`.
fn packed<'a>(references: &'a str, name: &str) -> Option<&'a str> {
    references.lines().find_map(|line| {
        let (hash, known) = line.split_once(' ')?;
        (known.trim() == name && is_hash(hash)).then_some(hash)
    })
}

/// Whether this is a full SHA-1 or SHA-256.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn commit_in(folder: &str, files: &[(&str, &str)]) -> Option<String> {
        let fake = Fake::new(files);
        commit(&fake.path().join(folder))
    }

    #[test]
    fn a_branch_is_followed_from_any_directory_below() {
        let files = [("r/.git/HEAD", "ref: refs/heads/main\n"), ("r/.git/refs/heads/main", A)];
        assert_eq!(commit_in("r", &files).as_deref(), Some(A));
        assert_eq!(commit_in("r/src/deep", &files).as_deref(), Some(A));
    }

    #[test]
    fn a_commit_without_a_branch_is_told() {
        let sha256 = format!("{A}{}", &B[..24]);
        let files = [("r/.git/HEAD", sha256.as_str())];
        assert_eq!(commit_in("r", &files), Some(sha256.clone()));
    }

    #[test]
    fn packed_references_count_only_where_there_is_no_file() {
        let references = format!("# pack-refs with: peeled\n{B} refs/heads/main\n^{A}\n");
        let head = ("r/.git/HEAD", "ref: refs/heads/main\n");
        let packed = ("r/.git/packed-refs", references.as_str());
        assert_eq!(commit_in("r", &[head, packed]).as_deref(), Some(B));
        let loose = ("r/.git/refs/heads/main", A);
        assert_eq!(commit_in("r", &[head, packed, loose]).as_deref(), Some(A));
    }

    #[test]
    fn a_linked_work_tree_has_its_own_head_and_shares_branches() {
        let files = [
            ("main/.git/HEAD", "ref: refs/heads/main\n"),
            ("main/.git/refs/heads/main", A),
            ("main/.git/refs/heads/side", B),
            ("main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n"),
            ("main/.git/worktrees/side/commondir", "../..\n"),
            ("side/.git", "gitdir: ../main/.git/worktrees/side\n"),
        ];
        assert_eq!(commit_in("side", &files).as_deref(), Some(B));
    }

    #[test]
    fn what_is_broken_tells_nothing() {
        let heads =
            ["", "ref: refs/heads/none", "ref: ../../secret", "abc", "ref: refs/heads/ring"];
        for head in heads {
            let ring = ("r/.git/refs/heads/ring", "ref: refs/heads/ring");
            let files = [("r/.git/HEAD", head), ring, ("secret", A)];
            assert_eq!(commit_in("r", &files), None, "{head}");
        }
        assert_eq!(commit_in("r", &[("r/.git", "nonsense")]), None);
        assert_eq!(commit_in("r", &[("r/.git", "gitdir: ../gone")]), None);
    }
}
