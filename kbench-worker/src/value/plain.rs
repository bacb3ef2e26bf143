//! Operands as plain memory: what programs in other languages see of them.

use super::{Element, F8E4M3, F8E5M2, bf16, f16};

/// An operand as programs in other languages see it.
pub enum Plain<'a> {
    /// A number, or a sequence of numbers.
    Numbers {
        /// Their type.
        element: &'static str,
        /// How many there are; none for a number by itself.
        length: Option<usize>,
        /// Their bytes in the order of this machine, one number behind the other.
        content: Box<dyn Content + 'a>,
    },
    /// Something that has no such form.
    Opaque,
}

impl<'a> Plain<'a> {
    /// One number.
    pub fn number<T: Element>(number: &'a T) -> Self {
        Plain::of(std::slice::from_ref(number), None)
    }

    /// A sequence of numbers.
    pub fn numbers<T: Element>(numbers: &'a [T]) -> Self {
        Plain::of(numbers, Some(numbers.len()))
    }

    fn of<T: Element>(numbers: &'a [T], length: Option<usize>) -> Self {
        // Bits are told in 64 of them.
        if size_of::<T>() > size_of::<u64>() {
            return Plain::Opaque;
        }
        Plain::Numbers { element: T::NAME, length, content: Box::new(Elements(numbers)) }
    }

    /// All its bytes; none of what has no such form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Plain::Numbers { content, .. } = self else { return Vec::new() };
        let mut all = Vec::with_capacity(content.bytes());
        content.read(&mut |piece| {
            all.extend_from_slice(piece);
            true
        });
        all
    }
}

/// Bytes that are read piece by piece, as operands may be larger than what is left of the memory.
pub trait Content {
    /// How many there are.
    fn bytes(&self) -> usize;

    /// Shows all of them, until a piece is refused.
    fn read(&self, take: &mut dyn FnMut(&[u8]) -> bool);
}

/// Bytes of a piece: they stay in a cache of the core.
const PIECE: usize = 256 << 10;

struct Elements<'a, T>(&'a [T]);

impl<T: Element> Content for Elements<'_, T> {
    fn bytes(&self) -> usize {
        size_of_val(self.0)
    }

    fn read(&self, take: &mut dyn FnMut(&[u8]) -> bool) {
        let size = size_of::<T>().max(1);
        let mut piece = vec![0; PIECE.min(self.bytes())];
        for numbers in self.0.chunks(PIECE / size) {
            let bytes = &mut piece[..size_of_val(numbers)];
            match size {
                1 => write::<T, 1>(numbers, bytes),
                2 => write::<T, 2>(numbers, bytes),
                4 => write::<T, 4>(numbers, bytes),
                8 => write::<T, 8>(numbers, bytes),
                _ => return,
            }
            if !take(bytes) {
                return;
            }
        }
    }
}

/// With the number of bytes as a constant, this is a copy.
fn write<T: Element, const SIZE: usize>(numbers: &[T], bytes: &mut [u8]) {
    for (bytes, number) in bytes.as_chunks_mut::<SIZE>().0.iter_mut().zip(numbers) {
        bytes.copy_from_slice(&number.bits().to_le_bytes()[..SIZE]);
        if cfg!(target_endian = "big") {
            bytes.reverse();
        }
    }
}

/// The reverse; gives whether the type can be made from its bits.
fn parse<T: Element, const SIZE: usize>(bytes: &[u8], numbers: &mut [T]) -> bool {
    for (bytes, number) in bytes.as_chunks::<SIZE>().0.iter().zip(numbers) {
        let Some(read) = T::from_bits(bits_of(bytes)) else { return false };
        *number = read;
    }
    true
}

#[inline]
fn bits_of(bytes: &[u8]) -> u64 {
    let mut bits = [0; 8];
    if cfg!(target_endian = "little") {
        bits[..bytes.len()].copy_from_slice(bytes);
    } else {
        bits[8 - bytes.len()..].copy_from_slice(bytes);
    }
    u64::from_ne_bytes(bits)
}

/// Where the content of several operands comes from.
pub trait Parts {
    /// Bytes of a part; none when there is no such part.
    fn bytes(&self, part: usize) -> Option<usize>;

    /// Reads some bytes of a part from an offset on; gives whether they could be read.
    fn read(&mut self, part: usize, offset: usize, into: &mut [u8]) -> bool;
}

impl Parts for &[Vec<u8>] {
    fn bytes(&self, part: usize) -> Option<usize> {
        self.get(part).map(Vec::len)
    }

