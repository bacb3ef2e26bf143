//! The kernel library, measured on this machine: `cargo run --example suite`, `-- --help` for everything else.

use kernels as _;

kbench::main!(measure, brief);
