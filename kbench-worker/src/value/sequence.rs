//! Sequences of operands: those of numbers as a whole, all others item by item.
//!
//! An item has the same parts as an operand of its own, and a part of the sequence is that part of all items, one behind the
//! other: a slice of particles has all positions in one part, and all masses in another.

use std::ops::Range;

use super::{Element, Fingerprint, Operand, Pages, Plain, PlainBytes, Poison};

/// Numbers of one type, one behind the other.
pub trait Numbers<'a> {
    /// Their values.
    fn values(&self) -> Vec<f64>;
    /// What their values leave out of them; empty where that is nothing for any number of their type.
    fn rests(&self) -> Vec<f64>;
    /// Positions that hold the pattern.
    fn poisoned(&self, poison: Poison) -> Vec<usize>;
    /// Adds them to a fingerprint.
    fn fingerprint(&self, fingerprint: &mut Fingerprint);
    /// The relative rounding error of their type.
    fn roundoff(&self) -> f64;
    /// How programs in other languages see them.
    fn plain(&self) -> Plain<'a>;
}

impl<'a, T: Element> Numbers<'a> for &'a [T] {
    fn values(&self) -> Vec<f64> {
        self.iter().map(|number| number.to_f64()).collect()
    }

    fn rests(&self) -> Vec<f64> {
        let numbers = if T::IS_WIDER { *self } else { &[] };
        numbers.iter().map(|number| number.rest()).collect()
    }

    fn poisoned(&self, poison: Poison) -> Vec<usize> {
        let pattern = T::poison(poison).bits();
        let mut positions = Vec::new();
        for (i, number) in self.iter().enumerate() {
            if number.bits() == pattern {
                positions.push(i);
            }
        }
        positions
    }

    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add_elements(self);
    }

    fn roundoff(&self) -> f64 {
        T::ROUNDOFF
    }

    fn plain(&self) -> Plain<'a> {
        Plain::numbers(self)
    }
}

/// The same to be written.
pub trait NumbersMut {
    /// How many there are.
    fn length(&self) -> usize;
    /// The relative rounding error of their type.
    fn roundoff(&self) -> f64;
    /// One of them.
    fn get(&self, index: usize) -> f64;
    /// Overwrites one by the nearest number of their type.
    fn set(&mut self, index: usize, number: f64);
    /// Overwrites them with a pattern.
    fn poison(&mut self, poison: Poison);
    /// Takes over the content of the next part; gives whether it fits.
    fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool;
}

impl<T: Element> NumbersMut for &mut [T] {
    fn length(&self) -> usize {
        self.len()
    }

    fn roundoff(&self) -> f64 {
        T::ROUNDOFF
    }

    fn get(&self, index: usize) -> f64 {
        self[index].to_f64()
    }

    fn set(&mut self, index: usize, number: f64) {
        self[index] = T::from_f64(number);
    }

    fn poison(&mut self, poison: Poison) {
        self.fill(T::poison(poison));
    }

    fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
        parts.next_into(self)
    }
}

pub(super) fn elements<T: Operand>(items: &[T], parts: &mut Vec<Vec<f64>>) {
    match T::numbers(items) {
        Some(numbers) => parts.push(numbers.values()),
        None => parts.extend(joined(items.iter().map(|item| of_item(item, T::elements)))),
    }
}

pub(super) fn rests<T: Operand>(items: &[T], parts: &mut Vec<Vec<f64>>) {
    if let Some(numbers) = T::numbers(items) {
        return parts.push(numbers.rests());
    }
    let of_first = items.first().map(|first| of_item(first, T::rests)).unwrap_or_default();
    match of_first.iter().all(Vec::is_empty) {
        true => parts.extend(of_first),
        false => parts.extend(joined(items.iter().map(|item| of_item(item, T::rests)))),
    }
}

pub(super) fn fields<T: Operand>(items: &[T], parts: &mut Vec<String>) {
    match (T::numbers(items), items.first()) {
        (Some(_), _) => parts.push(String::new()),
        (None, Some(first)) => first.fields(parts),
        (None, None) => {}
    }
}

/// What a method of an item appends.
fn of_item<T, P>(item: &T, append: impl Fn(&T, &mut Vec<P>)) -> Vec<P> {
    let mut parts = Vec::new();
    append(item, &mut parts);
    parts
}

