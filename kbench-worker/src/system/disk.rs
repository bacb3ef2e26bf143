//! Bringing files to the disk.
#![allow(unsafe_code)] // the standard library does it file by file

use std::fs::File;
use std::io;

/// Whether the system brings a file system to the disk as a whole.
pub(crate) const SYNCS_FILE_SYSTEMS: bool = cfg!(target_os = "linux");

/// Brings everything to the disk that was written to the file system of a file.
#[cfg(target_os = "linux")]
pub(crate) fn sync_file_system(file: Option<&File>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let Some(file) = file else { return Ok(()) };
    // SAFETY: a number in, a number out; the descriptor is open for as long as the file is borrowed.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// There is no such call here: files are brought to the disk one by one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_file_system(_: Option<&File>) -> io::Result<()> {
    Ok(())
}
