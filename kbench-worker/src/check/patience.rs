//! How long the listed sizes of a kernel may take to check.
//!
//! References are simple and therefore slow, and their time grows with the size. Whether there is time for a size is decided
//! when it begins: then all variants are checked there, or none that passed at a smaller one.

use crate::plan::Size;

/// A size that took this share of the time tells how long a larger one takes. Shorter times may be those of a pool that starts.
const TELLING_SHARE: f64 = 0.05;

/// Seconds that the listed sizes of a kernel have taken.
pub(super) struct Spent {
    sizes: Vec<(Size, f64)>,
    /// Seconds that they may take; a larger size is not begun when it would take more.
    most: f64,
}

impl Spent {
    /// Nothing of so many seconds.
    pub(super) fn of(most: f64) -> Self {
        Spent { sizes: Vec::new(), most }
    }

    /// Notes what a size has taken once more.
    pub(super) fn add(&mut self, size: &Size, seconds: f64) {
        match self.sizes.iter_mut().find(|(of, _)| of == size) {
            Some((_, known)) => *known += seconds,
            None => self.sizes.push((size.clone(), seconds)),
        }
    }

    /// Whether there is time for a size: it has begun, or should end in time by what the next smaller one has taken.
    pub(super) fn allows(&self, size: &Size) -> bool {
        if self.sizes.iter().any(|(of, _)| of == size) {
            return true;
        }
        let product = |size: &Size| size.product().unwrap_or(u64::MAX);
        let smaller = self.sizes.iter().filter(|(of, _)| product(of) < product(size));
        let next = smaller.max_by_key(|(of, _)| product(of));
        let predicted = next
            .filter(|(_, seconds)| *seconds >= TELLING_SHARE * self.most)
            .map_or(0.0, |(of, seconds)| {
                seconds * product(size) as f64 / product(of).max(1) as f64
            });
        let spent: f64 = self.sizes.iter().map(|(_, seconds)| seconds).sum();
        spent + predicted <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(sizes: &[(usize, f64)]) -> Spent {
        let mut spent = Spent::of(20.0);
        sizes.iter().for_each(|(size, seconds)| spent.add(&Size::of([*size]), *seconds));
        spent
    }

    #[test]
    fn a_size_that_would_take_too_long_is_not_begun_and_one_that_has_begun_is_finished() {
        let allows = |spent: &Spent, size: usize| spent.allows(&Size::of([size]));
        assert!(allows(&spent(&[]), 1 << 30));
        let slow = spent(&[(100, 0.5), (1000, 2.0)]);
        assert!(allows(&slow, 8000) && !allows(&slow, 10_000), "2.5 s, and 16 s or 20 s more");
        let slower = spent(&[(100, 0.5), (1000, 1.0), (1000, 24.0)]);
        assert!(allows(&slower, 1000) && !allows(&slower, 500) && !allows(&slower, 2000));
        // The start of a pool says nothing about the time of a size.
        assert!(allows(&spent(&[(16, 0.2)]), 1 << 24));
    }
}