/// Part by part, that of one item behind that of the item before.
fn joined<P>(items: impl Iterator<Item = Vec<Vec<P>>>) -> Vec<Vec<P>> {
    let mut all: Vec<Vec<P>> = Vec::new();
    for item in items {
        all.resize_with(all.len().max(item.len()), Vec::new);
        all.iter_mut().zip(item).for_each(|(all, part)| all.extend(part));
    }
    all
}

pub(super) fn each_numbers<T: Operand>(
    items: &mut [T],
    visit: &mut dyn FnMut(&mut dyn NumbersMut),
) {
    if let Some(mut numbers) = T::numbers_mut(items) {
        return visit(&mut *numbers);
    }
    items.iter_mut().for_each(|item| item.each_numbers(visit));
}

pub(super) fn exchange<T: Operand>(items: &mut [T], others: &mut [T]) -> bool {
    if items.len() != others.len() {
        return false;
    }
    if T::numbers(items).is_some() {
        items.swap_with_slice(others);
        return true;
    }
    items.iter_mut().zip(others).all(|(item, other)| item.exchange(other))
}

pub(super) fn poison<T: Operand>(items: &mut [T], poison: Poison) {
    if let Some(mut numbers) = T::numbers_mut(items) {
        return numbers.poison(poison);
    }
    items.iter_mut().for_each(|item| item.poison(poison));
}

pub(super) fn poisoned<T: Operand>(items: &[T], poison: Poison, parts: &mut Vec<Vec<usize>>) {
    if let Some(numbers) = T::numbers(items) {
        return parts.push(numbers.poisoned(poison));
    }
    // An item counts its positions from 0 on.
    let mut lengths: Vec<usize> = Vec::new();
    parts.extend(joined(items.iter().map(|item| {
        let mut positions = of_item(item, |item, parts| item.poisoned(poison, parts));
        let elements = of_item(item, T::elements);
        lengths.resize(lengths.len().max(elements.len()), 0);
        for (positions, before) in positions.iter_mut().zip(&lengths) {
            positions.iter_mut().for_each(|position| *position += before);
        }
        lengths.iter_mut().zip(&elements).for_each(|(length, part)| *length += part.len());
        positions
    })));
}

pub(super) fn fingerprint<T: Operand>(items: &[T], fingerprint: &mut Fingerprint) {
    if let Some(numbers) = T::numbers(items) {
        return numbers.fingerprint(fingerprint);
    }
    fingerprint.add(items.len() as u64);
    items.iter().for_each(|item| item.fingerprint(fingerprint));
    fingerprint.evict(items);
}

pub(super) fn bytes<T: Operand>(items: &[T]) -> usize {
    match T::numbers(items) {
        Some(_) => size_of_val(items),
        None => items.iter().map(Operand::bytes).sum(),
    }
}

/// Of a sequence that has memory of its own.
pub(super) fn addresses<T: Operand>(items: &[T], ranges: &mut Vec<Range<usize>>) {
    let range = items.as_ptr_range();
    ranges.push(range.start as usize..range.end as usize);
    addresses_of_items(items, ranges);
}

/// Of one that is a part of something else.
pub(super) fn addresses_of_items<T: Operand>(items: &[T], ranges: &mut Vec<Range<usize>>) {
    if T::numbers(items).is_none() {
        items.iter().for_each(|item| item.addresses(ranges));
    }
}

/// Has the arrays of all items moved; gives whether arrays of such items are moved.
pub(super) fn relocate<T: Operand>(items: &mut [T], pages: &mut Pages) -> bool {
    let are_moved = pages.takes(T::numbers(items).is_some());
    if are_moved {
        items.iter_mut().for_each(|item| item.relocate(pages));
    }
    are_moved
}

pub(super) fn roundoffs<T: Operand>(items: &[T], parts: &mut Vec<f64>) {
    match (T::numbers(items), items.first()) {
        (Some(numbers), _) => parts.push(numbers.roundoff()),
        (None, Some(first)) => first.roundoffs(parts),
        (None, None) => {}
    }
}

pub(super) fn export<'a, T: Operand>(items: &'a [T], parts: &mut Vec<Plain<'a>>) {
    parts.push(T::numbers(items).map_or(Plain::Opaque, |numbers| numbers.plain()));
}

pub(super) fn import<T: Operand>(items: &mut [T], parts: &mut PlainBytes<'_>) -> bool {
    T::numbers_mut(items).is_some_and(|mut numbers| numbers.import(parts))
}

