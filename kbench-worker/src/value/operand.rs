//! What the correctness gate can see of a value.

use std::fmt::Display;
use std::ops::Range;

use super::cold::{LINE, evict};
use super::sequence::{self, Numbers, NumbersMut};
use super::{Declined, Element, Pages, Plain, PlainBytes, Poison};

/// Anything that a kernel reads, writes or returns.
///
/// Numbers, `String`s, tuples, `Option`s and `Result`s are operands already, and so are arrays, `Vec`s and boxed slices of
/// operands. A struct of your own becomes one with `#[derive(kbench::Operand)]`, which looks into all of its fields. With
/// `impl Operand for MyType {}` it is carried along and not looked into; then a variant that writes or returns it is
/// *unchecked*. Implement [`elements`](Self::elements) (and [`poison`](Self::poison) when it is an output) to have it compared
/// in a way of your own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand: kbench cannot look into it",
    note = "for a struct of your own, `#[derive(kbench::Operand)]` compares its fields",
    note = "for any other type of your own, `impl kbench::Operand for MyType {{}}` carries it along unchecked"
)]
pub trait Operand: 'static {
    /// Appends what is compared: one vector for every part, in a fixed order.
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        let _ = parts;
    }

    /// Appends, for every part, by how much its numbers are more than `f64` holds; nothing for one whose type is no wider.
    #[doc(hidden)]
    fn rests(&self, parts: &mut Vec<Vec<f64>>) {
        let mut elements = Vec::new();
        self.elements(&mut elements);
        parts.extend(elements.iter().map(|_| Vec::new()));
    }

    /// Appends, for every part, which field it is, as `.name`; nothing for a value that is one part.
    #[doc(hidden)]
    fn fields(&self, parts: &mut Vec<String>) {
        let mut elements = Vec::new();
        self.elements(&mut elements);
        match elements.len() {
            1 => parts.push(String::new()),
            count => parts.extend((0..count).map(|part| format!(".{part}"))),
        }
    }

    /// Overwrites the content with a pattern that shows whether it was written.
    fn poison(&mut self, poison: Poison) {
        let _ = poison;
    }

    /// Appends, for every part, the positions that still hold the pattern.
    fn poisoned(&self, poison: Poison, parts: &mut Vec<Vec<usize>>) {
        let _ = (poison, parts);
    }

    /// Adds the exact content to a fingerprint, by which changes of any bit are noticed.
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        let _ = fingerprint;
    }

    /// The memory that a kernel moves when it goes over this value once. A type that owns memory elsewhere should say how
    /// much: the number of fresh copies for `in_place` follows from it.
    fn bytes(&self) -> usize {
        std::mem::size_of_val(self)
    }

    /// Appends the address ranges of its elements, by which overlapping operands are noticed.
    fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
        let _ = ranges;
    }

    /// Appends the relative rounding error of every part's element type; 0 for exact types.
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        let _ = parts;
    }

    /// Appends its content as programs in other languages see it: one part for a number or a sequence of numbers.
    fn export<'a>(&'a self, parts: &mut Vec<Plain<'a>>) {
        parts.push(Plain::Opaque);
    }

    /// Takes over the content of the next part, which such a program has written; gives whether it could.
    fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
        let _ = parts;
        false
    }

    /// Why the call that returned this value failed, if it did.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Why the call that returned this value could not be made here, if so: its `Err` is a [`Declined`].
    fn declined(&self) -> Option<String> {
        None
    }

    /// Appends the names of types that cannot be compared.
    fn uncompared(&self, types: &mut Vec<&'static str>) {
        let mut parts = Vec::new();
        self.elements(&mut parts);
        if parts.is_empty() {
            types.push(std::any::type_name::<Self>());
        }
    }

    /// Shows all its numbers, one slice after the other, so that they can be changed.
    #[doc(hidden)]
    fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
        let _ = visit;
    }

    /// Exchanges its content with that of another one of the same shape; arrays stay where they are. Gives whether all of it was
    /// exchanged: where it was not, a second call undoes the first.
    #[doc(hidden)]
    fn exchange(&mut self, other: &mut Self) -> bool
    where
        Self: Sized,
    {
        let _ = other;
        false
    }

    /// Has its arrays moved beside guard pages, or back.
    #[doc(hidden)]
    fn relocate(&mut self, pages: &mut Pages) {
        let _ = pages;
    }

    /// Several of them as numbers, where they consist of numbers of one type and of nothing else.
    #[doc(hidden)]
    fn numbers(items: &[Self]) -> Option<Box<dyn Numbers<'_> + '_>>
    where
        Self: Sized,
    {
        let _ = items;
        None
    }

    /// The same to be written.
    #[doc(hidden)]
    fn numbers_mut(items: &mut [Self]) -> Option<Box<dyn NumbersMut + '_>>
    where
        Self: Sized,
    {
        let _ = items;
        None
    }
}

