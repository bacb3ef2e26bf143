//! The timed loop.
//!
//! # Cost model
//!
//! A sample of k calls takes `clock + k · (call + lend)`. The clock's part is measured with k = 0 and subtracted by the
//! measuring stage. Lending is the load of pointers and lengths that any caller does; nothing else is in the loop: no
//! dynamic call, no allocation, no drop (return values that own something are kept until the clock has stopped) and no
//! branch on configuration (each shape of loop is a function of its own). The attribute passes every parameter through
//! `black_box` and the loop every result, as anybody would in a loop of their own, so that the compiler can neither hoist
//! a call out of the loop nor drop it. Each loop is a symbol of its own, so that its machine code can be looked at, and
//! stands at the same place in a cache line, so that no variant is favoured by its address.

use std::hint::black_box;
use std::mem::needs_drop;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::data::Data;
use super::{Fault, InPlace, Kernel};
use crate::value::{Fingerprint, Operand};

/// How many calls a sample makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SomeCalls")]
pub struct Calls {
    /// Calls under one reading of the clock.
    pub per_batch: u64,
    /// How often that is repeated, with fresh data prepared in between.
    pub batches: u64,
}

impl Calls {
    /// `n` calls under one reading of the clock.
    pub fn once(n: u64) -> Self {
        Calls { per_batch: n, batches: 1 }
    }

    /// All calls of the sample.
    pub fn total(self) -> u64 {
        self.per_batch.saturating_mul(self.batches)
    }
}

/// Calls as another process tells them, before anybody has looked at them.
#[derive(Deserialize)]
struct SomeCalls {
    per_batch: u64,
    batches: u64,
}

impl TryFrom<SomeCalls> for Calls {
    type Error = String;

    fn try_from(SomeCalls { per_batch, batches }: SomeCalls) -> Result<Self, String> {
        match per_batch.checked_mul(batches) {
            Some(1..) => Ok(Calls { per_batch, batches }),
            Some(0) => Err("a sample of no call".to_owned()),
            None => Err(format!("{batches} times {per_batch} calls are more than can be counted")),
        }
    }
}

/// Runs a sample and gives the time between the readings of the clock, or the first failure that a call returned.
///
/// Failures are seen in return values that are kept; those of types without a destructor are gone, and the gate's calls
/// before and after timing are what finds them.
pub(super) fn sample<K: Kernel, O: Operand>(
    data: &mut Data<K>,
    calls: Calls,
    call: impl Fn(&K::Reads, &mut K::Writes) -> O,
) -> Result<Duration, Fault> {
    in_batches(calls, &mut |calls| batch(data, calls, &call))
}

/// The time of all batches. Compiled once, not once per variant: it is outside of the clock.
fn in_batches(
    calls: Calls,
    batch: &mut dyn FnMut(u64) -> Result<Duration, Fault>,
) -> Result<Duration, Fault> {
    let mut time = Duration::ZERO;
    for _ in 0..calls.batches {
        time += batch(calls.per_batch)?;
    }
    Ok(time)
}

fn batch<K: Kernel, O: Operand>(
    data: &mut Data<K>,
    calls: u64,
    call: &impl Fn(&K::Reads, &mut K::Writes) -> O,
) -> Result<Duration, Fault> {
    let mut kept: Vec<O> = Vec::new();
    if const { needs_drop::<O>() } {
        kept.reserve_exact(calls as usize);
    }
    // Constants, so that of the four shapes of loop only the one that is needed is compiled.
    let time = match const { K::ENTRY.in_place } {
        InPlace::Fresh => {
            let Data { reads, writes, initial, copies, is_cold, .. } = data;
            let fresh = fresh_copies::<K>(copies, initial, calls as usize);
            if *is_cold && calls > 0 {
                evict(reads);
                fresh.iter().for_each(evict);
            }
            let start = Instant::now();
            match const { needs_drop::<O>() } {
                true => kbench_over_copies_keeping(reads, fresh, &mut kept, call),
                false => kbench_over_copies(reads, fresh, call),
            }
            let time = start.elapsed();
            if let Some(last) = fresh.last() {
                // What was timed last is what the gate looks at afterwards.
                K::restore(writes, last);
            }
            time
        }
        InPlace::No | InPlace::Reuse => {
            if data.is_cold && calls > 0 {
                evict(&data.reads);
                evict(&data.writes);
            }
            let start = Instant::now();
            match const { needs_drop::<O>() } {
                true => kbench_repeat_keeping(data, calls, &mut kept, call),
                false => kbench_repeat(data, calls, call),
            }
            start.elapsed()
        }
    };
    if const { needs_drop::<O>() } {
        first_failure(&kept)?;
    }
    Ok(time)
}

