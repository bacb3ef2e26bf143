//! Variants that misbehave in every way that a run must survive, beside some that are right.
//!
//! Most of them do so at the first call at 5000 elements, which is in the check; the late ones, and the one that leaks, when
//! they are timed.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kbench::prelude::*;

/// The healthy one.
#[kernel_bench(sizes = [64, 5000], inputs = |n| (uniform(n), zeros(n)), name = "twice")]
fn twice(x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        *y = 2.0 * x;
    }
}

/// A healthy one beside it.
#[kernel_bench(of = twice)]
fn added(x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        *y = x + x;
    }
}

/// A fault at the first call for a size that is listed, and none before.
macro_rules! fault {
    ($name:ident, $fault:expr) => {
        #[kernel_bench(of = twice)]
        fn $name(x: &[f32], y: &mut [f32]) {
            twice(x, y);
            if x.len() == 5000 {
                #[allow(clippy::redundant_closure_call)] // it may have a type that never is
                $fault(x, y);
            }
        }
    };
}

fault!(panics, |x: &[f32], _| panic!("the size {} is beyond me", x.len()));
fault!(aborts, |_, _| std::process::abort());
fault!(exits, |_, _| std::process::exit(7));
fault!(segfaults, |_, _| write_to_nowhere());
fault!(overflows_stack, |_, _| assert_ne!(deep(0), 0));
fault!(panics_in_c, |_, _| in_c());
fault!(hangs, |_, _| sleep_for_ever());
fault!(spins, |_, _| while std::hint::black_box(true) {});
fault!(deadlocks_pool, |_, _| wait_for_nobody());
fault!(takes_all_memory, |_, _| std::hint::black_box(vec![1u8; 1 << 46]).truncate(1));
fault!(is_nan, |_, y: &mut [f32]| y.fill(f32::NAN));
fault!(changes_input, |x: &[f32], _| change(x));
fault!(overruns, |_, y: &mut [f32]| write_past(y));
fault!(prints, |_, _| println!("kernels may print"));

fn write_to_nowhere() {
    // SAFETY: none; it is a fault that is meant, in a process of its own.
    unsafe { std::ptr::null_mut::<u8>().wrapping_add(8).write_volatile(1) }
}

/// Some elements too many, as when a loop over vectors does not care for the rest.
fn write_past(y: &mut [f32]) {
    for place in y.len()..y.len() + 4 {
        // SAFETY: none; it is a fault that is meant, in a process of its own.
        unsafe { y.as_mut_ptr().wrapping_add(place).write_volatile(1.5) }
    }
}

fn sleep_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// What nobody may do, and a pointer from elsewhere does.
fn change(x: &[f32]) {
    // SAFETY: none; it is a fault that is meant, and the memory is there.
    unsafe { (x.as_ptr() as *mut f32).write_volatile(42.0) }
}

#[allow(unconditional_recursion)] // that is the fault
fn deep(level: u64) -> u64 {
    std::hint::black_box([level; 512])[7] + deep(level + 1)
}

extern "C" fn in_c() {
    panic!("no way to unwind");
}

/// Every thread of the pool waits for a thread that is not there.
fn wait_for_nobody() {
    let nobody = std::sync::Mutex::new(());
    let _held = nobody.lock();
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| drop(nobody.lock()));
        }
    });
}

/// Another answer at the second call on the same input.
#[kernel_bench(of = twice)]
fn guesses(x: &[f32], y: &mut [f32]) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    twice(x, y);
    let input = (x.len() as u64) << 32 | u64::from(x[0].to_bits());
    if LAST.swap(input, Ordering::Relaxed) == input {
        y[0] += 1.0;
    }
}

/// Starts somebody at every call, who stays.
#[kernel_bench(of = twice)]
fn leaves_threads(x: &[f32], y: &mut [f32]) {
    std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
    twice(x, y);
}

/// Starts a process that outlives everything, once; whoever looks for it knows how long it sleeps.
#[kernel_bench(of = twice)]
fn leaves_process(x: &[f32], y: &mut [f32]) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let seconds = std::env::var("DOWNSTREAM_SLEEP").unwrap_or("600".to_owned());
    ONCE.call_once(|| {
        let started = std::process::Command::new("sleep").arg(seconds).spawn();
        eprintln!("a process sleeps: {}", started.is_ok());
    });
    twice(x, y);
}

/// A fault long after the check, when it is being timed.
macro_rules! late {
    ($name:ident, $fault:expr) => {
        #[kernel_bench(of = twice)]
        fn $name(x: &[f32], y: &mut [f32]) {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            if x.len() == 5000 && CALLS.fetch_add(1, Ordering::Relaxed) > 20_000 {
                $fault;
            }
            twice(x, y);
        }
    };
}

late!(late_segfault, write_to_nowhere());
late!(late_hang, sleep_for_ever());
late!(late_exit, std::process::exit(0));

/// Keeps a mebibyte of every call.
#[kernel_bench(of = twice)]
fn leaks(x: &[f32], y: &mut [f32]) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    if x.len() == 5000 && CALLS.fetch_add(1, Ordering::Relaxed) > 1000 {
        std::mem::forget(std::hint::black_box(Vec::<u8>::with_capacity(1 << 20)));
    }
    twice(x, y);
}

/// A kernel that says what is wrong.
#[kernel_bench(sizes = [16, 50], inputs = |n| uniform(n))]
fn refuses(x: &[f32]) -> Result<Vec<f32>, String> {
    if x.len() == 50 {
        return Err("50 is too much".to_owned());
    }
    Ok(x.to_vec())
}

/// A kernel whose data is the fault: what makes it does not ask whether there is room.
#[kernel_bench(sizes = [16, 1 << 44], inputs = |n| vec![1.0; n])]
fn too_large(x: &[f32]) -> f32 {
    x.iter().sum()
}

/// A kernel that does nothing that anybody could see.
#[kernel_bench(sizes = [16], inputs = |n| uniform(n))]
fn nothing(x: &[f32]) {
    let _ = x.iter().sum::<f32>();
}

kbench::main!();