/// Appends the fields of a member, below its name.
#[doc(hidden)]
pub fn fields_of_member(member: &str, value: &dyn Operand, parts: &mut Vec<String>) {
    let mut fields = Vec::new();
    value.fields(&mut fields);
    parts.extend(fields.into_iter().map(|field| format!(".{member}{field}")));
}

/// Digests that are made side by side: one waits for its own multiplication, so that several cost no more time.
const LANES: usize = 8;

/// An order-sensitive 64-bit digest of exact bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    digest: u64,
    visit: Visit,
}

/// What is done with the elements of slices on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// All of them are added.
    Digest,
    /// One element of every cache line is added.
    Touch,
    /// They are removed from the caches, and not added.
    Evict,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint { digest: 0xcbf2_9ce4_8422_2325, visit: Visit::Digest }
    }
}

impl Fingerprint {
    /// A fingerprint of one element per cache line. Making it brings all elements into the caches, and takes as long as the
    /// memory does.
    pub(crate) fn touching() -> Self {
        Fingerprint { visit: Visit::Touch, ..Fingerprint::default() }
    }

    /// A fingerprint of no slice. Making it removes the elements of slices from the processor's caches.
    pub(crate) fn evicting() -> Self {
        Fingerprint { visit: Visit::Evict, ..Fingerprint::default() }
    }

