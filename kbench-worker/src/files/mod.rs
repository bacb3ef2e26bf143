//! Files that others can reach as well.
//!
//! A folder may be shared, and its files may be anything: links, pipes, devices, files of other users. What is read is a
//! regular file that is not longer than expected. What is written is made anew under a random name, brought to the disk, and
//! then moved to its place; a reader sees the old file or the new one. No other code of the runtime creates, replaces or reads
//! files of a user.

#![allow(clippy::disallowed_methods)] // they are disallowed elsewhere

mod owner;
mod read;
mod write;

pub use owner::{is_own, is_private, is_shared};
pub use read::{TooLarge, open, read, read_file, read_text, text_of};
pub use write::{
    Access, Draft, append, create_in, is_draft, link, make_folder, open_lock, put, put_all,
    replace, sync_folder, touch,
};

#[cfg(test)]
mod tests;
