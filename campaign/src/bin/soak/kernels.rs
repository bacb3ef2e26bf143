//! Healthy kernels whose difference is known, and a kernel whose variants break at random.

use std::hint::black_box;
#[cfg(unix)]
use std::os::unix::process::parent_id;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use campaign::ORIGINAL;
use campaign::chain::chain;
use kbench::prelude::*;

/// Rounds of the base: some microseconds, of which a tenth is a whole number.
const ROUNDS: u64 = 2_000;

/// What every variant writes.
const ANSWER: f32 = 7.0;

/// The very same machine code for all of them: at another address, a loop may take another time.
#[inline(never)]
fn work(rounds: u64, out: &mut [f32]) {
    black_box(chain::<ORIGINAL>(rounds));
    out.fill(ANSWER);
}

/// The base.
#[kernel_bench(sizes = [1, 50], inputs = |n| zeros(n), name = "healthy")]
fn healthy(out: &mut [f32]) {
    work(ROUNDS, out);
}

/// The same.
#[kernel_bench(of = healthy)]
fn twin(out: &mut [f32]) {
    work(ROUNDS, out);
}

/// A tenth more.
#[kernel_bench(of = healthy)]
fn heavier(out: &mut [f32]) {
    work(ROUNDS + ROUNDS / 10, out);
}

/// Another base, in parallel.
#[kernel_bench(sizes = [40_000], inputs = |n| (uniform(n), zeros(n)), name = "spread")]
fn spread(x: &[f32], y: &mut [f32]) {
    y.copy_from_slice(x);
}

/// The same by rayon.
#[kernel_bench(of = spread, parallel)]
fn spread_by_rayon(x: &[f32], y: &mut [f32]) {
    use rayon::prelude::*;
    y.par_chunks_mut(10_000).zip(x.par_chunks(10_000)).for_each(|(y, x)| y.copy_from_slice(x));
}

/// How long processes sleep that workers of a controller leave behind: nobody else's sleep so long.
pub(crate) fn left_behind(controller: u32) -> String {
    format!("600.{controller:010}")
}

/// The controller, where it is the process that runs kernels.
#[cfg(not(unix))]
fn parent_id() -> u32 {
    std::process::id()
}

/// What can go wrong.
#[derive(Clone, Copy)]
enum Fault {
    Panic,
    Abort,
    Exit,
    Segfault,
    Hang,
    StackOverflow,
    OutOfMemory,
    NotANumber,
    LeftThread,
    LeftProcess,
    Print,
}

impl Fault {
    const ALL: [Fault; 11] = [
        Fault::Panic,
        Fault::Abort,
        Fault::Exit,
        Fault::Segfault,
        Fault::Hang,
        Fault::StackOverflow,
        Fault::OutOfMemory,
        Fault::NotANumber,
        Fault::LeftThread,
        Fault::LeftProcess,
        Fault::Print,
    ];

    fn happens(self, out: &mut [f32]) {
        match self {
            Fault::Panic => panic!("planted"),
            Fault::Abort => std::process::abort(),
            Fault::Exit => std::process::exit(3),
            Fault::Segfault => {
                let own = std::process::id().to_string();
                let _ = Command::new("kill").args(["-SEGV", &own]).status();
                std::thread::sleep(Duration::from_secs(1));
            }
            Fault::Hang => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            Fault::StackOverflow => assert_ne!(deep(0), 0),
            Fault::OutOfMemory => drop(black_box(vec![1_u8; 1 << 46])),
            Fault::NotANumber => out.fill(f32::NAN),
            Fault::LeftThread => {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
            }
            Fault::LeftProcess => {
                drop(Command::new("sleep").arg(left_behind(parent_id())).spawn());
            }
            Fault::Print => eprintln!("a kernel that says something"),
        }
    }
}

#[allow(unconditional_recursion)] // that is the fault
fn deep(level: u64) -> u64 {
    black_box([level; 512])[7] + deep(level + 1)
}

/// The fault of this process, and the call at which it happens: now and then at the first one, now and then never.
fn fate() -> &'static (Fault, u64) {
    static FATE: OnceLock<(Fault, u64)> = OnceLock::new();
    FATE.get_or_init(|| {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut draw = clock.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        let mut below = |limit: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (draw >> 33) % limit
        };
        let fault = Fault::ALL[below(Fault::ALL.len() as u64) as usize];
        (fault, 1 << below(20))
    })
}

fn at_risk(calls: &AtomicU64, out: &mut [f32]) {
    out.fill(ANSWER);
    let (fault, when) = fate();
    if calls.fetch_add(1, Ordering::Relaxed) >= *when {
        fault.happens(out);
    }
}

/// The base of those that break: it does not.
#[kernel_bench(sizes = [10, 60], inputs = |n| zeros(n), name = "doomed")]
fn doomed(out: &mut [f32]) {
    out.fill(ANSWER);
}

/// One that breaks.
#[kernel_bench(of = doomed)]
fn breaks(out: &mut [f32]) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    at_risk(&CALLS, out);
}

/// Another one, later.
#[kernel_bench(of = doomed)]
fn breaks_too(out: &mut [f32]) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    at_risk(&CALLS, out);
}