    fn read(&mut self, part: usize, offset: usize, into: &mut [u8]) -> bool {
        let bytes = self.get(part).and_then(|bytes| bytes.get(offset..offset + into.len()));
        bytes.inspect(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

/// The content of several operands, one after the other.
pub struct PlainBytes<'a> {
    parts: &'a mut dyn Parts,
    next: usize,
}

impl<'a> PlainBytes<'a> {
    /// Of some parts.
    pub fn of(parts: &'a mut dyn Parts) -> Self {
        PlainBytes { parts, next: 0 }
    }

    /// Puts the next part where it belongs; gives whether it fits.
    pub fn next_into<T: Element>(&mut self, numbers: &mut [T]) -> bool {
        let (part, size) = (self.next, size_of::<T>().max(1));
        self.next += 1;
        if self.parts.bytes(part) != Some(size_of_val(numbers)) {
            return false;
        }
        let mut piece = vec![0; PIECE.min(size_of_val(numbers))];
        let mut offset = 0;
        for numbers in numbers.chunks_mut(PIECE / size) {
            let bytes = &mut piece[..size_of_val(numbers)];
            let is_read = self.parts.read(part, offset, bytes)
                && match size {
                    1 => parse::<T, 1>(bytes, numbers),
                    2 => parse::<T, 2>(bytes, numbers),
                    4 => parse::<T, 4>(bytes, numbers),
                    8 => parse::<T, 8>(bytes, numbers),
                    _ => false,
                };
            if !is_read {
                return false;
            }
            offset += bytes.len();
        }
        true
    }
}

/// Elements of a type as `f64`, with their relative rounding error; none when there is no such type.
pub fn elements_of(element: &str, bytes: &[u8]) -> Option<(Vec<f64>, f64)> {
    fn read<T: Element>(bytes: &[u8]) -> Option<(Vec<f64>, f64)> {
        let mut numbers = Vec::with_capacity(bytes.len() / size_of::<T>());
        for number in bytes.chunks_exact(size_of::<T>()) {
            numbers.push(T::from_bits(bits_of(number))?.to_f64());
        }
        Some((numbers, T::ROUNDOFF))
    }
    macro_rules! by_name {
        ($($type:ty)*) => {
            match element {
                $(<$type as Element>::NAME => read::<$type>(bytes),)*
                _ => None,
            }
        };
    }
    by_name! { f32 f64 f16 bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 isize u8 u16 u32 u64 usize bool }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Operand;

    fn comes_back<T: Element + PartialEq + std::fmt::Debug>(numbers: Vec<T>)
    where
        Vec<T>: Operand,
    {
        let mut parts = Vec::new();
        numbers.export(&mut parts);
        let Some(Plain::Numbers { element, length, .. }) = parts.first() else {
            panic!("a sequence of numbers is one")
        };
        assert_eq!((*element, *length), (T::NAME, Some(numbers.len())));
        let bytes = parts[0].to_bytes();
        let mut read = vec![numbers[0]; numbers.len()];
        assert!(read.import(&mut PlainBytes::of(&mut std::slice::from_ref(&bytes))));
        assert_eq!(read, numbers);
        let (elements, roundoff) = elements_of(T::NAME, &bytes).expect("a type that is known");
        let same: Vec<f64> = numbers.iter().map(|number| number.to_f64()).collect();
        assert_eq!((elements, roundoff), (same, T::ROUNDOFF));
    }

    #[test]
    fn numbers_of_every_type_come_back_bit_for_bit() {
        comes_back(vec![1.5f32, -0.0, f32::MIN_POSITIVE]);
        comes_back(vec![1e300f64, -3.25]);
        comes_back(vec![f16::from_f32(0.1), f16::MAX]);
        comes_back(vec![bf16::from_f32(-3.5), bf16::MIN]);
        comes_back(vec![F8E4M3::from_f32(0.3), F8E4M3::from_f32(-448.0)]);
        comes_back(vec![F8E5M2::from_f32(0.3)]);
        comes_back(vec![i8::MIN, -1, 127]);
        comes_back(vec![i64::MIN, -1]);
        comes_back(vec![u32::MAX, 7]);
        comes_back(vec![usize::MAX >> 12, 7]);
        comes_back(vec![true, false]);
        // More than one piece, and not a whole number of them.
        comes_back((0..100_003).map(f64::from).collect());
    }

    #[test]
    fn operands_show_one_part_each_and_take_back_what_fits() {
        struct Own;
        impl Operand for Own {}
        let (operands, mut parts) = ((2u8, vec![1i16, 2], Own), Vec::new());
        operands.export(&mut parts);
        assert!(matches!(&parts[0], Plain::Numbers { element: "u8", length: None, .. }));
        assert_eq!(parts[0].to_bytes(), [2]);
        assert!(matches!(&parts[1], Plain::Numbers { element: "i16", length: Some(2), .. }));
        assert!(matches!(&parts[2], Plain::Opaque));
        let mut pair = (0u8, vec![0i16; 2]);
        let fits = |mut parts: &[Vec<u8>], pair: &mut (u8, Vec<i16>)| {
            pair.import(&mut PlainBytes::of(&mut parts))
        };
        assert!(fits(&[vec![3], vec![1, 0, 2, 0]], &mut pair));
        assert_eq!(pair, (3, vec![1, 2]));
        assert!(!fits(&[vec![3], vec![1, 0]], &mut pair), "too short");
        assert!(!fits(&[vec![3]], &mut pair), "too few");
        assert!(!Own.import(&mut PlainBytes::of(&mut [].as_slice())));
    }
}
