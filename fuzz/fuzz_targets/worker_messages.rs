//! What controllers and workers say to each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kbench_core::doorway::worker_messages(bytes));
