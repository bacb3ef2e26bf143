//! The lock of those who write to a store.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::StoreError;
use crate::files;
use crate::system::interrupted;

/// Writing a run takes a moment; who waits longer than this waits for something that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a run waits that was told to end.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// How often a lock is tried.
const PAUSE: Duration = Duration::from_millis(20);

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
        let file = files::open_lock(&path).map_err(StoreError::writing(&path))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience_left(patience) => {
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

/// A run that was told to end does not wait for long.
fn patience_left(patience: Duration) -> Duration {
    if interrupted().is_some() { patience.min(LAST_WAIT) } else { patience }
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
}
