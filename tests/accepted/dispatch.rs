//! Dispatchers of all kinds, under the lints of a crate that forbids what it can, and without anything in scope.
#![no_implicit_prelude]
#![forbid(missing_docs, unused)]
#![deny(
    warnings,
    missing_debug_implementations,
    missing_copy_implementations,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_qualifications,
    unused_results,
    unused_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    let_underscore_drop
)]

mod safe {
    #![forbid(unsafe_code)]

    use ::kbench::kernel_bench;

    const LIMIT: usize = 64;

    #[kernel_bench(sizes = [16, 128], inputs = |n| (2.0, ::kbench::value::uniform(n), ::kbench::value::uniform(n)), in_place = reuse)]
    pub(crate) fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        for i in 0..x.len() {
            y[i] += a * x[i];
        }
    }

    #[kernel_bench(of = saxpy, threshold = tuned(LIMIT))]
    pub(crate) fn saxpy_other(a: f32, x: &[f32], y: &mut [f32]) {
        saxpy(a, x, y);
    }

    ::kbench::dispatch! {
        /// Measured as a variant: this is how its users prove it.
        #[kernel_bench(of = saxpy, parallel, name = "auto")]
        pub(crate) fn saxpy_auto(a: f32, x: &[f32], y: &mut [f32]) {
            match x.len() {
                tuned(1 << 10).. => saxpy_other,
                LIMIT.. => crate::elsewhere::saxpy,
                _ => saxpy,
            }
        }
    }
}

mod elsewhere {
    pub(crate) fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        super::safe::saxpy(a, x, y);
    }
}

fn first<T: ::core::marker::Copy, const N: usize>(x: &[T], others: [T; N]) -> T {
    let _ = others;
    x[0]
}

fn last<T: ::core::marker::Copy, const N: usize>(x: &[T], others: [T; N]) -> T {
    let _ = others;
    x[x.len() - 1]
}

::kbench::dispatch! {
    #[inline(never)]
    fn either<T, const N: usize>(x: &[T], others: [T; N]) -> T
    where
        T: ::core::marker::Copy,
    {
        match { let n = x.len(); n * N } {
            tuned(::core::mem::size_of::<(u8, u16)>() << 4,).. => last::<T, N>,
            (N + 8).. => last::<T, N>,
            _ => first,
        }
    }
}

/// What the names of the expansion must not get in the way of.
fn chosen(work: usize, value: usize, most: usize) -> usize {
    work + value + most
}

::kbench::dispatch! {
    const fn named(work: usize, value: usize, most: usize) -> usize {
        match work + value {
            4.. => most_of,
            _ => least_of,
        }
    }
}

const fn most_of(work: usize, value: usize, most: usize) -> usize {
    let _ = (work, value);
    most
}

const fn least_of(work: usize, value: usize, most: usize) -> usize {
    let _ = (value, most);
    work
}

::kbench::dispatch! {
    fn only(work: usize, value: usize, most: usize) -> usize {
        match work {
            _ => chosen,
        }
    }
}

/// # Safety
///
/// There is one.
unsafe fn unchecked(x: &[u8]) -> u8 {
    // SAFETY: the caller says that there is one.
    unsafe { *x.get_unchecked(0) }
}

fn checked(x: &[u8]) -> u8 {
    x[0]
}

::kbench::dispatch! {
    /// # Safety
    /// There is an element.
    unsafe fn element(x: &[u8]) -> u8 {
        match x.len() {
            tuned(4).. => unchecked,
            _ => checked,
        }
    }
}

macro_rules! dispatcher {
    ($(#[$attribute:meta])* $visibility:vis $name:ident($($parameter:ident: $kind:ty),*) -> $output:ty, $work:expr, $from:expr, $above:path, $below:path) => {
        ::kbench::dispatch! {
            $(#[$attribute])*
            $visibility fn $name($($parameter: $kind),*) -> $output {
                match $work {
                    tuned($from).. => $above,
                    _ => $below,
                }
            }
        }
    };
}

dispatcher!(#[inline(always)] made(x: &[u8]) -> u8, x.len() + 1, 2 + 2, checked, checked);

struct Data;

impl Data {
    fn few(x: &[u8]) -> usize {
        x.len()
    }

    ::kbench::dispatch! {
        fn of(x: &[u8]) -> usize {
            match x.len() {
                tuned(1 << 3).. => Self::few,
                _ => <Self as Many>::many,
            }
        }
    }
}

trait Many {
    fn many(x: &[u8]) -> usize;
}

impl Many for Data {
    fn many(_: &[u8]) -> usize {
        100
    }
}

fn main() {
    let mut y = [1.0; 4];
    safe::saxpy_auto(2.0, &[1.0; 4], &mut y);
    ::core::assert_eq!(y, [3.0; 4]);
    ::core::assert_eq!(either(&[1, 2, 3], [0; 2]), 1);
    ::core::assert_eq!(either(&[1, 2, 3, 4, 5], [0; 2]), 5);
    const NAMED: usize = named(3, 1, 7);
    ::core::assert_eq!((NAMED, named(2, 1, 7), only(1, 2, 3)), (7, 2, 6));
    // SAFETY: there are elements.
    let elements = unsafe { (element(&[1, 2, 3, 4]), element(&[5])) };
    ::core::assert_eq!((elements, made(&[6])), ((1, 5), 6));
    ::core::assert_eq!((Data::of(&[0; 8]), Data::of(&[0; 7])), (8, 100));
}
