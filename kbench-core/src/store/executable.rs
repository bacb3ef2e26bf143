//! Programs of baselines, kept by their content: a new build replaces the file, and the old one can still be started.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::file::{Lock, arrive, open_to_settle};
use super::{Store, StoreError};
use crate::hash::Fnv128;
use crate::report::Executable;

impl Store {
    /// Keeps a program, once for every content.
    pub fn keep_executable(&self, program: &Path) -> Result<Executable, StoreError> {
        let executable = content_of(program).map_err(StoreError::reading(program))?;
        let _lock = Lock::take(&self.home)?;
        self.make_folder(&self.executables_folder())?;
        let path = self.executable_path(&executable);
        if content_of(&path).is_ok_and(|kept| kept == executable) {
            // Fresh again: it is not pruned while a run goes on that will name it.
            let _ = open_to_settle(&path)
                .and_then(|file| file.set_modified(std::time::SystemTime::now()));
            return Ok(executable);
        }
        arrive(&path, |temporary| {
            fs::copy(program, temporary)?;
            open_to_settle(temporary)?.sync_all()
        })
        .map_err(StoreError::writing(&path))?;
        Ok(executable)
    }

    /// Where a program is that was kept; why not, when it is gone or is not what it was.
    pub fn executable(&self, executable: &Executable) -> Result<PathBuf, String> {
        let path = self.executable_path(executable);
        match content_of(&path) {
            Ok(found) if found == *executable => Ok(path),
            Ok(_) => Err(format!("its executable `{}` is damaged", path.display())),
            Err(error) => Err(format!("its executable `{}` is gone ({error})", path.display())),
        }
    }

    pub(super) fn executable_path(&self, executable: &Executable) -> PathBuf {
        // The digits come from a document that anybody may have written.
        let is_digit = |digit: &char| digit.is_ascii_hexdigit();
        self.executables_folder()
            .join(executable.content.chars().filter(is_digit).collect::<String>())
    }
}

/// What a file contains.
fn content_of(program: &Path) -> io::Result<Executable> {
    let mut file = File::open(program)?;
    let (mut hash, mut bytes) = (Fnv128::default(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Executable { content: hash.digits(), bytes }),
            read => {
                hash.update(&buffer[..read]);
                bytes += read as u64;
            }
        }
    }
}
