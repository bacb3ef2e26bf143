//! Reading regular files up to a limit.

use std::fs::{self, File, Metadata};
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

/// A file is longer than what is read of it.
#[derive(Debug, thiserror::Error)]
#[error("it has more than {limit} bytes")]
pub struct TooLarge {
    /// Bytes that a file may have.
    pub limit: u64,
}

/// Opens a regular file. Anything else is refused: a pipe might never say anything, and a device might never end.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can have effects of its own, so the name is looked at first. It may be another file's a moment later.
    must_be_regular(&fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    let file = options.open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

pub(super) fn must_be_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { "a folder" } else { "a pipe or a device" };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {kind}, not a regular file")))
}

/// The content of a regular file of at most so many bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_file(open(path)?, limit)
}

/// The content of an open file of at most so many bytes.
pub fn read_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || Error::new(ErrorKind::FileTooLarge, TooLarge { limit });
    if file.metadata()?.len() > limit {
        return Err(too_large());
    }
    // It may grow while it is read.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// The text of a regular file of at most so many bytes.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text_of(read(path, limit)?)
}

/// Bytes as text.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}
