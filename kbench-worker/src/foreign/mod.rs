//! Variants that other programs implement, in whatever language.
//!
//! A *foreign worker* is a program that knows variants of kernels by name. It is started by a worker of ours, or forked for it by
//! one that the controller has started and that has loaded everything. The worker of ours makes the data, hands it over in a file that both see, and asks for calls and for samples as it would of a function of its own: so
//! foreign variants are checked by the same gate, timed in the same blocks and judged by the same test as all others, and only
//! one process is active at a time. What is said is in `docs/worker-protocol.md`.

mod exchange;
#[cfg(unix)]
mod forked;
mod message;
#[cfg(unix)]
mod partner;
#[cfg(not(unix))]
#[path = "no_partner.rs"]
mod partner;
mod program;
mod reading;
mod routine;
mod worker;

pub use program::{AnnouncedVariant, Announcement, ForeignProgram, VariantPlace};
pub use routine::ForeignVariant;
pub use worker::ForeignWorker;

/// Version of what is said to foreign workers; grows when one of the former version would misunderstand it.
pub const FOREIGN_PROTOCOL: u32 = 1;

/// The variants that lines of a foreign worker announce, as far as they are answers of the protocol. It is for the fuzz targets.
#[doc(hidden)]
pub fn announced(bytes: &[u8]) -> Vec<AnnouncedVariant> {
    let answers = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| message::Answer::from_bytes(line).ok());
    let variant = |answer| match answer {
        message::Answer::Variant(variant) => Some(variant),
        _ => None,
    };
    answers.filter_map(variant).collect()
}

/// Where the process of a foreign worker belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the group of this process, with which it ends.
    Within,
    /// In a group of its own: it is there for many processes, and ends before this one does.
    Apart,
}

#[cfg(all(test, unix))]
mod tests;
