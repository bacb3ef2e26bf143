//! Files that others can reach as well.
//!
//! A folder may be shared, and its files may be anything: links, pipes, devices, files of other users. What is read is a
//! regular file that is not longer than expected. What is written is made anew under a random name, brought to the disk, and
//! then moved to its place; a reader sees the old file or the new one. No other code of kbench's own creates, replaces or reads
//! files of a user.

#![allow(clippy::disallowed_methods)] // they are disallowed elsewhere

mod owner;
mod read;
mod write;

pub use owner::{is_own, is_private};
pub use read::{TooLarge, open, read, read_text};
pub use write::{
    Access, Draft, create_in, is_draft, link, make_folder, open_lock, put, put_all, replace,
    sync_folder,
};

#[cfg(test)]
mod tests;
