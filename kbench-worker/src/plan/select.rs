//! Which rows of the registry a run is about.

use std::str::FromStr;

use super::condition::number;
use super::size::{Candidate, candidates, distinct};
use super::{Partition, PlanError, Size, SizeFilter, full_name, nearest};
use crate::kernel::{Backend, KernelEntry, Sizes, VariantEntry};
use crate::order;
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
    /// Whether it says which kernels, types or sizes are measured.
    pub fn names_rows(&self) -> bool {
        let Selection { filters, kernels, types, sizes, axes, .. } = self;
        !(filters.is_empty()
            && kernels.is_empty()
            && types.is_empty()
            && sizes.is_empty()
            && axes.is_empty())
    }

    /// Rejects names that nothing in the registry has.
    pub(super) fn validate(&self, registry: &Registry) -> Result<(), PlanError> {
        let paths: Vec<String> =
            registry.kernels.iter().map(|kernel| kernel.entry.path()).collect();
        let [mut kernels, mut variants, mut types, mut axes, mut labels] =
            [const { Vec::new() }; 5];
        for (kernel, path) in registry.kernels.iter().zip(&paths) {
            let entry = kernel.entry;
            kernels.extend([entry.name, path, entry.module]);
            kernels.extend(entry.module.split("::"));
            variants.extend(kernel.variants.iter().map(|variant| variant.name));
            types.push(entry.element);
            axes.extend(entry.axes);
            if let Sizes::Labelled(shapes) = entry.sizes {
                labels.extend(shapes.iter().map(|(label, _)| *label));
            }
        }
        all_known("kernel", &mut self.kernels.iter(), &kernels)?;
        all_known("variant", &mut self.variants.iter().chain(&self.base), &variants)?;
        all_known("element type", &mut self.types.iter(), &types)?;
        all_known("axis", &mut self.axes.iter().map(|a| &a.axis).chain(&self.along), &axes)?;
        for filter in &self.sizes {
            match filter {
                SizeFilter::Label(label) => all_known("size", &mut [label].into_iter(), &labels)?,
                SizeFilter::Where(comparisons) => {
                    for comparison in comparisons {
                        all_known("axis", &mut comparison.axes(), &axes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same with modules replaced by the kernels that are in them; a kernel's name goes before a module's.
    pub(super) fn by_kernels(&self, registry: &Registry) -> Self {
        let mut named = Vec::new();
        for name in &self.kernels {
            let kernels = || registry.kernels.iter().map(|kernel| kernel.entry);
            if kernels().any(|kernel| kernel.name == name || kernel.path() == *name) {
                named.push(name.clone());
                continue;
            }
            let is_inside = |kernel: &&KernelEntry| {
                let below = kernel.module.strip_prefix(name.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                    || kernel.module.split("::").any(|part| part == name)
            };
            named.extend(kernels().filter(is_inside).map(KernelEntry::path));
        }
        Selection { kernels: named, ..self.clone() }
    }

    /// The sizes of a kernel that are selected, and how many are not.
    pub(super) fn sizes(&self, kernel: &KernelEntry) -> Result<(Vec<Size>, usize), PlanError> {
        let replaced = |axis: &str| {
            let mut values = Vec::new();
            for given in self.axes.iter().filter(|given| given.axis == axis) {
                values.extend(&given.values);
            }
            values.dedup();
            (!values.is_empty()).then_some(values)
        };
        let candidates = candidates(kernel, &replaced)?;
        let lacks_axis = self.axes.iter().any(|a| !kernel.axes.contains(&a.axis.as_str()));
        let is_wanted = |Candidate { size, shape }: &&Candidate| {
            let mut filters = self.sizes.iter();
            !lacks_axis
                && (self.sizes.is_empty()
                    || filters.any(|f| f.matches(kernel.axes, &size.values, *shape)))
        };
        let selected = distinct(&mut candidates.iter().filter(is_wanted));
        let left_out = distinct(&mut candidates.iter()).len() - selected.len();
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

    /// The place of a variant among those that are named; all are in the same place where none is named.
    pub(super) fn place_of(&self, variant: &VariantEntry) -> Option<usize> {
        self.variants.iter().position(|name| name == variant.name)
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

/// Rejects a name that is not among the known ones.
fn all_known(
    what: &'static str,
    wanted: &mut dyn Iterator<Item = &String>,
    known: &[&str],
) -> Result<(), PlanError> {
    for name in wanted {
        if !known.contains(&name.as_str()) {
            return Err(unknown(what, name, known));
        }
    }
    Ok(())
}

fn unknown(what: &'static str, name: &str, known: &[&str]) -> PlanError {
    let choices = order::distinct(known.iter().copied());
    PlanError::Unknown {
        what,
        name: name.to_owned(),
        nearest: nearest(name, choices.iter().copied()).map(str::to_owned),
        choices: choices.into_iter().map(str::to_owned).collect(),
    }
}
