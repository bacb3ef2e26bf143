//! Who may have written a file.

use std::fs::Metadata;
use std::path::Path;

/// Whether a file or folder belongs to the user of this process.
#[cfg(unix)]
pub fn is_own(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == crate::system::user()
}

/// Whether a file belongs to the user of this process, and nobody else may change it.
#[cfg(unix)]
pub fn is_private(metadata: &Metadata) -> bool {
    is_own(metadata) && std::os::unix::fs::MetadataExt::mode(metadata) & 0o022 == 0
}

/// Whether a file belongs to the user of this process, or to the system.
#[cfg(unix)]
pub(super) fn is_trusted(metadata: &Metadata) -> bool {
    is_own(metadata) || std::os::unix::fs::MetadataExt::uid(metadata) == 0
}

/// Owners are not told apart here.
#[cfg(not(unix))]
pub(super) fn is_trusted(_: &Metadata) -> bool {
    true
}

/// Whether others decide what is in a folder: it belongs to somebody else, is a link of somebody else, or everybody may change it.
#[cfg(unix)]
pub fn is_shared(folder: &Path) -> bool {
    let is_ours = |found: std::io::Result<Metadata>| found.is_ok_and(|found| is_own(&found));
    let may_be_changed = |found: std::io::Result<Metadata>| {
        found.is_ok_and(|found| std::os::unix::fs::MetadataExt::mode(&found) & 0o002 != 0)
    };
    let is_there = std::fs::symlink_metadata(folder).is_ok();
    is_there
        && (!is_ours(std::fs::symlink_metadata(folder))
            || !is_ours(std::fs::metadata(folder))
            || may_be_changed(std::fs::metadata(folder)))
}

/// Owners are not told apart here.
#[cfg(not(unix))]
pub fn is_shared(_: &Path) -> bool {
    false
}

/// Owners are not told apart here.
#[cfg(not(unix))]
pub fn is_own(_: &Metadata) -> bool {
    true
}

/// Owners are not told apart here.
#[cfg(not(unix))]
pub fn is_private(_: &Metadata) -> bool {
    true
}
