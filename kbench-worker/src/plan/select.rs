//! Which rows of the registry a run is about.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::condition::{Comparison, number};
use super::size::{Candidate, candidates, distinct};
use super::{Partition, PlanError, Size, SizeFilter, full_name, nearest};
use crate::kernel::{Backend, KernelEntry, Sizes, VariantEntry};
use crate::registry::Registry;

/// What to do with variants marked `ignore`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// List them, but do not run them.
    #[default]
    Exclude,
    /// Run them alone.
    Only,
    /// Run them like the others.
    Include,
}

/// Conditions that a row must meet; empty lists mean no condition.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Parts of full names, any of which must occur.
    pub filters: Vec<String>,
    /// Parts of full names, none of which may occur.
    pub skip: Vec<String>,
    /// Filters and skips are whole names.
    pub exact: bool,
    /// Variants marked `ignore`.
    pub ignored: Ignored,
    /// Kernels by name or path, or all kernels of a module by its name or path.
    pub kernels: Vec<String>,
    /// Variants by name.
    pub variants: Vec<String>,
    /// Backends.
    pub backends: Vec<Backend>,
    /// Element types by name.
    pub types: Vec<String>,
    /// Labels or conditions, any of which must match.
    pub sizes: Vec<SizeFilter>,
    /// Values that replace the listed ones of an axis.
    pub axes: Vec<AxisOverride>,
    /// A share of the kernels.
    pub partition: Option<Partition>,
    /// The variant that others are compared with, instead of the kernel's own function.
    pub base: Option<String>,
    /// The axis along which crossovers of kernels with several are looked for, instead of the one that spans most.
    pub along: Option<String>,
}

/// `dim=64,128`: measure these values of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisOverride {
    /// The axis.
    pub axis: String,
    /// Its values.
    pub values: Vec<usize>,
}

impl FromStr for AxisOverride {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (axis, values) = text
            .split_once('=')
            .filter(|(axis, values)| !axis.trim().is_empty() && !values.trim().is_empty())
            .ok_or_else(|| {
                format!("`{text}` gives no axis values; write for example dim=64,128")
            })?;
        let values =
            values.split(',').map(|value| number(value.trim())).collect::<Result<_, _>>()?;
        Ok(AxisOverride { axis: axis.trim().to_owned(), values })
    }
}

impl Selection {
    /// Rejects names that nothing in the registry has.
    pub(super) fn validate(&self, registry: &Registry) -> Result<(), PlanError> {
        let kernels = || registry.kernels.iter().map(|k| k.entry);
        let variants = || registry.kernels.iter().flat_map(|k| k.variants.iter().map(|v| v.name));
        let paths: Vec<String> = kernels().map(KernelEntry::path).collect();
        let modules = kernels().flat_map(|k| k.module.split("::").chain([k.module]));
        let known = kernels().map(|k| k.name).chain(paths.iter().map(String::as_str));
        all_known("kernel", &self.kernels, known.chain(modules))?;
        all_known("variant", &self.variants, variants())?;
        all_known("variant", self.base.as_slice(), variants())?;
        all_known("element type", &self.types, kernels().map(|k| k.element))?;
        let axes = || kernels().flat_map(|k| k.axes.iter().copied());
        all_known("axis", self.axes.iter().map(|a| &a.axis).chain(&self.along), axes())?;
        for filter in &self.sizes {
            match filter {
                SizeFilter::Label(label) => {
                    let labels = kernels().flat_map(|k| match k.sizes {
                        Sizes::Labelled(shapes) => shapes,
                        Sizes::Grid(_) => &[],
                    });
                    all_known("size", [label], labels.map(|(label, _)| *label))?;
                }
                SizeFilter::Where(comparisons) => {
                    all_known("axis", comparisons.iter().flat_map(Comparison::axes), axes())?;
                }
            }
        }
        Ok(())
    }

