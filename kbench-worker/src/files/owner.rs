//! Who may have written a file.

use std::fs::Metadata;

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
