//! The way along which a crossover is looked for: through the sizes of a plan, and through sizes between them.
//!
//! From one size to the next, axes that grow by the same factor grow together (a square matrix stays square), others one
//! after the other, the one that grows most first; so at most points of the way only one axis has a value that nobody
//! listed. When an axis shrinks while another grows, all move together: no size on the way is larger than both ends.
//! Positions on the way are octaves: doubling an axis, or several together, is one.

use crate::order;
use crate::plan::Size;

/// Factors that differ by less than this, in octaves, are the same.
const SAME_FACTOR: f64 = 0.01;

/// A value between listed ones is a multiple of a power of two, as they are, unless that is coarser than this part of it.
const FINEST_STEP: usize = 32;

/// Where between two points a third is looked for when the middle will not do.
const FRACTIONS: [f64; 7] = [0.5, 0.4375, 0.5625, 0.375, 0.625, 0.25, 0.75];

/// How far below and above the place of a claim is measured, in octaves.
const ASIDE: f64 = 1.0;

/// How far from there the nearest size is looked for at which a kernel is defined.
const BESIDE: usize = 64;

/// A way through sizes.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// The sizes that it goes through, with their positions.
    listed: Vec<Point>,
    stretches: Vec<Stretch>,
    /// For every axis, the largest power of two that divides all its listed values.
    granules: Vec<usize>,
}

/// A size on the way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// In octaves from the first size.
    pub(super) position: f64,
    pub(super) size: Size,
}

/// A part of the way on which some axes move together.
#[derive(Clone, Debug)]
struct Stretch {
    start: f64,
    /// In octaves: as far as the axis goes that goes furthest.
    length: f64,
    from: Vec<usize>,
    /// The axes, each with its factor as a logarithm to base two, which is negative when it shrinks.
    moving: Vec<(usize, f64)>,
}

impl Curve {
    /// The way through some sizes in their order; none through fewer than two, or when two are the same or an axis is 0.
    pub(super) fn through(sizes: &[Size]) -> Option<Self> {
        let first = sizes.first()?;
        if sizes.len() < 2 || sizes.iter().any(|size| size.values.contains(&0)) {
            return None;
        }
        let mut listed = vec![Point { position: 0.0, size: first.clone() }];
        let mut stretches = Vec::new();
        for pair in sizes.windows(2) {
            let start = listed.last()?.position;
            let between = stretches_between(&pair[0].values, &pair[1].values, start);
            let last = between.last()?;
            let position = last.start + last.length;
            stretches.extend(between);
            listed.push(Point { position, size: pair[1].clone() });
        }
        let granule = |axis: usize| {
            let divisors = sizes.iter().map(|size| 1 << size.values[axis].trailing_zeros());
            divisors.min().unwrap_or(1)
        };
        let granules = (0..first.values.len()).map(granule).collect();
        Some(Curve { listed, stretches, granules })
    }

    /// The sizes that it was made of.
    pub(super) fn listed(&self) -> &[Point] {
        &self.listed
    }

    /// Axes that are not the same everywhere, as indices.
    pub(super) fn moving(&self) -> Vec<usize> {
        let moves = |axis: usize, stretch: &Stretch| stretch.moving.iter().any(|(a, _)| *a == axis);
        let is_moving = |axis: &usize| self.stretches.iter().any(|stretch| moves(*axis, stretch));
        (0..self.granules.len()).filter(is_moving).collect()
    }

    /// The point that is nearest to a position, with values as round as the listed ones are.
    pub(super) fn near(&self, position: f64) -> Point {
        self.near_by(position, &|axis, value| self.rounded(axis, value))
    }

    /// The same with another idea of round values.
    fn near_by(&self, position: f64, round: &dyn Fn(usize, f64) -> usize) -> Point {
        if let Some(listed) = self.listed.iter().find(|point| point.position == position) {
            return listed.clone();
        }
        let is_before = |stretch: &&Stretch| stretch.start + stretch.length < position;
        let passed = self.stretches.iter().take_while(is_before).count();
        let stretch = &self.stretches[passed.min(self.stretches.len() - 1)];
        let share = ((position - stretch.start) / stretch.length).clamp(0.0, 1.0);
        let value = |axis: usize, factor: f64, share: f64| {
            round(axis, stretch.from[axis] as f64 * (factor * share).exp2())
        };
        // The axis with the largest values has the finest steps; where it comes to lie the others follow.
        let leader = stretch.moving.iter().copied().max_by_key(|(axis, _)| stretch.from[*axis]);
        let (leader, factor) = leader.unwrap_or((0, 1.0));
        let moved = value(leader, factor, share) as f64 / stretch.from[leader] as f64;
        let share = moved.log2() / factor;
        let mut values = stretch.from.clone();
        for (axis, factor) in &stretch.moving {
            values[*axis] = value(*axis, *factor, share);
        }
        Point { position: stretch.start + stretch.length * share, size: Size::of(values) }
    }

