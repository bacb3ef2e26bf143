//! Stores that go past the caches. An ordinary store reads its cache line first; one that writes whole lines need not, so
//! that a large copy moves two thirds of the bytes. The price: what was written is not in the cache afterwards.
//!
//! A kernel that writes large results by the block does so by [`Results`], and `stored!` chooses how:
//!
//! ```ignore
//! vectorise! {
//!     fn double<T: Float, const STREAMED: bool>(x: &[T], out: &mut [T]) {
//!         let (mut wide_x, mut wide_out) = (BUFFER, BUFFER);
//!         for block in Results::<STREAMED>::blocks(out, T::BLOCK) {
//!             let (x, out) = (T::read(&x[block.clone()], &mut wide_x), &mut out[block]);
//!             for (out, x) in Results::<STREAMED>::output(out, &mut wide_out).iter_mut().zip(x) {
//!                 *out = 2.0 * x;
//!             }
//!             Results::<STREAMED>::flush(&wide_out, out);
//!         }
//!     }
//! }
//! stored!(is_large(out), double::<T>(x, out));
//! ```

#![allow(unsafe_code)] // the compiler makes no such stores by itself

use std::ops::Range;

use super::float::{BLOCK, Float};

/// Bytes of results that are stored past the caches. Fewer of them may still be there when they are read: in `layer_norm` on
/// two kinds of Xeon, from here on such stores are faster even if somebody reads everything right afterwards, be it one
/// thread or sixteen.
const LARGE: usize = 32 << 20;

/// Whether these results are so many that they do not stay in the caches anyway.
pub(crate) fn is_large<T>(results: &[T]) -> bool {
    size_of_val(results) >= LARGE
}

/// How a kernel writes its results by the block: into the caches, as [`Float`] does, or past them.
///
/// Nobody may look at what was written past the caches before a [`Fence`] is dropped, which `stored!` sees to.
pub(crate) struct Results<const STREAMED: bool>;

impl<const STREAMED: bool> Results<STREAMED> {
    /// What is written at a time of these elements, of which the buffer holds so many: blocks of [`BLOCK`] for streams, each but
    /// the first beginning where a cache line does.
    #[inline(always)]
    pub(crate) fn blocks<T>(of: &[T], buffered: usize) -> Blocks {
        let before_line = if STREAMED { of.as_ptr().align_offset(LINE) } else { 0 };
        let block = if STREAMED { BLOCK } else { buffered };
        let first = if before_line > 0 { before_line } else { block };
        Blocks { begin: 0, end: first.min(of.len()), length: of.len(), block }
    }

    /// Where to write elements as `f32`, before [`flush`](Self::flush); what is there is of no meaning.
    #[inline(always)]
    pub(crate) fn output<'a, T: Float>(to: &'a mut [T], buffer: &'a mut [f32]) -> &'a mut [f32] {
        if STREAMED { &mut buffer[..to.len()] } else { T::output(to, buffer) }
    }

    /// Gives elements what was written to their [`output`](Self::output).
    #[inline(always)]
    pub(crate) fn flush<T: Float>(buffer: &[f32], to: &mut [T]) {
        if STREAMED {
            let mut block = Narrow([T::from_f32(0.0); BLOCK]);
            store(T::narrowed(&buffer[..to.len()], &mut block.0), to);
        } else {
            T::flush(buffer, to);
        }
    }

    /// Asks for the elements that lie `distance` behind these, such as the next row: a processor that asks for lines in
    /// advance by itself does so while a row is read, and not while it is written.
    #[inline(always)]
    pub(crate) fn read_ahead<T>(x: &[T], distance: usize) {
        if STREAMED {
            for line in (0..x.len()).step_by(LINE / size_of::<T>()) {
                ask_for(x.as_ptr().wrapping_add(distance + line));
            }
        }
    }
}

/// A block of elements on their way past the caches, beginning where a line of them does.
#[repr(align(64))]
struct Narrow<T>([T; BLOCK]);

/// Ranges that follow each other, see [`Results::blocks`].
pub(crate) struct Blocks {
    begin: usize,
    end: usize,
    /// Where the last one ends.
    length: usize,
    /// The length of all but the first and the last.
    block: usize,
}

impl Iterator for Blocks {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        let next = self.begin..self.end;
        self.begin = self.end;
        self.end = self.end.saturating_add(self.block).min(self.length);
        (!next.is_empty()).then_some(next)
    }
}

