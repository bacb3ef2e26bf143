use std::process::ExitCode;

use crate::system::{Interrupt, interrupted};

/// How a run ended; cargo passes the code on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// Something that should not happen, or a file that could not be written.
    Internal,
    /// The command line makes no sense, or no kernel is registered.
    Usage,
    /// No row meets all conditions.
    NothingSelected,
    /// A variant is wrong, or failed.
    CheckFailed,
    /// `--gate` was given, and something is beyond its limits.
    Gate,
    /// Somebody wanted the run to end; what was finished is reported and kept.
    Interrupted(Interrupt),
}

impl Exit {
    /// The number; 101 is a panic and comes from Rust itself.
    pub fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Internal => 1,
            Exit::Usage => 2,
            Exit::NothingSelected => 4,
            Exit::CheckFailed => 100,
            Exit::Gate => 102,
            Exit::Interrupted(interrupt) => interrupt.exit_code(),
        }
    }

    /// How a run ended that may have been interrupted: that explains everything else.
    pub(super) fn unless_interrupted(self) -> Exit {
        interrupted().map_or(self, Exit::Interrupted)
    }

    /// The first that is not fine.
    pub(super) fn or(self, other: Exit) -> Exit {
        if self == Exit::Fine { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
