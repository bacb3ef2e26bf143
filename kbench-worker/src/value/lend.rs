//! How the runtime's values become a kernel's parameters.

/// Turns a borrowed value into a parameter of type `P`.
///
/// The runtime owns a `Vec<T>` and lends it as `&[T]` or `&mut [T]`; it owns a `T` and lends it as `T` (when it is
/// `Copy`), `&T` or `&mut T`. Lending happens inside the timed loop, so it must cost no more than a few loads. For a view
/// type of your own, implement it for a reference to the owner, and [`Lent`] for the view:
///
/// ```
/// # use kbench_worker::value::{Lend, Lent, Operand};
/// #[derive(Clone)]
/// struct Matrix { rows: usize, data: Vec<f32> }
/// struct MatrixRef<'a> { rows: usize, data: &'a [f32] }
///
/// impl<'a> Lend<MatrixRef<'a>> for &'a Matrix {
///     fn lend(self) -> MatrixRef<'a> {
///         MatrixRef { rows: self.rows, data: &self.data }
///     }
/// }
/// impl Lent for MatrixRef<'_> { type Owner = Matrix; }
/// impl Operand for Matrix {}
/// ```
#[diagnostic::on_unimplemented(
    message = "this parameter is `{P}`, but the kernel's inputs give `{Self}` here",
    label = "does not fit what the kernel lends",
    note = "a `Vec<T>` is lent as `&[T]` or `&mut [T]`, a value `T` as `T` (if `Copy`), `&T` or `&mut T`",
    note = "an output of the kernel must be `&mut` in every variant, an input must not be"
)]
pub trait Lend<P> {
    /// The parameter.
    fn lend(self) -> P;
}

impl<'a, T> Lend<&'a [T]> for &'a Vec<T> {
    #[inline(always)]
    fn lend(self) -> &'a [T] {
        self
    }
}

impl<'a, T> Lend<&'a mut [T]> for &'a mut Vec<T> {
    #[inline(always)]
    fn lend(self) -> &'a mut [T] {
        self
    }
}

impl<'a> Lend<&'a str> for &'a String {
    #[inline(always)]
    fn lend(self) -> &'a str {
        self
    }
}

impl<T: Copy> Lend<T> for &T {
    #[inline(always)]
    fn lend(self) -> T {
        *self
    }
}

impl<'a, T> Lend<&'a T> for &'a T {
    #[inline(always)]
    fn lend(self) -> &'a T {
        self
    }
}

impl<'a, T> Lend<&'a mut T> for &'a mut T {
    #[inline(always)]
    fn lend(self) -> &'a mut T {
        self
    }
}

/// A view type of your own, passed by value: names the owner that the runtime keeps and lends from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` borrows from a value that kbench would have to keep",
    label = "whose view is this?",
    note = "implement `kbench::Lent` for it, which names the owner, and `kbench::Lend` for a reference to the owner"
)]
pub trait Lent {
    /// What the runtime owns and `inputs` makes.
    type Owner;
}