/// Calls a function `<T, const STREAMED: bool>` of results that are stored past the caches, or not.
macro_rules! stored {
    ($is_streamed:expr, $function:ident::<$element:ident>($($argument:expr),* $(,)?)) => {
        if $is_streamed {
            let _fence = $crate::shared::streaming::Fence;
            $function::<$element, true>($($argument),*);
        } else {
            $function::<$element, false>($($argument),*);
        }
    };
}

pub(crate) use stored;

/// Bytes of a cache line: what is stored at once, so that no line is written in parts.
const LINE: usize = 64;

/// Gives a slice the content of another one of the same length.
pub(crate) fn copy<T: Float>(from: &[T], to: &mut [T]) {
    let _fence = Fence;
    store(from, to);
}

/// Gives all elements a value.
pub(crate) fn fill(value: f32, to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        let _fence = Fence;
        // SAFETY: the machine has AVX.
        return unsafe { avx::fill(value, to) };
    }
    to.fill(value);
}

/// As [`copy`], but that nobody may look at it before a [`Fence`] is dropped.
fn store<T: Float>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "both sides of a copy have the same length");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the machine has AVX, and callers drop a `Fence` before anybody looks at the results.
        return unsafe { avx::store(from, to) };
    }
    to.copy_from_slice(from);
}

/// When it is dropped, what was stored past the caches may be read and written again: also where a kernel panics.
pub(crate) struct Fence;

impl Drop for Fence {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this architecture has SSE.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
        #[cfg(test)]
        tests::FENCES.set(tests::FENCES.get() + 1);
    }
}

/// Asks for the cache line of an address, which need not be one of ours.
#[inline(always)]
fn ask_for<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: this reads nothing, and does nothing where there is nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;

    use super::{Float, LINE};

    /// Elements of a cache line.
    const fn line<T>() -> usize {
        const { assert!(LINE.is_multiple_of(size_of::<T>()), "a line holds whole elements") };
        LINE / size_of::<T>()
    }

    /// Elements in front of the first whole line.
    fn before_line<T>(to: &[T]) -> usize {
        to.as_ptr().align_offset(LINE).min(to.len())
    }

    /// # Safety
    ///
    /// A [`Fence`](super::Fence) must be dropped before `to` is read or written again.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn store<T: Float>(from: &[T], to: &mut [T]) {
        let (from_first, from) = from.split_at(before_line(to));
        let (to_first, to) = to.split_at_mut(from_first.len());
        if !to_first.is_empty() {
            to_first.copy_from_slice(from_first);
        }
        let (from_lines, mut to_lines) =
            (from.chunks_exact(line::<T>()), to.chunks_exact_mut(line::<T>()));
        let from_rest = from_lines.remainder();
        for (from, to) in from_lines.zip(&mut to_lines) {
            let (from, to): (*const f32, *mut f32) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
            // SAFETY: both sides have 64 bytes, of which none is padding of a float, and `to` begins where a line does.
            unsafe {
                let (low, high) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
                _mm256_stream_ps(to, low);
                _mm256_stream_ps(to.add(8), high);
            }
        }
        if !from_rest.is_empty() {
            to_lines.into_remainder().copy_from_slice(from_rest);
        }
    }

    #[target_feature(enable = "avx")]
    pub(super) fn fill(value: f32, to: &mut [f32]) {
        let (first, to) = to.split_at_mut(before_line(to));
        first.fill(value);
        let mut lines = to.chunks_exact_mut(line::<f32>());
        let values = _mm256_set1_ps(value);
        for line in &mut lines {
            // SAFETY: there are sixteen elements, and they begin where a line does.
            unsafe {
                _mm256_stream_ps(line.as_mut_ptr(), values);
                _mm256_stream_ps(line.as_mut_ptr().add(8), values);
            }
        }
        lines.into_remainder().fill(value);
    }
}

