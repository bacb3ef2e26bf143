//! `kbench.toml`, as the gate, `--tune` and the macros read it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kbench_core::doorway::tuning_file(bytes));
