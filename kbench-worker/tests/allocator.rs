//! What the installed allocator counts.
//!
//! Sections count all threads, hence also those of the standard test harness. This target has a `main` of its own, which
//! keeps one promise after the other on the only thread there is, and knows as much of the harness's flags as cargo and
//! nextest need.

use std::env;
use std::hint::black_box;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;

use kbench_worker::gauge::{Allocations, Allocator, count, is_installed};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

macro_rules! promises {
    ($($promise:ident,)*) => {
        const PROMISES: &[(&str, fn())] = &[$((stringify!($promise), $promise)),*];
    };
}

promises![
    it_knows_that_it_is_installed,
    one_vector_is_one_allocation,
    zeroed_memory_is_counted_and_zero,
    growth_counts_every_new_size,
    shrinking_counts_its_new_size_and_lowers_the_level,
    memory_that_is_released_counts_once_in_the_peak,
    other_threads_are_counted,
    memory_from_before_lowers_the_level,
    what_is_outside_is_not_counted,
    a_panic_ends_the_section,
];

#[allow(clippy::print_stdout)] // this is the harness, and cargo reads its output
fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |text: &str| arguments.iter().any(|argument| argument == text);
    if has("--ignored") {
        return;
    }
    // Names select; anything else leaves all selected, so that no flag can silence them.
    let is_selective = PROMISES.iter().any(|(name, _)| has(name));
    for (name, promise) in PROMISES {
        if has("--list") {
            println!("{name}: test");
        } else if has(name) || !is_selective {
            println!("test {name}");
            promise();
        }
    }
}

/// What `code` allocates; its result is dropped when the section has ended.
fn allocations_of<R>(code: impl FnOnce() -> R) -> Allocations {
    count(code).1.expect("the allocator is installed")
}

fn it_knows_that_it_is_installed() {
    assert!(is_installed());
}

fn one_vector_is_one_allocation() {
    let allocations = allocations_of(|| Vec::<u64>::with_capacity(1000));
    assert_eq!(allocations, Allocations { count: 1, bytes: 8000, peak: 8000 });
}

fn zeroed_memory_is_counted_and_zero() {
    let (vector, allocations) = count(|| vec![0_u32; 250]);
    assert_eq!(allocations, Some(Allocations { count: 1, bytes: 1000, peak: 1000 }));
    assert!(vector.iter().all(|element| *element == 0));
}

fn growth_counts_every_new_size() {
    let mut sizes = [0_u64; 64];
    let mut changes = 0;
    let allocations = allocations_of(|| {
        let mut vector = Vec::new();
        for element in 0..1000_u64 {
            let former = vector.capacity();
            vector.push(element);
            if vector.capacity() != former {
                sizes[changes] = 8 * vector.capacity() as u64;
                changes += 1;
            }
        }
        vector
    });
    assert!(changes > 3, "a vector grows in steps");
    let expected =
        Allocations { count: changes as u64, bytes: sizes.iter().sum(), peak: sizes[changes - 1] };
    assert_eq!(allocations, expected);
}

fn shrinking_counts_its_new_size_and_lowers_the_level() {
    let wide = || {
        let mut vector = Vec::<u8>::with_capacity(1000);
        vector.extend([7; 10]);
        vector
    };
    let mut vector = wide();
    let shrunk = allocations_of(|| vector.shrink_to_fit());
    assert_eq!(shrunk, Allocations { count: 1, bytes: 10, peak: 0 });

    let mut vector = wide();
    let refilled = allocations_of(|| {
        vector.shrink_to_fit();
        Vec::<u8>::with_capacity(2000)
    });
    assert_eq!(refilled, Allocations { count: 2, bytes: 2010, peak: 2000 - 990 });
}

fn memory_that_is_released_counts_once_in_the_peak() {
    let allocations = allocations_of(|| {
        for _ in 0..10 {
            drop(black_box(Vec::<u8>::with_capacity(1000)));
        }
        Vec::<u8>::with_capacity(10)
    });
    assert_eq!(allocations, Allocations { count: 11, bytes: 10_010, peak: 1000 });
}

fn other_threads_are_counted() {
    let turn = Barrier::new(3);
    let worker = || {
        // The first round is for what a barrier may allocate when it is first waited for.
        for _ in 0..2 {
            turn.wait();
            let vector = black_box(Vec::<u8>::with_capacity(4096));
            turn.wait();
            drop(vector);
            turn.wait();
        }
    };
    thread::scope(|scope| {
        scope.spawn(worker);
        scope.spawn(worker);
        let round = || {
            for _ in 0..3 {
                turn.wait();
            }
        };
        round();
        let allocations = allocations_of(round);
        assert_eq!(allocations, Allocations { count: 2, bytes: 8192, peak: 8192 });
    });
}

fn memory_from_before_lowers_the_level() {
    let before = vec![1_u8; 1 << 20];
    assert_eq!(allocations_of(|| drop(before)), Allocations::default());

    let before = vec![1_u8; 1000];
    let replaced = allocations_of(|| {
        drop(before);
        Vec::<u8>::with_capacity(100)
    });
    assert_eq!(replaced, Allocations { count: 1, bytes: 100, peak: 0 });

    let before = vec![1_u8; 1000];
    let exceeded = allocations_of(|| {
        drop(before);
        Vec::<u8>::with_capacity(3000)
    });
    assert_eq!(exceeded, Allocations { count: 1, bytes: 3000, peak: 2000 });
}

fn what_is_outside_is_not_counted() {
    let before = vec![1_u8; 500];
    assert_eq!(allocations_of(|| ()), Allocations::default());
    let between = vec![1_u8; 500];
    drop(before);
    assert_eq!(allocations_of(|| ()), Allocations::default());
    drop(between);
    assert_eq!(allocations_of(|| ()), Allocations::default());
}

fn a_panic_ends_the_section() {
    let panic = catch_unwind(|| count(|| resume_unwind(Box::new("as a kernel may"))));
    assert!(panic.is_err());
    one_vector_is_one_allocation();
}
