//! Run documents, and every form in which they are shown.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kbench_core::doorway::run_document(bytes));
