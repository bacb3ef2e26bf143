use serde::{Deserialize, Serialize};

use crate::kernel::KernelEntry;
use crate::plan::Size;

/// A size with its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// `axis=value,axis=value`.
    pub size: String,
    /// Amount of work.
    pub work: f64,
}

/// A size of a kernel, for people.
pub(super) fn place(kernel: &KernelEntry, size: &Size, work: f64) -> Place {
    Place { size: size.name(kernel.axes), work }
}
