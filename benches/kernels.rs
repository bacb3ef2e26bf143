//! The kernel library as a bench target: `cargo bench`, `cargo test --benches`, `cargo nextest run --benches`.

use kernels as _;

kbench::main!();