    /// Adds one word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        // Multiply and rotate: a bijection of the state for every word, so no single change can cancel itself.
        self.digest = (self.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    /// Adds many words: several digests side by side, which do not wait for each other, then one of them all.
    pub fn add_all(&mut self, words: impl ExactSizeIterator<Item = u64>) {
        self.add(words.len() as u64);
        let mut lanes = self.lanes();
        for (i, word) in words.enumerate() {
            lanes[i % LANES].add(word);
        }
        lanes.iter().for_each(|lane| self.add(lane.digest));
    }

    /// Adds elements, as many of them in a word as there is room for: what is added takes as long as its bytes.
    pub(super) fn add_elements<T: Element>(&mut self, elements: &[T]) {
        match self.visit {
            Visit::Digest => {}
            Visit::Touch => {
                let per_line = LINE / size_of::<T>().max(1);
                // Where the slice does not begin with a line, the last element may lie in one more.
                let lines = elements.iter().step_by(per_line.max(1)).chain(elements.last());
                return self.add(lines.fold(0, |all, element| all ^ element.bits()));
            }
            Visit::Evict => return evict(elements),
        }
        let (per_word, bits) = match size_of::<T>() {
            size @ (1 | 2 | 4) => (size_of::<u64>() / size, 8 * size as u32),
            _ => (1, u64::BITS),
        };
        let mask = u64::MAX >> (64 - bits);
        let word = |elements: &[T]| {
            let of = |(i, element): (usize, &T)| (element.bits() & mask) << (bits * i as u32);
            elements.iter().enumerate().map(of).fold(0, |word, bits| word | bits)
        };
        self.add(elements.len() as u64);
        let mut lanes = self.lanes();
        let mut rounds = elements.chunks_exact(LANES * per_word);
        for round in &mut rounds {
            for (lane, elements) in lanes.iter_mut().zip(round.chunks_exact(per_word)) {
                lane.add(word(elements));
            }
        }
        lanes.iter().for_each(|lane| self.add(lane.digest));
        rounds.remainder().chunks(per_word).for_each(|elements| self.add(word(elements)));
    }

    /// Removes items from the caches, if that is what this fingerprint is made for.
    pub(super) fn evict<T>(&self, items: &[T]) {
        if self.visit == Visit::Evict {
            evict(items);
        }
    }

    /// Digests that differ from each other and go on from here.
    fn lanes(&self) -> [Self; LANES] {
        std::array::from_fn(|lane| Fingerprint {
            digest: self.digest.rotate_left(8 * lane as u32) ^ lane as u64,
            visit: self.visit,
        })
    }

    /// The digest so far.
    pub fn value(&self) -> u64 {
        self.digest
    }

    /// The digest of one operand.
    pub fn of(operand: &impl Operand) -> Self {
        let mut fingerprint = Self::default();
        operand.fingerprint(&mut fingerprint);
        fingerprint
    }
}

impl<T: Element> Operand for T {
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        parts.push(vec![self.to_f64()]);
    }
    fn rests(&self, parts: &mut Vec<Vec<f64>>) {
        parts.push(Numbers::rests(&std::slice::from_ref(self)));
    }
    fn fields(&self, parts: &mut Vec<String>) {
        parts.push(String::new());
    }
    fn poison(&mut self, poison: Poison) {
        *self = <T as Element>::poison(poison);
    }
    fn poisoned(&self, poison: Poison, parts: &mut Vec<Vec<usize>>) {
        parts.push(std::slice::from_ref(self).poisoned(poison));
    }
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.bits());
    }
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        parts.push(T::ROUNDOFF);
    }
    fn export<'a>(&'a self, parts: &mut Vec<Plain<'a>>) {
        parts.push(Plain::number(self));
    }
    fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
        parts.next_into(std::slice::from_mut(self))
    }
    fn uncompared(&self, _: &mut Vec<&'static str>) {}
    fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
        visit(&mut std::slice::from_mut(self));
    }
    fn exchange(&mut self, other: &mut Self) -> bool {
        std::mem::swap(self, other);
        true
    }
    fn numbers(items: &[Self]) -> Option<Box<dyn Numbers<'_> + '_>> {
        Some(Box::new(items))
    }
    fn numbers_mut(items: &mut [Self]) -> Option<Box<dyn NumbersMut + '_>> {
        Some(Box::new(items))
    }
}

macro_rules! sequence_operand {
    ($([$($generics:tt)*] $type:ty { $($own:tt)* })*) => {$(
        impl<$($generics)*> Operand for $type {
            fn elements(&self, parts: &mut Vec<Vec<f64>>) {
                sequence::elements(self, parts);
            }
            fn rests(&self, parts: &mut Vec<Vec<f64>>) {
                sequence::rests(self, parts);
            }
            fn fields(&self, parts: &mut Vec<String>) {
                sequence::fields(self, parts);
            }
            fn poison(&mut self, poison: Poison) {
                sequence::poison(self, poison);
            }
            fn poisoned(&self, poison: Poison, parts: &mut Vec<Vec<usize>>) {
                sequence::poisoned(self, poison, parts);
            }
            fn fingerprint(&self, fingerprint: &mut Fingerprint) {
                sequence::fingerprint(self, fingerprint);
            }
            fn bytes(&self) -> usize {
                sequence::bytes::<T>(self)
            }
            fn roundoffs(&self, parts: &mut Vec<f64>) {
                sequence::roundoffs(self, parts);
            }
            fn export<'a>(&'a self, parts: &mut Vec<Plain<'a>>) {
                sequence::export(self, parts);
            }
            fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
                sequence::import(self, parts)
            }
            fn failure(&self) -> Option<String> {
                self.iter().find_map(Operand::failure)
            }
            fn declined(&self) -> Option<String> {
                self.iter().find_map(Operand::declined)
            }
            fn uncompared(&self, types: &mut Vec<&'static str>) {
                sequence::uncompared(self, types);
            }
            fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
                sequence::each_numbers(self, visit);
            }
            fn exchange(&mut self, other: &mut Self) -> bool {
                sequence::exchange(self, other)
            }
            $($own)*
        }
    )*};
}

