//! Stores that go past the caches. An ordinary store reads its cache line first; one that writes whole lines need not, so
//! that a large copy moves two thirds of the bytes. The price: what was written is not in the cache afterwards.

#![allow(unsafe_code)] // the compiler makes no such stores by itself

/// Gives a slice the content of another one of the same length.
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "both sides of a copy have the same length");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the machine has AVX, and both sides have the same length.
        return unsafe { avx::copy(from, to) };
    }
    to.copy_from_slice(from);
}

/// Gives all elements a value.
pub(super) fn fill(value: f32, to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the machine has AVX.
        return unsafe { avx::fill(value, to) };
    }
    to.fill(value);
}

#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;

    /// A cache line: what is stored at once, so that no line is written in parts.
    const LINE: usize = 16;

    /// Elements in front of the first whole line.
    fn before_line(to: &[f32]) -> usize {
        to.as_ptr().align_offset(LINE * size_of::<f32>()).min(to.len())
    }

    /// # Safety
    ///
    /// Both sides have the same length.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn copy(from: &[f32], to: &mut [f32]) {
        let (from_first, from) = from.split_at(before_line(to));
        let (to_first, to) = to.split_at_mut(from_first.len());
        to_first.copy_from_slice(from_first);
        let (from_lines, from_rest) = from.as_chunks::<LINE>();
        let (to_lines, to_rest) = to.as_chunks_mut::<LINE>();
        for (from, to) in from_lines.iter().zip(to_lines) {
            // SAFETY: both sides have sixteen elements, and `to` begins where a line does.
            unsafe {
                let (low, high) =
                    (_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8)));
                _mm256_stream_ps(to.as_mut_ptr(), low);
                _mm256_stream_ps(to.as_mut_ptr().add(8), high);
            }
        }
        _mm_sfence(); // whoever is told of the copy must see it
        to_rest.copy_from_slice(from_rest);
    }

    #[target_feature(enable = "avx")]
    pub(super) fn fill(value: f32, to: &mut [f32]) {
        let (first, to) = to.split_at_mut(before_line(to));
        first.fill(value);
        let (lines, rest) = to.as_chunks_mut::<LINE>();
        let values = _mm256_set1_ps(value);
        for line in lines {
            // SAFETY: there are sixteen elements, and they begin where a line does.
            unsafe {
                _mm256_stream_ps(line.as_mut_ptr(), values);
                _mm256_stream_ps(line.as_mut_ptr().add(8), values);
            }
        }
        _mm_sfence(); // whoever is told of it must see it
        rest.fill(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_written_wherever_a_slice_begins_and_ends() {
        let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
        for (begin, end) in [(0, 0), (0, 1), (1, 18), (3, 200), (5, 21), (16, 160)] {
            let mut out = vec![-1.0; 200];
            copy(&x[begin..end], &mut out[begin..end]);
            let expected = |i: usize| if (begin..end).contains(&i) { i as f32 } else { -1.0 };
            assert!((0..200).all(|i| out[i] == expected(i)), "copy {begin}..{end}");
            let mut out = vec![-1.0; 200];
            fill(7.0, &mut out[begin..end]);
            let expected = |i: usize| if (begin..end).contains(&i) { 7.0 } else { -1.0 };
            assert!((0..200).all(|i| out[i] == expected(i)), "fill {begin}..{end}");
        }
    }
}
