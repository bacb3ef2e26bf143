//! The store: runs that last, below `target/kbench`.

mod document;

pub use document::{DocumentError, read_document};
