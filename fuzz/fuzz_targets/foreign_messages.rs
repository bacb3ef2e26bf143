//! What foreign workers answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kbench_core::doorway::foreign_messages(bytes));
