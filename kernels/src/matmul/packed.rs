//! The engine of matrix products on the CPU.
