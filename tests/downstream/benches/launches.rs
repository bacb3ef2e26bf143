//! Kernels that print, allocate, and end their process: what a run of several launches must survive.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use kbench::prelude::*;

#[global_allocator]
static ALLOCATOR: kbench::Allocator = kbench::Allocator::system();

/// x ← 2x, in one allocation.
#[kernel_bench(sizes = [64, 4096], inputs = |n| uniform(n), name = "doubled")]
fn doubled(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| 2.0 * x).collect()
}

/// In as many allocations as a vector that grows needs.
#[kernel_bench(of = doubled)]
fn pushed(x: &[f32]) -> Vec<f32> {
    let mut result = Vec::new();
    for x in x {
        result.push(2.0 * x);
    }
    result
}

static IS_WORKER: OnceLock<bool> = OnceLock::new();

fn is_worker() -> bool {
    *IS_WORKER.get_or_init(|| std::env::args().any(|argument| argument == "--worker"))
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Talks now and then while it is timed.
#[kernel_bench(of = doubled)]
fn talks(x: &[f32]) -> Vec<f32> {
    if CALLS.fetch_add(1, Ordering::Relaxed) % 10_000 == 0 && is_worker() {
        println!("kernels may print");
    }
    doubled(x)
}

/// Right where it is checked, and the end of every process that wants to time it.
#[kernel_bench(of = doubled)]
fn aborts(x: &[f32]) -> Vec<f32> {
    if is_worker() {
        std::process::abort();
    }
    doubled(x)
}

static LONG_CALLS: AtomicU64 = AtomicU64::new(0);

/// Longer than calibration needs to know it, and shorter than a launch.
const LAST_CALL: u64 = 150;

/// Right, slow, and at some later call the end of the process.
#[kernel_bench(of = doubled)]
fn tires(x: &[f32]) -> Vec<f32> {
    if is_worker() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        if LONG_CALLS.fetch_add(1, Ordering::Relaxed) == LAST_CALL {
            std::process::abort();
        }
    }
    doubled(x)
}

kbench::main!();