    /// The same with modules replaced by the kernels that are in them; a kernel's name goes before a module's.
    pub(super) fn by_kernels(&self, registry: &Registry) -> Self {
        let kernels = || registry.kernels.iter().map(|kernel| kernel.entry);
        let named = |name: &String| {
            if kernels().any(|kernel| kernel.name == name || kernel.path() == *name) {
                return vec![name.clone()];
            }
            let is_inside = |kernel: &&KernelEntry| {
                let below = kernel.module.strip_prefix(name.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                    || kernel.module.split("::").any(|part| part == name)
            };
            kernels().filter(is_inside).map(KernelEntry::path).collect()
        };
        Selection { kernels: self.kernels.iter().flat_map(named).collect(), ..self.clone() }
    }

    /// The sizes of a kernel that are selected, and how many are not.
    pub(super) fn sizes(&self, kernel: &KernelEntry) -> Result<(Vec<Size>, usize), PlanError> {
        let replaced = |axis: &str| {
            let given = self.axes.iter().filter(|a| a.axis == axis);
            let mut values: Vec<usize> = given.flat_map(|a| a.values.iter().copied()).collect();
            values.dedup();
            (!values.is_empty()).then_some(values)
        };
        let candidates = candidates(kernel, replaced)?;
        let lacks_axis = self.axes.iter().any(|a| !kernel.axes.contains(&a.axis.as_str()));
        let is_wanted = |Candidate { size, shape }: &&Candidate| {
            let mut filters = self.sizes.iter();
            !lacks_axis
                && (self.sizes.is_empty()
                    || filters.any(|f| f.matches(kernel.axes, &size.values, *shape)))
        };
        let selected = distinct(candidates.iter().filter(is_wanted));
        let left_out = distinct(candidates.iter()).len() - selected.len();
        Ok((selected, left_out))
    }

    /// Whether a variant at a size is selected.
    pub(super) fn selects(
        &self,
        kernel: &KernelEntry,
        variant: &VariantEntry,
        size: &Size,
    ) -> bool {
        let among = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        (self.kernels.is_empty()
            || self.kernels.iter().any(|n| n == kernel.name || *n == kernel.path()))
            && (among(&self.variants, variant.name) || self.is_named_base(variant))
            && (self.backends.is_empty() || self.backends.contains(&variant.backend))
            && among(&self.types, kernel.element)
            && (self.ignored != Ignored::Only || variant.ignore.is_some())
            && self.passes_filters(kernel, variant, size)
    }

    /// Whether comparisons in a cell are made with this variant.
    pub(super) fn is_base(&self, variant: &VariantEntry) -> bool {
        match &self.base {
            Some(name) => variant.name == name,
            None => variant.is_base,
        }
    }

    fn is_named_base(&self, variant: &VariantEntry) -> bool {
        self.base.as_deref() == Some(variant.name)
    }

    fn passes_filters(&self, kernel: &KernelEntry, variant: &VariantEntry, size: &Size) -> bool {
        if self.filters.is_empty() && self.skip.is_empty() {
            return true;
        }
        let name = full_name(kernel, variant, size);
        let matches = |filter: &String| {
            if self.exact { name == *filter } else { name.contains(filter.as_str()) }
        };
        !self.skip.iter().any(matches)
            && (self.filters.is_empty() || self.filters.iter().any(matches))
    }
}

fn all_known<'a, 'b>(
    what: &'static str,
    wanted: impl IntoIterator<Item = &'a String>,
    known: impl Iterator<Item = &'b str>,
) -> Result<(), PlanError> {
    let mut wanted = wanted.into_iter().peekable();
    if wanted.peek().is_none() {
        return Ok(());
    }
    let known: BTreeSet<&str> = known.collect();
    match wanted.find(|name| !known.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(PlanError::Unknown {
            what,
            name: name.clone(),
            nearest: nearest(name, known.iter().copied()).map(str::to_owned),
            choices: known.iter().map(ToString::to_string).collect(),
        }),
    }
}
