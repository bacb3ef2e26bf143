//! Arguments of a reference function, which may ask for `f64` where the kernel has a narrower type.

use super::{Element, F8E4M3, F8E5M2, Operand};

/// One argument of a reference: a copy of the kernel's value, and its `f64` twin once that is asked for.
///
/// A reference for `fn(&[f32], &mut [f32])` may be `fn(&[f64], &mut [f64])`, or `fn(&[f32], &mut [f64])`, or have the
/// kernel's own types: each parameter of the reference chooses by its type.
#[derive(Debug)]
pub struct Oracle<T> {
    value: T,
    wide: Option<Vec<f64>>,
}

impl<T: Clone> Oracle<T> {
    /// An argument that starts with the content of `value`.
    pub fn new(value: &T) -> Self {
        Oracle { value: value.clone(), wide: None }
    }
}

impl<T: Operand> Oracle<T> {
    /// Appends what the reference left in this argument; it is taken away from here, as a copy of a large array costs time.
    pub fn elements(&mut self, parts: &mut Vec<Vec<f64>>) {
        match &mut self.wide {
            Some(wide) => parts.push(std::mem::take(wide)),
            None => self.value.elements(parts),
        }
    }

    /// Appends what its elements leave out.
    pub fn rests(&self, parts: &mut Vec<Vec<f64>>) {
        match self.wide {
            Some(_) => parts.push(Vec::new()),
            None => self.value.rests(parts),
        }
    }
}

/// The `f64` twins of numbers.
fn widened<T: Element>(numbers: &[T]) -> Vec<f64> {
    numbers.iter().map(|number| number.to_f64()).collect()
}

/// Lends an [`Oracle`] as a parameter of type `P` of the reference.
#[diagnostic::on_unimplemented(
    message = "the reference takes `{P}` where the kernel's inputs give `{Self}`",
    note = "a parameter of a reference has the kernel's type, or the same shape in `f64`"
)]
pub trait OracleArgument<'a, P> {
    /// The parameter.
    fn lend(&'a mut self) -> P;
}

impl<'a, T: Copy> OracleArgument<'a, T> for Oracle<T> {
    fn lend(&'a mut self) -> T {
        self.value
    }
}

impl<'a, T> OracleArgument<'a, &'a T> for Oracle<T> {
    fn lend(&'a mut self) -> &'a T {
        &self.value
    }
}

impl<'a, T> OracleArgument<'a, &'a mut T> for Oracle<T> {
    fn lend(&'a mut self) -> &'a mut T {
        &mut self.value
    }
}

impl<'a, T> OracleArgument<'a, &'a [T]> for Oracle<Vec<T>> {
    fn lend(&'a mut self) -> &'a [T] {
        &self.value
    }
}

impl<'a, T> OracleArgument<'a, &'a mut [T]> for Oracle<Vec<T>> {
    fn lend(&'a mut self) -> &'a mut [T] {
        &mut self.value
    }
}

impl<'a> OracleArgument<'a, &'a str> for Oracle<String> {
    fn lend(&'a mut self) -> &'a str {
        &self.value
    }
}

// Not generic: for `f64` itself the two forms would be the same implementation twice.
macro_rules! widening {
    ($($type:ty)*) => {$(
        impl<'a> OracleArgument<'a, &'a [f64]> for Oracle<Vec<$type>> {
            fn lend(&'a mut self) -> &'a [f64] {
                self.wide.insert(widened(&self.value))
            }
        }
        impl<'a> OracleArgument<'a, &'a mut [f64]> for Oracle<Vec<$type>> {
            fn lend(&'a mut self) -> &'a mut [f64] {
                self.wide.insert(widened(&self.value))
            }
        }
        impl<'a> OracleArgument<'a, f64> for Oracle<$type> {
            fn lend(&'a mut self) -> f64 {
                self.value.to_f64()
            }
        }
        impl<'a> OracleArgument<'a, &'a f64> for Oracle<$type> {
            fn lend(&'a mut self) -> &'a f64 {
                &self.wide.insert(vec![self.value.to_f64()])[0]
            }
        }
        impl<'a> OracleArgument<'a, &'a mut f64> for Oracle<$type> {
            fn lend(&'a mut self) -> &'a mut f64 {
                &mut self.wide.insert(vec![self.value.to_f64()])[0]
            }
        }
    )*};
}

widening! { f32 half::f16 half::bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 u8 u16 u32 u64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_of_a_reference_chooses_its_width() {
        fn reference(x: &[f32], scale: f64, y: &mut [f64]) {
            x.iter().zip(y).for_each(|(x, y)| *y = scale * f64::from(*x));
        }
        let mut x = Oracle::new(&vec![1.0f32, 2.0]);
        let mut scale = Oracle::new(&0.5f32);
        let mut y = Oracle::new(&vec![0.0f32; 2]);
        reference(x.lend(), scale.lend(), y.lend());
        let mut parts = Vec::new();
        y.elements(&mut parts);
        assert_eq!(parts, [vec![0.5, 1.0]]);
    }
}