/// Runs a kernel of `length` results both ways, into a slice that begins anywhere in a cache line: both give the same, and
/// leave alone what is beside it.
#[cfg(test)]
pub(crate) fn assert_same_both_ways<T: Float>(length: usize, run: impl Fn(&mut [T], bool)) {
    for begin in 0..LINE / size_of::<T>() {
        let results = |is_streamed| {
            let mut results = vec![T::from_f32(-7.0); begin + length + 3];
            run(&mut results[begin..begin + length], is_streamed);
            results.iter().map(|result| result.bits()).collect::<Vec<_>>()
        };
        assert_eq!(results(true), results(false), "{length} of {} from {begin} on", T::NAME);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::iter::once;
    use std::panic::catch_unwind;

    use half::f16;

    use super::*;

    thread_local! {
        /// Fences of this thread so far.
        pub(super) static FENCES: Cell<usize> = const { Cell::new(0) };
    }

    fn first_block<T: Float, const STREAMED: bool>(x: &[T], out: &mut [T]) {
        Results::<STREAMED>::flush(&[1.0; BLOCK], &mut out[..BLOCK]);
        out[BLOCK..].copy_from_slice(x);
    }

    #[test]
    fn a_fence_follows_what_is_stored_even_where_a_kernel_panics() {
        fn kernel(x: &[f32], is_streamed: bool) {
            let mut out = [0.0; 2 * BLOCK];
            stored!(is_streamed, first_block::<f32>(x, &mut out));
        }
        let fences = |run: fn()| {
            let before = FENCES.get();
            let has_panicked = catch_unwind(run).is_err();
            (FENCES.get() - before, has_panicked)
        };
        assert_eq!(fences(|| kernel(&[2.0; BLOCK], true)), (1, false));
        assert_eq!(fences(|| kernel(&[2.0; 1], true)), (1, true));
        assert_eq!(fences(|| kernel(&[2.0; BLOCK], false)), (0, false));
        assert_eq!(fences(|| copy(&[1.0f32; 32], &mut [0.0; 32])), (1, false));
    }

    #[test]
    fn every_element_is_written_wherever_a_slice_begins_and_ends() {
        let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
        let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
        for (begin, end) in [(0, 0), (0, 1), (1, 18), (3, 200), (5, 21), (16, 160)] {
            let expected = |i: usize| if (begin..end).contains(&i) { i as f32 } else { -1.0 };
            let mut out = vec![-1.0; 200];
            copy(&x[begin..end], &mut out[begin..end]);
            assert!((0..200).all(|i| out[i] == expected(i)), "copy {begin}..{end}");
            let mut out = vec![f16::NEG_ONE; 200];
            copy(&halves[begin..end], &mut out[begin..end]);
            assert!((0..200).all(|i| out[i].to_f32() == expected(i)), "f16 {begin}..{end}");
            let mut out = vec![-1.0; 200];
            fill(7.0, &mut out[begin..end]);
            let expected = |i: usize| if (begin..end).contains(&i) { 7.0 } else { -1.0 };
            assert!((0..200).all(|i| out[i] == expected(i)), "fill {begin}..{end}");
        }
    }

    #[test]
    fn blocks_follow_each_other_and_begin_with_a_line() {
        let elements = [0.0f32; 2000];
        for (begin, length) in [(0, 0), (1, 0), (0, 1), (1, 3), (2, 300), (16, 512), (5, 1995)] {
            let elements = &elements[begin..begin + length];
            let blocks: Vec<_> = Results::<true>::blocks(elements, usize::MAX).collect();
            let mut end = 0;
            for (i, block) in blocks.iter().enumerate() {
                assert!(block.start == end && (1..=BLOCK).contains(&block.len()), "{blocks:?}");
                let address = elements[block.start..].as_ptr().addr();
                assert!(i == 0 || address.is_multiple_of(LINE), "{blocks:?}");
                end = block.end;
            }
            assert_eq!(end, length);
            assert!(blocks.len() <= length / BLOCK + 2, "{blocks:?}");
        }
    }

    #[test]
    fn blocks_that_are_not_streamed_fill_their_buffer() {
        let blocks = |buffered| Results::<false>::blocks(&[0u8; 10][1..], buffered);
        assert!(blocks(usize::MAX).eq(once(0..9)));
        assert!(blocks(4).eq([0..4, 4..8, 8..9]));
        assert!(blocks(9).eq(once(0..9)));
    }

    #[test]
    fn results_are_large_by_their_bytes() {
        assert!(is_large(&vec![0u32; LARGE / 4]));
        assert!(!is_large(&vec![0u32; LARGE / 4 - 1]));
        assert!(!is_large(&vec![0u16; LARGE / 4]));
    }
}