/// Removes the elements of an operand from the caches.
fn evict(operand: &impl Operand) {
    operand.fingerprint(&mut Fingerprint::evicting());
}

/// Fails when one of the return values is an `Err`.
fn first_failure<O: Operand>(kept: &[O]) -> Result<(), Fault> {
    if let Some(reason) = kept.iter().find_map(Operand::declined) {
        return Err(Fault::Declined(reason));
    }
    match kept.iter().find_map(Operand::failure) {
        Some(failure) => Err(Fault::Failed(failure)),
        None => Ok(()),
    }
}

/// Nanoseconds of one turn of a loop that calls nothing: no call can be told from none below this.
pub fn empty_turn() -> f64 {
    const TURNS: u64 = 100_000;
    let turn = |()| {
        let start = Instant::now();
        kbench_empty(TURNS);
        start.elapsed().as_nanos() as f64 / TURNS as f64
    };
    // The shortest of a few: anything else was disturbed.
    [(); 5].into_iter().map(turn).fold(f64::INFINITY, f64::min)
}

#[inline(never)]
fn kbench_empty(turns: u64) {
    align();
    for _ in 0..turns {
        black_box(());
    }
}

/// As many fresh outputs as there are calls; those of former batches are filled again instead of being made anew.
fn fresh_copies<'a, K: Kernel>(
    copies: &'a mut Vec<K::Writes>,
    initial: &K::Writes,
    calls: usize,
) -> &'a mut [K::Writes] {
    copies.iter_mut().take(calls).for_each(|copy| K::restore(copy, initial));
    if copies.len() < calls {
        copies.resize(calls, initial.clone());
    }
    &mut copies[..calls]
}

#[inline(never)]
fn kbench_repeat<K: Kernel, O>(
    data: &mut Data<K>,
    calls: u64,
    call: &impl Fn(&K::Reads, &mut K::Writes) -> O,
) {
    align();
    for _ in 0..calls {
        black_box(call(&data.reads, &mut data.writes));
    }
}

#[inline(never)]
fn kbench_repeat_keeping<K: Kernel, O>(
    data: &mut Data<K>,
    calls: u64,
    kept: &mut Vec<O>,
    call: &impl Fn(&K::Reads, &mut K::Writes) -> O,
) {
    align();
    // Space is reserved: extending by an iterator of known length does not look at the capacity again.
    kept.extend((0..calls as usize).map(|_| call(&data.reads, &mut data.writes)));
}

#[inline(never)]
fn kbench_over_copies<R, W, O>(reads: &R, copies: &mut [W], call: &impl Fn(&R, &mut W) -> O) {
    align();
    for writes in copies {
        black_box(call(reads, writes));
    }
}

#[inline(never)]
fn kbench_over_copies_keeping<R, W, O>(
    reads: &R,
    copies: &mut [W],
    kept: &mut Vec<O>,
    call: &impl Fn(&R, &mut W) -> O,
) {
    align();
    kept.extend(copies.iter_mut().map(|writes| call(reads, writes)));
}

/// Puts the loop that follows at the same place in a cache line as every other timed loop. Without it, two variants of
/// the same machine code can differ by a third when a call takes a nanosecond, by nothing but their addresses.
#[inline(always)]
#[allow(unsafe_code)] // nothing else can ask the assembler for an alignment
fn align() {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: the directive emits at most 63 bytes of no-operations; it touches no register and no memory.
    unsafe {
        std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_as_long_as_all_its_batches() {
        let mut batches = Vec::new();
        let mut batch = |calls| {
            batches.push(calls);
            // Each takes longer than the one before.
            Ok(Duration::from_nanos(10 * batches.len() as u64))
        };
        let time = in_batches(Calls { per_batch: 4, batches: 3 }, &mut batch).expect("no fault");
        assert_eq!(time, Duration::from_nanos(10 + 20 + 30));
        assert_eq!(batches, [4, 4, 4]);
    }
}
