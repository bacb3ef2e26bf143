//! Foreign workers by name, and what they announce.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::kernel::Backend;

/// A program that implements variants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProgram {
    /// What it is called.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it is started; none for the current folder.
    pub folder: Option<PathBuf>,
    /// Whether it is for several programs, which need not have all kernels that it knows.
    #[serde(default)]
    pub is_shared: bool,
}

impl ForeignProgram {
    /// A program that is started in the current folder, and all of whose variants are to fit.
    pub fn new(name: impl Into<String>, command: Vec<String>) -> Self {
        ForeignProgram { name: name.into(), command, folder: None, is_shared: false }
    }
}

/// What a program says that it implements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// The program.
    pub program: ForeignProgram,
    /// What it is made of, in its own words: versions of languages and libraries.
    pub about: Option<String>,
    /// Its variants.
    pub variants: Vec<AnnouncedVariant>,
    /// Why it has none.
    pub unavailable: Option<String>,
    /// The number of a descriptor by which the process that starts launches, and those that it starts, ask the program to
    /// fork; none when it is to be started anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<i32>,
}

/// One variant, as its program announces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnnouncedVariant {
    /// The kernel, by name or path.
    pub of: String,
    /// The variant's name.
    pub name: String,
    /// Where it runs.
    pub backend: Backend,
    /// Element types; none for all that the kernel has.
    #[serde(default)]
    pub types: Option<Vec<String>>,
    /// Parameters and axes of the kernel that it takes.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// Relative tolerance of this variant alone.
    #[serde(default)]
    pub tolerance: Option<f64>,
    /// Calls that may wait for a device at once.
    #[serde(default)]
    pub queue: Option<u64>,
    /// Where it is written.
    #[serde(default)]
    pub place: Option<VariantPlace>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantPlace {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
}