    /// A point between two positions, about in the middle, at which the kernel is defined; none when they are neighbours.
    /// Powers of two and neighbours are tried last, for kernels that are not defined everywhere.
    pub(super) fn between(
        &self,
        low: f64,
        high: f64,
        is_valid: &dyn Fn(&[usize]) -> bool,
    ) -> Option<Point> {
        let sizes = [self.near(low).size, self.near(high).size];
        let at = |share: f64| low + share * (high - low);
        let power = |_: usize, value: f64| value.log2().round().exp2() as usize;
        let is_inside = |point: &Point| {
            low < point.position && point.position < high && !sizes.contains(&point.size)
        };
        let round = FRACTIONS.map(|share| self.near(at(share)));
        let powers = FRACTIONS.map(|share| self.near_by(at(share), &power));
        let candidates: Vec<Point> =
            round.into_iter().chain(powers).filter(|point| is_inside(point)).collect();
        if candidates.is_empty() {
            return None;
        }
        let beside = (1..=BESIDE).flat_map(|step| {
            let beside = |_: usize, value: f64| value.round() as usize + step;
            FRACTIONS.map(|share| self.near_by(at(share), &beside))
        });
        let all = candidates.into_iter().chain(beside.filter(|point| is_inside(point)));
        all.into_iter().find(|point| is_valid(&point.size.values))
    }

    /// The first point from which on something holds and one to either side, as far as they are on the way; none when it
    /// holds nowhere or everywhere.
    pub(super) fn around(
        &self,
        holds: &dyn Fn(&Size) -> bool,
        is_valid: &dyn Fn(&[usize]) -> bool,
    ) -> Vec<Point> {
        let first = self.listed.iter().position(|point| holds(&point.size));
        let Some(first) = first.filter(|first| *first > 0) else { return Vec::new() };
        let (mut low, mut at) = (self.listed[first - 1].position, self.listed[first].clone());
        while let Some(middle) = self.between(low, at.position, is_valid) {
            if holds(&middle.size) {
                at = middle;
            } else {
                low = middle.position;
            }
        }
        let end = self.listed[self.listed.len() - 1].position;
        let aside =
            [at.position - ASIDE, at.position + ASIDE].map(|p| self.near(p.clamp(0.0, end)));
        let valid = aside.into_iter().filter(|point| is_valid(&point.size.values));
        valid.chain([at.clone()]).collect()
    }

    fn rounded(&self, axis: usize, value: f64) -> usize {
        let finest = (value as usize / FINEST_STEP).max(1);
        let mut granule = self.granules[axis];
        while granule > finest {
            granule /= 2;
        }
        ((value / granule as f64).round() as usize * granule).max(1)
    }
}

