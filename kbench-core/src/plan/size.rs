//! From the sizes of an attribute to a list of sizes.

use std::collections::HashSet;

use super::PlanError;
use crate::kernel::{KernelEntry, Sizes, Values};

/// One value for every axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size {
    /// In the order of the kernel's axes.
    pub values: Vec<usize>,
    /// The label of a labelled shape.
    pub label: Option<&'static str>,
}

impl Size {
    /// A size without a label.
    pub fn of(values: impl Into<Vec<usize>>) -> Self {
        Size { values: values.into(), label: None }
    }

    /// `axis=value,axis=value`.
    pub fn name(&self, axes: &[&str]) -> String {
        let pairs: Vec<String> =
            axes.iter().zip(&self.values).map(|(axis, value)| format!("{axis}={value}")).collect();
        pairs.join(",")
    }

    /// The product of the axes, unless it is more than fits.
    pub fn product(&self) -> Option<u64> {
        self.values.iter().try_fold(1u64, |product, &v| product.checked_mul(v as u64))
    }
}

/// The sizes that a kernel lists, with the values of some axes replaced.
pub fn sizes_of(
    kernel: &KernelEntry,
    replacement: impl Fn(&str) -> Option<Vec<usize>>,
) -> Result<Vec<Size>, PlanError> {
    let replaced: Vec<Option<Vec<usize>>> =
        kernel.axes.iter().map(|axis| replacement(axis)).collect();
    match kernel.sizes {
        Sizes::Grid(axes) => {
            let mut lists = Vec::new();
            for (values, replaced) in axes.iter().zip(replaced) {
                lists.push(match replaced {
                    Some(values) => values,
                    None => list(kernel, values)?,
                });
            }
            let mut seen = HashSet::new();
            let all = combinations(&lists).into_iter();
            Ok(all.filter(|values| seen.insert(values.clone())).map(Size::of).collect())
        }
        Sizes::Labelled(shapes) => {
            let mut sizes: Vec<Size> = Vec::new();
            for (label, values) in shapes {
                let lists: Vec<Vec<usize>> = values
                    .iter()
                    .zip(&replaced)
                    .map(|(value, replaced)| replaced.clone().unwrap_or_else(|| vec![*value]))
                    .collect();
                for combination in combinations(&lists) {
                    let label = (combination == *values).then_some(*label);
                    if !sizes.iter().any(|size| size.values == combination) {
                        sizes.push(Size { values: combination, label });
                    }
                }
            }
            Ok(sizes)
        }
    }
}

fn list(kernel: &KernelEntry, values: &Values) -> Result<Vec<usize>, PlanError> {
    match *values {
        Values::List(values) => Ok(values.to_vec()),
        Values::PowersOfTwo { from, to } => (from..=to)
            .map(|exponent| {
                1usize.checked_shl(exponent).ok_or_else(|| PlanError::PowerTooLarge {
                    kernel: kernel.path(),
                    exponent,
                    location: kernel.location,
                })
            })
            .collect(),
    }
}

/// Every combination, the last axis running fastest.
fn combinations(lists: &[Vec<usize>]) -> Vec<Vec<usize>> {
    lists.iter().fold(vec![Vec::new()], |heads, list| {
        heads
            .iter()
            .flat_map(|head| list.iter().map(move |value| [head.as_slice(), &[*value]].concat()))
            .collect()
    })
}
