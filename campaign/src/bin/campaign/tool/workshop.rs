//! The executables of the tools, and a place for their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Failure;
use crate::experiment::{Choice, Tool};

/// Where tools are run; its files are gone when it is dropped.
pub(crate) struct Workshop {
    executables: PathBuf,
    scratch: PathBuf,
}

/// Why nothing can be run.
#[derive(Debug, Error)]
pub(crate) enum SetUpError {
    /// A tool's executable was not built.
    #[error(
        "`{executable}` is missing; build with `cargo build --release --package campaign \
         --features rivals`, or select other tools with --tools"
    )]
    NotBuilt {
        /// Where it should be.
        executable: String,
    },
    /// The scratch directory cannot be made.
    #[error("no place for temporary files: {0}")]
    Scratch(#[from] io::Error),
}

impl Workshop {
    /// Looks for the executables of the tools, beside this one.
    pub(crate) fn open(tools: &[Tool]) -> Result<Self, SetUpError> {
        let this = std::env::current_exe()?;
        let scratch = std::env::temp_dir().join(format!("campaign-{}", std::process::id()));
        let executables = this.parent().unwrap_or(Path::new(".")).to_owned();
        let workshop = Workshop { executables, scratch };
        for tool in tools {
            let executable = workshop.executable(*tool);
            if !executable.is_file() {
                let executable = executable.display().to_string();
                return Err(SetUpError::NotBuilt { executable });
            }
        }
        fs::create_dir_all(&workshop.scratch)?;
        if tools.contains(&Tool::Tango) {
            fs::copy(workshop.executable(Tool::Tango), workshop.copy_of_tango())?;
        }
        Ok(workshop)
    }

    /// The executable of a tool.
    pub(super) fn executable(&self, tool: Tool) -> PathBuf {
        let name = format!("subject_{}{}", tool.name(), std::env::consts::EXE_SUFFIX);
        self.executables.join(name)
    }

    /// A second file with the same content, as tango compares executables.
    pub(super) fn copy_of_tango(&self) -> PathBuf {
        self.scratch.join(format!("copy_of_tango{}", std::env::consts::EXE_SUFFIX))
    }

    /// An empty directory for the files of one run.
    pub(super) fn desk(&self) -> Result<PathBuf, Failure> {
        let desk = self.scratch.join("desk");
        let clear = |desk: &Path| {
            if desk.exists() {
                fs::remove_dir_all(desk)?;
            }
            fs::create_dir_all(desk)
        };
        match clear(&desk) {
            Ok(()) => Ok(desk),
            Err(source) => Err(Failure::System { what: format!("clearing {desk:?}"), source }),
        }
    }
}

/// The content of a file that a tool has left.
pub(super) fn left(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|source| Failure::System { what: format!("reading {}", file.display()), source })
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which clears its temporary files.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
