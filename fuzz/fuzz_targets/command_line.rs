//! Flags and environment variables.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kbench_core::doorway::command_line(bytes));
