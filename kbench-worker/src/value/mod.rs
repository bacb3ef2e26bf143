//! The values that kernels read and write: elements, operands, how they are lent, and how they are made.
//!
//! Everything a user's own type may need is a public trait of this module, with defaults for the common case:
//! [`Element`] for a number, [`Operand`] for anything a kernel reads or writes, [`Lend`] for how an owned value becomes
//! a parameter, [`Lent`] for parameters that are views of something else.

mod cold;
mod declined;
mod element;
mod float8;
mod generator;
mod lend;
mod operand;
mod oracle;
mod pages;
mod plain;
mod random;
mod regime;
mod sequence;
mod splitmix;

pub use cold::CAN_EVICT;
pub use declined::Declined;
pub use element::{Element, Poison};
pub use float8::{F8E4M3, F8E5M2};
pub use half::{bf16, f16};
pub use lend::{Lend, Lent};
pub use operand::{Fingerprint, Operand, fields_of_member};
pub use oracle::{Oracle, OracleArgument};
pub use pages::Pages;
pub(crate) use pages::Side;
pub use plain::{Content, Parts, Plain, PlainBytes, elements_of};
pub(crate) use random::drawn;
pub use random::{Draw, Others, Places};
pub use regime::Regime;
pub(crate) use regime::limits;
pub use sequence::{Numbers, NumbersMut};
pub use splitmix::SplitMix;

pub use random::{
    Distribution, DrawnBits, DrawnValues, constant, default_input, integers, normal, range,
    uniform, with_seed, zeros,
};