sequence_operand! {
    [T: Operand] Vec<T> {
        fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
            sequence::addresses(self, ranges);
        }
        fn relocate(&mut self, pages: &mut Pages) {
            if sequence::relocate(self, pages) {
                pages.carry(self);
            }
        }
    }
    [T: Operand] Box<[T]> {
        fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
            sequence::addresses(self, ranges);
        }
        fn relocate(&mut self, pages: &mut Pages) {
            sequence::relocate(self, pages);
        }
    }
    [T: Operand, const N: usize] [T; N] {
        fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
            sequence::addresses_of_items(self, ranges);
        }
        fn relocate(&mut self, pages: &mut Pages) {
            sequence::relocate(self, pages);
        }
        fn numbers(items: &[Self]) -> Option<Box<dyn Numbers<'_> + '_>> {
            T::numbers(items.as_flattened())
        }
        fn numbers_mut(items: &mut [Self]) -> Option<Box<dyn NumbersMut + '_>> {
            T::numbers_mut(items.as_flattened_mut())
        }
    }
}

impl Operand for String {
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        parts.push(self.as_bytes().iter().map(|byte| f64::from(*byte)).collect());
    }
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        parts.push(0.0);
    }
    fn uncompared(&self, _: &mut Vec<&'static str>) {}
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        self.as_bytes().iter().for_each(|byte| fingerprint.add(u64::from(*byte)));
    }
    fn bytes(&self) -> usize {
        self.len()
    }
    fn exchange(&mut self, other: &mut Self) -> bool {
        std::mem::swap(self, other);
        true
    }
}

impl<T: Operand, E: Display + 'static> Operand for Result<T, E> {
    fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
        if let Ok(value) = self {
            value.each_numbers(visit);
        }
    }
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        if let Ok(value) = self {
            value.elements(parts);
        }
    }
    fn rests(&self, parts: &mut Vec<Vec<f64>>) {
        if let Ok(value) = self {
            value.rests(parts);
        }
    }
    fn fields(&self, parts: &mut Vec<String>) {
        if let Ok(value) = self {
            value.fields(parts);
        }
    }
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        if let Ok(value) = self {
            value.fingerprint(fingerprint);
        }
    }
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, Operand::bytes)
    }
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        if let Ok(value) = self {
            value.roundoffs(parts);
        }
    }
    fn uncompared(&self, types: &mut Vec<&'static str>) {
        if let Ok(value) = self {
            value.uncompared(types);
        }
    }
    fn failure(&self) -> Option<String> {
        match self {
            Ok(value) => value.failure(),
            Err(error) => Some(error.to_string()),
        }
    }
    fn declined(&self) -> Option<String> {
        match self {
            Ok(value) => value.declined(),
            Err(error) => Declined::reason(error),
        }
    }
}

impl<T: Operand> Operand for Option<T> {
    fn exchange(&mut self, other: &mut Self) -> bool {
        match (self, other) {
            (Some(value), Some(other)) => value.exchange(other),
            (None, None) => true,
            _ => false,
        }
    }
    fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
        if let Some(value) = self {
            value.each_numbers(visit);
        }
    }
    fn relocate(&mut self, pages: &mut Pages) {
        if let Some(value) = self {
            value.relocate(pages);
        }
    }
    fn elements(&self, parts: &mut Vec<Vec<f64>>) {
        match self {
            Some(value) => value.elements(parts),
            None => parts.push(Vec::new()),
        }
    }
    fn rests(&self, parts: &mut Vec<Vec<f64>>) {
        match self {
            Some(value) => value.rests(parts),
            None => parts.push(Vec::new()),
        }
    }
    fn fields(&self, parts: &mut Vec<String>) {
        match self {
            Some(value) => value.fields(parts),
            None => parts.push(String::new()),
        }
    }
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.is_some() as u64);
        if let Some(value) = self {
            value.fingerprint(fingerprint);
        }
    }
    fn roundoffs(&self, parts: &mut Vec<f64>) {
        match self {
            Some(value) => value.roundoffs(parts),
            None => parts.push(0.0),
        }
    }
    fn uncompared(&self, types: &mut Vec<&'static str>) {
        if let Some(value) = self {
            value.uncompared(types);
        }
    }
    fn failure(&self) -> Option<String> {
        self.as_ref().and_then(Operand::failure)
    }
    fn declined(&self) -> Option<String> {
        self.as_ref().and_then(Operand::declined)
    }
}

