//! Operands as plain memory: what programs in other languages see of them.

use super::{Element, F8E4M3, F8E5M2, bf16, f16};

/// The content of an operand, as bytes in the order of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plain {
    /// A number.
    Number {
        /// Its type.
        element: &'static str,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A sequence of numbers.
    Numbers {
        /// Their type.
        element: &'static str,
        /// Their bytes, one number behind the other.
        bytes: Vec<u8>,
        /// How many there are.
        length: usize,
    },
    /// Something that has no such form.
    Opaque,
}

impl Plain {
    /// One number.
    pub fn number<T: Element>(number: T) -> Self {
        if size_of::<T>() > size_of::<u64>() {
            return Plain::Opaque;
        }
        Plain::Number { element: T::NAME, bytes: bytes_of(&[number]) }
    }

    /// Its bytes; none of what has no such form.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Plain::Number { bytes, .. } | Plain::Numbers { bytes, .. } => bytes,
            Plain::Opaque => Vec::new(),
        }
    }

    /// A sequence of numbers.
    pub fn numbers<T: Element>(numbers: &[T]) -> Self {
        // Bits are told in 64 of them.
        if size_of::<T>() > size_of::<u64>() {
            return Plain::Opaque;
        }
        Plain::Numbers { element: T::NAME, bytes: bytes_of(numbers), length: numbers.len() }
    }
}

fn bytes_of<T: Element>(numbers: &[T]) -> Vec<u8> {
    /// With the number of bytes as a constant, this is a copy.
    fn each<T: Element, const SIZE: usize>(numbers: &[T], bytes: &mut [u8]) {
        for (bytes, number) in bytes.as_chunks_mut::<SIZE>().0.iter_mut().zip(numbers) {
            bytes.copy_from_slice(&number.bits().to_le_bytes()[..SIZE]);
            if cfg!(target_endian = "big") {
                bytes.reverse();
            }
        }
    }
    let mut bytes = vec![0; size_of_val(numbers)];
    match size_of::<T>() {
        1 => each::<T, 1>(numbers, &mut bytes),
        2 => each::<T, 2>(numbers, &mut bytes),
        4 => each::<T, 4>(numbers, &mut bytes),
        8 => each::<T, 8>(numbers, &mut bytes),
        _ => {}
    }
    bytes
}

/// The bits of numbers that have as many bytes each.
fn all_bits(size: usize, bytes: &[u8]) -> impl Iterator<Item = u64> {
    let of = |bytes: &[u8]| {
        let mut bits = [0; 8];
        if cfg!(target_endian = "little") {
            bits[..bytes.len()].copy_from_slice(bytes);
        } else {
            bits[8 - bytes.len()..].copy_from_slice(bytes);
        }
        u64::from_ne_bytes(bits)
    };
    bytes.chunks_exact(size.max(1)).map(of)
}

/// The content of several operands, one after the other.
pub struct PlainBytes<'a> {
    parts: std::slice::Iter<'a, Vec<u8>>,
}

impl<'a> PlainBytes<'a> {
    /// Of some parts.
    pub fn of(parts: &'a [Vec<u8>]) -> Self {
        PlainBytes { parts: parts.iter() }
    }

    /// Puts the next part where it belongs; gives whether it fits.
    pub fn next_into<T: Element>(&mut self, numbers: &mut [T]) -> bool {
        let size = size_of::<T>();
        let Some(bytes) = self.parts.next() else { return false };
        if bytes.len() != size_of_val(numbers) {
            return false;
        }
        for (bits, number) in all_bits(size, bytes).zip(numbers) {
            // None for a type that cannot be made from its bits.
            let Some(read) = T::from_bits(bits) else { return false };
            *number = read;
        }
        true
    }
}

/// Elements of a type as `f64`, with their relative rounding error; none when there is no such type.
pub fn elements_of(element: &str, bytes: &[u8]) -> Option<(Vec<f64>, f64)> {
    fn read<T: Element>(bytes: &[u8]) -> Option<(Vec<f64>, f64)> {
        let mut numbers = Vec::with_capacity(bytes.len() / size_of::<T>());
        for bits in all_bits(size_of::<T>(), bytes) {
            numbers.push(T::from_bits(bits)?.to_f64());
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
        let Some(Plain::Numbers { element, bytes, length }) = parts.pop() else {
            panic!("a sequence of numbers is one")
        };
        assert_eq!((element, length), (T::NAME, numbers.len()));
        let mut read = vec![numbers[0]; numbers.len()];
        assert!(read.import(&mut PlainBytes::of(std::slice::from_ref(&bytes))));
        assert_eq!(read, numbers);
        let (elements, roundoff) = elements_of(element, &bytes).expect("a type that is known");
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
    }

    #[test]
    fn operands_show_one_part_each_and_take_back_what_fits() {
        struct Own;
        impl Operand for Own {}
        let mut parts = Vec::new();
        (2u8, vec![1i16, 2], Own).export(&mut parts);
        assert_eq!(parts[0], Plain::Number { element: "u8", bytes: vec![2] });
        assert!(matches!(&parts[1], Plain::Numbers { element: "i16", length: 2, .. }));
        assert_eq!(parts[2], Plain::Opaque);
        let mut pair = (0u8, vec![0i16; 2]);
        let fits =
            |parts: &[Vec<u8>], pair: &mut (u8, Vec<i16>)| pair.import(&mut PlainBytes::of(parts));
        assert!(fits(&[vec![3], vec![1, 0, 2, 0]], &mut pair));
        assert_eq!(pair, (3, vec![1, 2]));
        assert!(!fits(&[vec![3], vec![1, 0]], &mut pair), "too short");
        assert!(!fits(&[vec![3]], &mut pair), "too few");
        assert!(!Own.import(&mut PlainBytes::of(&[])));
    }
}
