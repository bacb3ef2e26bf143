//! From the sizes of an attribute to a list of sizes.

use std::collections::{BTreeMap, HashSet};

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

    /// The values of some axes, by name.
    pub fn values_of(
        &self,
        axes: &[&str],
        is_meant: &dyn Fn(usize) -> bool,
    ) -> BTreeMap<String, usize> {
        let mut values = BTreeMap::new();
        for (axis, (name, value)) in axes.iter().zip(&self.values).enumerate() {
            if is_meant(axis) {
                values.insert((*name).to_owned(), *value);
            }
        }
        values
    }

    /// The product of the axes, unless it is more than fits.
    pub fn product(&self) -> Option<u64> {
        self.values.iter().try_fold(1u64, |product, &v| product.checked_mul(v as u64))
    }
}

/// A size, and the label of the shape that it is made from by replacing values of axes.
pub(super) struct Candidate {
    pub(super) size: Size,
    pub(super) shape: Option<&'static str>,
}

/// The sizes that a kernel lists.
pub fn sizes_of(kernel: &KernelEntry) -> Result<Vec<Size>, PlanError> {
    Ok(distinct(&mut candidates(kernel, &|_| None)?.iter()))
}

/// Their sizes, each once.
pub(super) fn distinct(candidates: &mut dyn Iterator<Item = &Candidate>) -> Vec<Size> {
    let mut seen = HashSet::new();
    let sizes = candidates.map(|candidate| &candidate.size);
    sizes.filter(|size| seen.insert(&size.values)).cloned().collect()
}

/// The sizes that a kernel lists, with the values of some axes replaced.
pub(super) fn candidates(
    kernel: &KernelEntry,
    replacement: &dyn Fn(&str) -> Option<Vec<usize>>,
) -> Result<Vec<Candidate>, PlanError> {
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
            let unlabelled = |values| Candidate { size: Size::of(values), shape: None };
            Ok(combinations(&lists).into_iter().map(unlabelled).collect())
        }
        Sizes::Labelled(shapes) => {
            let mut candidates = Vec::new();
            for (shape, listed) in shapes {
                let mut lists = Vec::new();
                for (value, replaced) in listed.iter().zip(&replaced) {
                    lists.push(replaced.clone().unwrap_or_else(|| vec![*value]));
                }
                for values in combinations(&lists) {
                    let label = (values == *listed).then_some(*shape);
                    candidates
                        .push(Candidate { size: Size { values, label }, shape: Some(*shape) });
                }
            }
            Ok(candidates)
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
    let mut all = vec![Vec::new()];
    for list in lists {
        let mut longer = Vec::new();
        for head in &all {
            for value in list {
                longer.push([head.as_slice(), &[*value]].concat());
            }
        }
        all = longer;
    }
    all
}