/// The stretches from one size to another; none when they are the same.
fn stretches_between(from: &[usize], to: &[usize], start: f64) -> Vec<Stretch> {
    let factor = |axis: usize| (to[axis] as f64 / from[axis] as f64).log2();
    let moving = (0..from.len()).filter(|axis| from[*axis] != to[*axis]);
    let moving: Vec<(usize, f64)> = moving.map(|axis| (axis, factor(axis))).collect();
    let mut groups: Vec<Vec<(usize, f64)>> = Vec::new();
    let shrinks = moving.iter().any(|(_, factor)| *factor < 0.0);
    for (axis, factor) in moving {
        let belongs =
            |group: &&mut Vec<(usize, f64)>| shrinks || (group[0].1 - factor).abs() < SAME_FACTOR;
        match groups.iter_mut().find(belongs) {
            Some(group) => group.push((axis, factor)),
            None => groups.push(vec![(axis, factor)]),
        }
    }
    order::sort_by(&mut groups, |a, b| b[0].1.total_cmp(&a[0].1));
    let (mut start, mut from) = (start, from.to_vec());
    let mut stretches = Vec::new();
    for moving in groups {
        let length = moving.iter().map(|(_, factor)| factor.abs()).fold(0.0, f64::max);
        let next = moving.iter().fold(from.clone(), |mut next, (axis, _)| {
            next[*axis] = to[*axis];
            next
        });
        stretches.push(Stretch { start, length, from, moving });
        from = next;
        start += length;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(sizes: &[&[usize]]) -> Curve {
        let sizes: Vec<Size> = sizes.iter().map(|values| Size::of(*values)).collect();
        Curve::through(&sizes).expect("a way")
    }

    fn middle(curve: &Curve, low: f64, high: f64) -> Option<Vec<usize>> {
        curve.between(low, high, &|_| true).map(|point| point.size.values)
    }

    #[test]
    fn the_middle_of_one_axis_is_geometric_and_as_round_as_what_is_listed() {
        let one = curve(&[&[1024], &[4096], &[65_536]]);
        assert_eq!(one.listed()[2].position, 6.0);
        assert_eq!(middle(&one, 0.0, 2.0), Some(vec![2048]));
        assert_eq!(middle(&one, 2.0, 3.0), Some(vec![5760]), "4096·√2 = 5793, in steps of 128");
        assert_eq!(middle(&curve(&[&[1], &[4]]), 0.0, 1.0), None, "nothing is between 1 and 2");
    }

    #[test]
    fn a_square_stays_square_and_other_axes_move_one_after_the_other() {
        let square = curve(&[&[16, 16, 16], &[64, 64, 64]]);
        assert_eq!(middle(&square, 0.0, 2.0), Some(vec![32, 32, 32]));
        let rope = curve(&[&[16, 8, 64], &[128, 8, 128]]);
        assert_eq!(rope.listed()[1].position, 4.0);
        assert_eq!(middle(&rope, 0.0, 2.0), Some(vec![32, 8, 64]));
        assert_eq!(middle(&rope, 3.0, 4.0), Some(vec![128, 8, 90]));
        assert_eq!(rope.moving(), [0, 2]);
    }

    #[test]
    fn what_is_not_defined_is_gone_round() {
        let even = |values: &[usize]| values[0].is_multiple_of(4);
        let point = curve(&[&[10], &[40]]).between(0.0, 2.0, &even).expect("one of them");
        assert!(point.size.values[0].is_multiple_of(4) && point.position > 0.0, "{point:?}");
        assert!(curve(&[&[10], &[40]]).between(0.0, 2.0, &|_| false).is_none());
    }

    #[test]
    fn no_size_on_the_way_is_larger_than_both_ends() {
        let turned = curve(&[&[16, 1_000_000], &[1_000_000, 16]]);
        let end = turned.listed()[1].position;
        for step in 1..20 {
            let size = turned.near(end * f64::from(step) / 20.0).size;
            let product = size.values.iter().product::<usize>();
            assert!((10_000_000..30_000_000).contains(&product), "{size:?}");
        }
        assert_eq!(middle(&turned, 0.0, end), Some(vec![4000, 4000]));
    }

    #[test]
    fn a_kernel_of_odd_multiples_gets_those() {
        let sevens = |values: &[usize]| values[0].is_multiple_of(7);
        let point = curve(&[&[700], &[7000]]).between(0.0, 3.0, &sevens).expect("a multiple of 7");
        assert!(sevens(&point.size.values) && (701..7000).contains(&point.size.values[0]));
    }

    #[test]
    fn a_kernel_of_powers_of_two_gets_powers_of_two() {
        let power = |values: &[usize]| values[0].is_power_of_two();
        let way = curve(&[&[1024], &[8192]]);
        let point = way.between(0.0, 3.0, &power).expect("2048 or 4096");
        assert!(power(&point.size.values), "{point:?}");
        assert!(way.between(1.0, 2.0, &power).is_none());
    }

    #[test]
    fn around_a_claim_are_the_first_size_that_it_holds_at_and_one_octave_to_either_side() {
        let way = curve(&[&[1024], &[65_536]]);
        let from = |least: usize| {
            let holds = move |size: &Size| size.values[0] >= least;
            let mut values: Vec<usize> =
                way.around(&holds, &|_| true).iter().map(|point| point.size.values[0]).collect();
            values.sort_unstable();
            values
        };
        assert_eq!(from(8192), [4096, 8192, 16_384]);
        assert_eq!(from(65_000), [32_768, 65_536, 65_536], "there is nothing above");
        assert!(from(512).is_empty() && from(1 << 20).is_empty());
    }

    #[test]
    fn there_is_no_way_through_one_size_or_from_nothing() {
        assert!(Curve::through(&[Size::of([4])]).is_none());
        assert!(Curve::through(&[Size::of([0]), Size::of([4])]).is_none());
        assert!(Curve::through(&[Size::of([4]), Size::of([4])]).is_none());
    }

    #[test]
    fn every_point_knows_its_own_position() {
        let way = curve(&[&[1, 1024], &[16, 1024], &[64, 4096], &[512, 4096]]);
        for step in 0..200 {
            let point = way.near(0.045 * f64::from(step));
            let again = way.near(point.position);
            assert_eq!(point.size.values, again.size.values, "{point:?}");
        }
    }
}
