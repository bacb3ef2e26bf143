//! A checked attribute together with its function: all that the expansion needs, with nothing left to decide.

use proc_macro2::Span;
use syn::{
    Attribute, Expr, ExprPath, GenericArgument, Ident, LitStr, Meta, Path, ReturnType, Type,
    Visibility,
};

use crate::parse::{Closure, ExpectationOption, Formula, Regimes, Values};
use crate::tuning::Tuning;

/// What becomes of one attribute.
pub(crate) struct Registration {
    /// The path of the crate `kbench`.
    pub(crate) krate: Path,
    pub(crate) function: Function,
    pub(crate) name: String,
    pub(crate) backend: Backend,
    pub(crate) role: Role,
    pub(crate) instances: Vec<Instance>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) ignore: Option<String>,
    /// Whether several threads may call it at once.
    pub(crate) is_reentrant: bool,
    pub(crate) tolerance: Option<Expr>,
    pub(crate) flops: Option<Formula>,
    pub(crate) bytes: Option<Formula>,
}

/// What the function is.
pub(crate) enum Role {
    Kernel(Box<Kernel>),
    Variant(Box<Variant>),
}

/// What only a kernel has.
pub(crate) struct Kernel {
    /// The name of the type by which `of` finds it.
    pub(crate) marker: Ident,
    /// The regimes in which it is checked.
    pub(crate) regimes: Option<Regimes>,
    pub(crate) axes: Vec<Ident>,
    pub(crate) sizes: Sizes,
    pub(crate) inputs: Inputs,
    pub(crate) work: Option<Formula>,
    pub(crate) reference: Option<ExprPath>,
    pub(crate) in_place: InPlace,
    pub(crate) valid: Option<Condition>,
}

/// What only a variant has.
pub(crate) struct Variant {
    pub(crate) of: Path,
    pub(crate) threshold: Option<Threshold>,
    pub(crate) valid: Option<Condition>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Backend {
    Serial,
    Parallel,
    Cuda,
}

/// Sizes with every value at the place of its axis.
pub(crate) enum Sizes {
    Grid(Vec<Values>),
    Labelled(Vec<(LitStr, Vec<Expr>)>),
}

/// How the data is made.
pub(crate) enum Inputs {
    /// A default for every parameter, from the only axis.
    Default,
    Closure {
        closure: Box<Closure>,
        gives: Gives,
    },
    Function {
        path: ExprPath,
        gives: Gives,
    },
}

/// What the value of `inputs` is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Gives {
    /// A tuple with one value for every parameter.
    Tuple,
    /// The value of the only parameter.
    Value,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum InPlace {
    No,
    Fresh,
    Reuse,
}

pub(crate) enum Threshold {
    Work(Expr),
    When(Condition),
    /// What the tuning file says, or else the default.
    Tuned {
        default: Expr,
        tuning: Box<Tuning>,
    },
}

/// A condition on the axes.
pub(crate) struct Condition {
    pub(crate) text: String,
    pub(crate) expression: Expr,
    /// Every mention of an axis. All are kept, because two of the same name may come from different macros and then have
    /// to be bound apart.
    pub(crate) mentions: Vec<Ident>,
}

/// A performance target.
pub(crate) struct Expectation {
    pub(crate) text: String,
    pub(crate) option: ExpectationOption,
    pub(crate) at: Option<Condition>,
}

/// The function with its generic parameters replaced by the arguments of one entry of `types`.
pub(crate) struct Instance {
    pub(crate) arguments: Vec<GenericArgument>,
    /// The marker type of the kernel.
    pub(crate) kernel: Path,
    /// The element type's label; of use for kernels only.
    pub(crate) element: String,
    pub(crate) name: String,
}

/// What matters about the annotated function.
pub(crate) struct Function {
    pub(crate) ident: Ident,
    /// A hash of its signature and body.
    pub(crate) code: String,
    pub(crate) visibility: Visibility,
    /// `#[cfg(...)]` attributes, which hold for all that is generated.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) generics: Vec<Generic>,
    pub(crate) parameters: Vec<Parameter>,
    /// The parentheses around the parameters.
    pub(crate) list: Span,
    pub(crate) output: ReturnType,
    pub(crate) has_result: bool,
    /// Whether it has the keyword.
    pub(crate) is_unsafe: bool,
    /// Features of the processor that it is compiled for.
    pub(crate) features: Vec<Feature>,
}

/// A feature of the processor that a function is compiled for.
pub(crate) struct Feature {
    pub(crate) name: LitStr,
    /// What `cfg_attr` asks for, from the outermost on.
    pub(crate) conditions: Vec<Meta>,
}

impl Feature {
    /// The same within one more `cfg_attr`.
    pub(crate) fn within(mut self, condition: &Meta) -> Self {
        self.conditions.insert(0, condition.clone());
        self
    }
}

/// A type or const parameter.
pub(crate) struct Generic {
    pub(crate) ident: Ident,
    /// The type of a const parameter.
    pub(crate) constant: Option<Type>,
}

pub(crate) struct Parameter {
    /// The name by which an output is reported.
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) access: Access,
}

/// What the function does with a parameter.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Access {
    /// Nothing that concerns its data: the device itself.
    Device,
    Read,
    Write,
}

impl Function {
    /// The parameters that `inputs` gives values for.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Parameter> + Clone {
        self.parameters.iter().filter(|parameter| parameter.access != Access::Device)
    }
}