macro_rules! tuple_operand {
    ($($name:ident $member:tt)*) => {
        // The empty tuple uses none of its parameters.
        #[allow(unused_variables, non_snake_case)] // type parameters name the fields; the empty tuple has none
        impl<$($name: Operand),*> Operand for ($($name,)*) {
            fn elements(&self, parts: &mut Vec<Vec<f64>>) {
                let ($($name,)*) = self;
                $($name.elements(parts);)*
            }
            fn rests(&self, parts: &mut Vec<Vec<f64>>) {
                let ($($name,)*) = self;
                $($name.rests(parts);)*
            }
            fn fields(&self, parts: &mut Vec<String>) {
                let ($($name,)*) = self;
                $(fields_of_member(stringify!($member), $name, parts);)*
            }
            fn poison(&mut self, poison: Poison) {
                let ($($name,)*) = self;
                $($name.poison(poison);)*
            }
            fn poisoned(&self, poison: Poison, parts: &mut Vec<Vec<usize>>) {
                let ($($name,)*) = self;
                $($name.poisoned(poison, parts);)*
            }
            fn fingerprint(&self, fingerprint: &mut Fingerprint) {
                let ($($name,)*) = self;
                $($name.fingerprint(fingerprint);)*
            }
            fn bytes(&self) -> usize {
                let ($($name,)*) = self;
                0 $(+ $name.bytes())*
            }
            fn addresses(&self, ranges: &mut Vec<Range<usize>>) {
                let ($($name,)*) = self;
                $($name.addresses(ranges);)*
            }
            fn roundoffs(&self, parts: &mut Vec<f64>) {
                let ($($name,)*) = self;
                $($name.roundoffs(parts);)*
            }
            fn export<'a>(&'a self, parts: &mut Vec<Plain<'a>>) {
                let ($($name,)*) = self;
                $($name.export(parts);)*
            }
            fn import(&mut self, parts: &mut PlainBytes<'_>) -> bool {
                let ($($name,)*) = self;
                true $(&& $name.import(parts))*
            }
            fn uncompared(&self, types: &mut Vec<&'static str>) {
                let ($($name,)*) = self;
                $($name.uncompared(types);)*
            }
            fn each_numbers(&mut self, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
                let ($($name,)*) = self;
                $($name.each_numbers(visit);)*
            }
            fn exchange(&mut self, other: &mut Self) -> bool {
                true $(&& self.$member.exchange(&mut other.$member))*
            }
            fn relocate(&mut self, pages: &mut Pages) {
                let ($($name,)*) = self;
                $($name.relocate(pages);)*
            }
            fn failure(&self) -> Option<String> {
                let ($($name,)*) = self;
                $(if let Some(failure) = $name.failure() { return Some(failure); })*
                None
            }
            fn declined(&self) -> Option<String> {
                let ($($name,)*) = self;
                $(if let Some(reason) = $name.declined() { return Some(reason); })*
                None
            }
        }
    };
}