pub(super) fn uncompared<T: Operand>(items: &[T], types: &mut Vec<&'static str>) {
    if T::numbers(items).is_none()
        && let Some(first) = items.first()
    {
        first.uncompared(types);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Particle = ([f32; 2], u8);

    fn particles() -> Vec<Particle> {
        vec![([1.0, 2.0], 3), ([4.0, 5.0], 6)]
    }

    #[test]
    fn items_have_their_parts_one_behind_the_other() {
        let parts = of_item(&particles(), Operand::elements);
        assert_eq!(parts, [vec![1.0, 2.0, 4.0, 5.0], vec![3.0, 6.0]]);
        let arrays = of_item(&vec![[1i32, 2], [3, 4]], Operand::elements);
        assert_eq!(arrays, [[1.0, 2.0, 3.0, 4.0]]);
        let ragged = of_item(&vec![vec![1u8], vec![2, 3]], Operand::elements);
        assert_eq!(ragged, [[1.0, 2.0, 3.0]]);
        assert_eq!(of_item(&particles(), Operand::roundoffs), [f32::ROUNDOFF, 0.0]);
    }

    #[test]
    fn what_is_unwritten_has_its_position_among_all_items() {
        let mut items = particles();
        items.poison(Poison::First);
        items[0] = ([7.0, items[0].0[1]], items[0].1);
        items[1].1 = 0;
        let positions = of_item(&items, |items, parts| items.poisoned(Poison::First, parts));
        assert_eq!(positions, [vec![1, 2, 3], vec![0]]);
    }

    #[test]
    fn a_fingerprint_sees_every_item() {
        let before = Fingerprint::of(&particles());
        let changes: [fn(&mut Vec<Particle>); 2] = [|all| all[1].0[1] = 0.0, |all| all[0].1 = 0];
        for change in changes {
            let mut items = particles();
            change(&mut items);
            assert_ne!(Fingerprint::of(&items), before);
        }
        particles().fingerprint(&mut Fingerprint::evicting());
        assert_eq!(Fingerprint::of(&particles()), before);
    }

    #[test]
    fn items_that_lie_in_a_sequence_are_not_taken_for_others() {
        let particles = of_item(&particles(), Operand::addresses);
        assert_eq!(particles.len(), 1);
        assert_eq!(of_item(&[vec![1u8], vec![2]], Operand::addresses).len(), 2);
    }

    #[test]
    fn overlapping_items_are_found_by_what_they_own() {
        let items = vec![vec![1.0f32; 8]];
        let ranges = of_item(&items, Operand::addresses);
        assert_eq!(ranges[1].len(), 32);
        assert_eq!(items.bytes(), 32);
    }

    #[test]
    fn contents_are_exchanged_in_place_or_not_at_all() {
        let (mut a, mut b) = ((particles(), vec![1u8, 2]), (particles(), vec![3u8, 4]));
        b.0[1].0[1] = 9.0;
        let (own, others, place) = (a.clone(), b.clone(), a.1.as_ptr());
        assert!(a.exchange(&mut b));
        assert_eq!((&a, &b, a.1.as_ptr()), (&others, &own, place));
        b.1.push(5);
        let longer = b.clone();
        assert!(!a.exchange(&mut b) && !a.exchange(&mut b));
        assert_eq!((a, b), (others, longer));
    }

    #[test]
    fn arrays_of_numbers_are_numbers_to_other_programs() {
        let items = vec![[1u16, 2], [3, 4]];
        let mut parts = Vec::new();
        items.export(&mut parts);
        let bytes = parts[0].to_bytes();
        assert_eq!(bytes, [1, 0, 2, 0, 3, 0, 4, 0]);
        let mut items = vec![[0u16; 2]; 2];
        let mut parts: &[Vec<u8>] = &[bytes];
        assert!(items.import(&mut PlainBytes::of(&mut parts)));
        assert_eq!(items, [[1, 2], [3, 4]]);
    }

    #[test]
    fn a_type_that_shows_no_elements_is_not_compared() {
        struct Own;
        impl Operand for Own {}
        let of = |operand: &dyn Operand| {
            let mut types = Vec::new();
            operand.uncompared(&mut types);
            types.len()
        };
        assert_eq!([of(&Own), of(&vec![Own]), of(&(1.0f32, Some(Own)))], [1, 1, 1]);
        assert_eq!(
            [of(&()), of(&particles()), of(&"text".to_owned()), of(&Vec::<Own>::new())],
            [0; 4]
        );
    }
}
