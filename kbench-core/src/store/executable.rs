//! Programs of baselines, kept by their content: a new build replaces the file, and the old one can still be started.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::lock::Lock;
use super::{Store, StoreError};
use crate::files::{self, Access, Draft};
use crate::report::Executable;

/// Digits of a hash. Earlier versions used a shorter hash, for which two programs can be constructed.
pub(super) const DIGITS: usize = 2 * 32;

/// Digits of that shorter hash.
pub(super) const SHORTER: usize = 32;

/// A program that was kept, open since its content was looked at.
///
/// It is started by its descriptor where the system can do that: what has taken its name meanwhile is not.
#[derive(Clone, Debug)]
pub struct KeptProgram {
    file: Arc<File>,
    path: PathBuf,
}

impl KeptProgram {
    /// By what this process starts it.
    pub fn command(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let descriptor = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
            if descriptor.exists() {
                return descriptor;
            }
        }
        let _ = &self.file;
        self.path.clone()
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Store {
    /// Keeps a program, once for every content.
    pub fn keep_executable(&self, program: &Path) -> Result<Executable, StoreError> {
        let mut file = files::open(program).map_err(StoreError::reading(program))?;
        let executable =
            content_of(&mut file, &mut io::sink()).map_err(StoreError::reading(program))?;
        let _lock = Lock::take(&self.home)?;
        self.make_folder(&self.executables_folder())?;
        if let Ok(kept) = self.executable(&executable) {
            // Fresh again: it is not pruned while a run goes on that will name it.
            let _ = files::touch(kept.path());
            return Ok(executable);
        }
        let path = self.executable_path(&executable);
        let kept = file.rewind().and_then(|()| {
            let mut draft = Draft::of(&path, Access::Program)?;
            if content_of(&mut file, draft.file())? != executable {
                return Err(io::Error::other("it changed while it was copied"));
            }
            draft.finish()
        });
        kept.map_err(StoreError::writing(&path))?;
        files::sync_folder(&self.executables_folder());
        Ok(executable)
    }

    /// A program that was kept; why not, when it is gone, is not what it was, or is not the user's own.
    pub fn executable(&self, executable: &Executable) -> Result<KeptProgram, String> {
        let path = self.executable_path(executable);
        let shown = path.display();
        if executable.content.len() != DIGITS {
            return Err("an older kbench kept its executable, by a hash that can be forged; save the baseline again \
                        (--save-baseline)"
                .to_owned());
        }
        if self.is_shared(&self.executables_folder()) {
            return Err(format!(
                "its executable `{shown}` is not started: its folder belongs to another user, or everybody may change it"
            ));
        }
        let gone = |error| format!("its executable `{shown}` is gone ({error})");
        let mut file = files::open(&path).map_err(gone)?;
        if !files::is_private(&file.metadata().map_err(gone)?) {
            return Err(format!(
                "its executable `{shown}` is not started: it belongs to another user, or others may change it"
            ));
        }
        match content_of(&mut file, &mut io::sink()) {
            Ok(found) if found == *executable => Ok(KeptProgram { file: Arc::new(file), path }),
            Ok(_) => Err(format!("its executable `{shown}` is damaged")),
            Err(error) => Err(gone(error)),
        }
    }

    pub(super) fn executable_path(&self, executable: &Executable) -> PathBuf {
        // The digits come from a document that anybody may have written.
        let is_digit = |digit: &char| digit.is_ascii_hexdigit();
        self.executables_folder()
            .join(executable.content.chars().filter(is_digit).collect::<String>())
    }
}

/// What a file contains, from where it stands; it is also copied to another.
fn content_of(file: &mut File, copy: &mut impl Write) -> io::Result<Executable> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hash.update(&buffer[..read]);
                copy.write_all(&buffer[..read])?;
                bytes += read as u64;
            }
        }
    }
    let digits = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Executable { content: digits, bytes })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::Folder;
    use super::*;

    #[test]
    fn the_hash_is_sha_256() {
        let folder = Folder::new();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").expect("written");
        let content = content_of(&mut files::open(&path).expect("there"), &mut io::sink());
        let content = content.expect("read");
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content, Executable { content: digits.into(), bytes: 3 });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_takes_the_name_of_a_program_is_not_started() {
        let folder = Folder::new();
        let store = Store::at(folder.path(), "kernels");
        let executable = store.keep_executable(Path::new("/bin/true")).expect("kept");
        let kept = store.executable(&executable).expect("it is as it was");
        let other = folder.path().join("other");
        fs::copy("/bin/false", &other).expect("copied");
        fs::rename(other, kept.path()).expect("replaced");
        let ends_well = |program: PathBuf| {
            std::process::Command::new(program).status().expect("started").success()
        };
        assert!(!ends_well(kept.path().to_owned()), "the name is another program's now");
        assert!(ends_well(kept.command()));
        assert!(store.executable(&executable).expect_err("replaced").contains("damaged"));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_others_may_change_is_not_started() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new();
        let store = Store::at(folder.path(), "kernels");
        let program = folder.path().join("program");
        fs::write(&program, "first").expect("written");
        let executable = store.keep_executable(&program).expect("kept");
        let path = store.executable(&executable).expect("private").path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).expect("set");
        let error = store.executable(&executable).expect_err("others may change it");
        assert!(error.contains("others may change it"), "{error}");
        store.keep_executable(&program).expect("kept anew");
        assert!(store.executable(&executable).is_ok());
    }

    #[test]
    fn a_hash_of_an_older_kbench_starts_nothing() {
        let folder = Folder::new();
        let store = Store::at(folder.path(), "kernels");
        let older = Executable { content: "0123456789abcdef0123456789abcdef".into(), bytes: 3 };
        let error = store.executable(&older).expect_err("too short");
        assert!(error.contains("older kbench"), "{error}");
    }
}
