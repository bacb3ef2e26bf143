//! Files that are there as a whole or not at all, and the lock of those who write them.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::StoreError;

/// Writing a run takes a moment; who waits longer than this waits for something that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a lock is tried.
const PAUSE: Duration = Duration::from_millis(20);

/// What the names of files begin with that are on their way to their place.
const TEMPORARY: &str = ".tmp-";

/// The right to write, for as long as it lives. The system takes it back when the process ends, however that happens.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of a store, and makes its folder if there is none.
    pub(super) fn take(home: &Path) -> Result<Self, StoreError> {
        Self::take_within(home, PATIENCE)
    }

    fn take_within(home: &Path, patience: Duration) -> Result<Self, StoreError> {
        fs::create_dir_all(home).map_err(StoreError::writing(home))?;
        let path = home.join("lock");
        let opened = File::options().create(true).write(true).truncate(false).open(&path);
        let file = opened.map_err(StoreError::writing(&path))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let seconds = patience.as_secs();
                    return Err(StoreError::Busy { home: home.to_owned(), seconds });
                }
                // Some file systems know no locks: names of runs differ all the same.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    break;
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::writing(&path)(error)),
            }
        }
        Ok(Lock { _file: file })
    }
}

/// Writes text to a file; a reader sees the old file or the new one, never a part. What is no plain file (a pipe, a device)
/// is written to.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text);
    }
    arrive(path, |temporary| fs::write(temporary, text))
}

/// Writes bytes that shall also outlast the end of the machine.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    arrive(path, |temporary| {
        let mut file = File::create(temporary)?;
        file.write_all(bytes)?;
        // Else the name could be on the disk before the content is, should the machine lose its power now.
        file.sync_all()
    })?;
    // The name, too, where a folder can be brought to the disk.
    let folder = path.parent().and_then(|folder| File::open(folder).ok());
    folder.map_or(Ok(()), |folder| folder.sync_all().or(Ok(())))
}

/// A second name for a file, in place of whatever had it; a copy where the system has no such thing.
pub(super) fn link_atomically(from: &Path, to: &Path) -> io::Result<()> {
    arrive(to, |temporary| match fs::hard_link(from, temporary) {
        Ok(()) => Ok(()),
        Err(_) => fs::copy(from, temporary).and_then(|_| open_to_settle(temporary)?.sync_all()),
    })
}

/// Opens a file whose content is to be brought to the disk, or whose times are to change: Windows does either for those alone
/// that are open for writing.
pub(super) fn open_to_settle(path: &Path) -> io::Result<File> {
    File::options().read(true).write(cfg!(windows)).open(path)
}

/// Lets a file be made beside its place, and moves it there.
pub(super) fn arrive(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let made = make(&temporary).and_then(|()| fs::rename(&temporary, path));
    // After a rename between two names of the same file both are still there.
    let _ = fs::remove_file(&temporary);
    made
}

/// A name beside a file that no other process takes.
fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(format!("{TEMPORARY}{}-", std::process::id()));
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// Whether a file was on its way to its place.
pub(super) fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;

    #[test]
    fn one_writes_at_a_time_and_the_other_is_told_for_whom_it_waits() {
        let folder = Folder::new();
        let lock = Lock::take(folder.path()).expect("free");
        let error = Lock::take_within(folder.path(), PAUSE).expect_err("taken");
        assert!(error.to_string().contains("another process"), "{error}");
        drop(lock);
        assert!(Lock::take_within(folder.path(), PAUSE).is_ok());
    }

    #[test]
    fn a_link_replaces_what_was_there_and_leaves_nothing_behind() {
        let folder = Folder::new();
        let [run, name] = ["run", "name"].map(|name| folder.path().join(name));
        write_atomically(&run, "one").expect("written");
        write_atomically(&name, "old").expect("written");
        for _ in 0..2 {
            link_atomically(&run, &name).expect("linked");
            assert_eq!(fs::read_to_string(&name).expect("there"), "one");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 2);
    }
}