tuple_operand! {}
tuple_operand! { A 0 }
tuple_operand! { A 0 B 1 }
tuple_operand! { A 0 B 1 C 2 }
tuple_operand! { A 0 B 1 C 2 D 3 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 }
tuple_operand! { A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_shows_all_its_parts_in_order() {
        let mut parts = Vec::new();
        (1.0f32, vec![2i32, 3], [4u8]).elements(&mut parts);
        assert_eq!(parts, [vec![1.0], vec![2.0, 3.0], vec![4.0]]);
    }

    #[test]
    fn every_part_knows_which_field_it_is() {
        let mut fields = Vec::new();
        (1.0f32, vec![(2u8, [3i32; 2])], Some(4u8)).fields(&mut fields);
        assert_eq!(fields, [".0", ".1.0", ".1.1", ".2"]);
        fields.clear();
        1.0f32.fields(&mut fields);
        assert_eq!(fields, [""]);
    }

    #[test]
    fn only_unwritten_positions_stay_poisoned() {
        let mut output = vec![0.0f32; 4];
        Operand::poison(&mut output, Poison::First);
        output[1] = 7.0;
        let mut parts = Vec::new();
        output.poisoned(Poison::First, &mut parts);
        assert_eq!(parts, [vec![0, 2, 3]]);
    }

    #[test]
    fn a_fingerprint_sees_every_bit_and_the_order() {
        let base = Fingerprint::of(&vec![1.0f32, 2.0, 0.0]);
        assert_ne!(base, Fingerprint::of(&vec![2.0f32, 1.0, 0.0]));
        assert_ne!(base, Fingerprint::of(&vec![1.0f32, 2.0, -0.0]));
        assert_eq!(base, Fingerprint::of(&vec![1.0f32, 2.0, 0.0]));
    }

    #[test]
    fn a_touching_fingerprint_reads_every_cache_line() {
        let of = |elements: &Vec<f32>| {
            let mut fingerprint = Fingerprint::touching();
            elements.fingerprint(&mut fingerprint);
            fingerprint.value()
        };
        // The last one may lie in a line that no other one begins.
        let zeros = vec![0.0; 1024];
        for place in (0..zeros.len()).step_by(LINE / size_of::<f32>()).chain([1023]) {
            let mut elements = zeros.clone();
            elements[place] = 1.0;
            assert_ne!(of(&elements), of(&zeros), "the line of element {place}");
        }
    }

    #[test]
    fn evicted_elements_are_what_they_were_and_nothing_is_evicted_of_nothing() {
        let operands = (vec![1.5f32; 999], Vec::<u8>::new(), Some(vec![7u16; 3]), 2i64);
        let before = Fingerprint::of(&operands);
        operands.fingerprint(&mut Fingerprint::evicting());
        assert_eq!(Fingerprint::of(&operands), before);
    }

    /// Wherever it lies: in a whole round of words, in the rest, and beside others in its word.
    #[test]
    fn a_fingerprint_sees_every_element_of_every_type() {
        fn check<T: Element>(zero: T, one: T) {
            let count = 200 / size_of::<T>() + 3;
            let of = |elements: &Vec<T>| Fingerprint::of(elements);
            let mut seen = vec![of(&vec![zero; count]), of(&vec![zero; count + 1])];
            for place in 0..count {
                let mut elements = vec![zero; count];
                elements[place] = one;
                seen.push(of(&elements));
            }
            let all = seen.len();
            seen.sort_unstable_by_key(Fingerprint::value);
            seen.dedup();
            assert_eq!(seen.len(), all, "{}", std::any::type_name::<T>());
        }
        check(0.0f32, 1.0);
        check(0.0f64, -0.0);
        check(half::f16::ZERO, half::f16::ONE);
        check(0i8, -1);
        check(0u8, 128);
        check(false, true);
        check(0i64, 1);
    }

    #[test]
    fn a_result_is_its_value_or_its_failure() {
        let failed: Result<f32, String> = Err("no luck".into());
        assert_eq!(failed.failure().as_deref(), Some("no luck"));
        let fine: Result<f32, String> = Ok(1.5);
        let mut parts = Vec::new();
        fine.elements(&mut parts);
        assert_eq!((fine.failure(), parts), (None, vec![vec![1.5]]));
    }
}
