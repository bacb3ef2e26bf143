//! The plan: which cells and rows a run consists of. Made from constants alone: no user code, no data, no hardware.

mod condition;
mod error;
mod partition;
mod select;
mod size;

pub use crate::nearest::nearest;
pub use condition::SizeFilter;
pub use error::PlanError;
pub use partition::Partition;
pub use select::{AxisOverride, Ignored, Selection};
pub use size::{Size, sizes_of};

use std::cmp::Reverse;

use crate::kernel::{Backend, Fault, KernelEntry, Mode, VariantEntry, guard};
use crate::registry::Registry;

/// What a run consists of.
#[derive(Clone, Default)]
pub struct Plan {
    /// In the order of the registry, sizes as listed.
    pub cells: Vec<Cell>,
    /// How many rows the selection left out.
    pub filtered_out: usize,
    /// Whether the base of comparisons was named, as a yardstick.
    pub has_yardstick: bool,
    /// Whether comparisons are made with the first selected variant, because the own function of a kernel is not selected.
    pub has_substitutes: bool,
    /// Whether element types after the first were left out at all sizes but one.
    pub is_brief: bool,
    /// The axis along which crossovers of kernels with several are looked for.
    pub along: Option<String>,
    /// The share of the kernels that it is.
    pub partition: Option<Partition>,
    /// Paths of all kernels that are selected, in whatever share.
    pub kernels: Vec<String>,
}

/// Kernel × element type × size, with the variants that are selected for it.
#[derive(Clone)]
pub struct Cell {
    /// The kernel.
    pub kernel: &'static KernelEntry,
    /// The kernel's own function, which serves as reference when there is no other; also when it is not among the rows.
    pub own_function: Option<&'static VariantEntry>,
    /// The base of comparisons, if it is among the rows; [`base_of`](Self::base_of) tells that of a single row.
    pub base: Option<usize>,
    /// The size.
    pub size: Size,
    /// What is measured side by side.
    pub rows: Vec<Row>,
}

/// One variant in a cell, with a number of threads when it is parallel.
#[derive(Clone, Copy)]
pub struct Row {
    /// The variant.
    pub variant: &'static VariantEntry,
    /// Threads of its own pool; `None` for serial variants, and for parallel ones on rayon's global pool.
    pub threads: Option<usize>,
    /// How its calls are timed.
    pub mode: Mode,
    /// Whether the selection leaves it out because its author marked it `ignore`.
    pub ignored: bool,
}

impl Cell {
    /// `module::path::kernel axis=value,axis=value`.
    pub fn name(&self) -> String {
        format!("{} {}", self.kernel.path(), self.size.name(self.kernel.axes))
    }

    /// `module::path::kernel/variant/type/axis=value,axis=value`.
    pub fn row_name(&self, row: &Row) -> String {
        full_name(self.kernel, row.variant, &self.size)
    }

    /// The amount of work. Runs user code.
    pub fn work(&self) -> Result<f64, Fault> {
        work_of(self.kernel, &self.size)
    }

    /// The place of a row's former self, behind all rows of today, where an older program is measured beside this one.
    pub fn past_of(&self, row: usize) -> usize {
        self.rows.len() + row
    }

    /// The row of today at a place, whichever program it is of.
    pub fn row_at(&self, place: usize) -> &Row {
        &self.rows[place % self.rows.len()]
    }

    /// What a row is compared with: the base in the same mode, where it is measured in it.
    pub fn base_of(&self, row: usize) -> Option<usize> {
        let base = &self.rows[self.base?];
        let alike = |other: &Row| {
            let mode = self.rows.get(row).map_or(base.mode, |row| row.mode);
            Row { mode, ..*base }.is(other)
        };
        self.rows.iter().position(alike).or(self.base)
    }

    /// Whether others are compared with a row.
    pub fn is_base(&self, row: usize) -> bool {
        self.base_of(row) == Some(row)
    }

    /// Whether a row is the one that its variant is first judged by: of those that differ in their mode alone, the first.
    pub fn is_primary(&self, row: usize) -> bool {
        let Row { variant, threads, mode, .. } = self.rows[row];
        let twins = self
            .rows
            .iter()
            .filter(|other| std::ptr::eq(other.variant, variant) && other.threads == threads);
        twins.map(|twin| twin.mode).min() == Some(mode)
    }
}

impl Row {
    /// Whether both are the same variant with the same number of threads in the same mode.
    pub fn is(&self, other: &Row) -> bool {
        std::ptr::eq(self.variant, other.variant)
            && (self.threads, self.mode) == (other.threads, other.mode)
    }
}

/// The amount of work of a kernel at a size, by the attribute's closure or as the product of the axes. Runs user code.
pub fn work_of(kernel: &KernelEntry, size: &Size) -> Result<f64, Fault> {
    let work = guard(|| kernel.definition.work(&size.values))?;
    Ok(work.or(size.product().map(|product| product as f64)).unwrap_or(f64::NAN))
}

/// `module::path::kernel/variant/type/axis=value,axis=value`.
pub fn full_name(kernel: &KernelEntry, variant: &VariantEntry, size: &Size) -> String {
    let KernelEntry { module, name, element, .. } = kernel;
    format!("{module}::{name}/{}/{element}/{}", variant.name, size.name(kernel.axes))
}

impl Plan {
    /// Applies a selection to a registry.
    ///
    /// `threads` are the thread counts that parallel variants are measured with; empty means rayon's global pool. `modes`
    /// are those in which CUDA variants are.
    pub fn new(
        registry: &Registry,
        selection: &Selection,
        threads: &[usize],
        modes: &[Mode],
    ) -> Result<Self, PlanError> {
        selection.validate(registry)?;
        let selection = &selection.by_kernels(registry);
        let mut cells = Vec::new();
        let mut filtered_out = 0;
        let mut paths: Vec<String> = Vec::new();
        let mut kernels: Vec<String> = Vec::new();
        let mut has_substitutes = false;
        for kernel in &registry.kernels {
            // Element types of one kernel follow each other, and count as one.
            let path = kernel.entry.path();
            if paths.last() != Some(&path) {
                paths.push(path.clone());
            }
            let in_part = selection.partition.is_none_or(|p| p.contains(paths.len() - 1, &path));
            let (sizes, left_out) = selection.sizes(kernel.entry)?;
            filtered_out += left_out * kernel.variants.len();
            for size in sizes {
                let chosen: Vec<&'static VariantEntry> = kernel
                    .variants
                    .iter()
                    .copied()
                    .filter(|v| selection.selects(kernel.entry, v, &size))
                    .collect();
                if !chosen.is_empty() && kernels.last() != Some(&path) {
                    kernels.push(path.clone());
                }
                let chosen = if in_part { chosen } else { Vec::new() };
                filtered_out += kernel.variants.len() - chosen.len();
                if chosen.is_empty() {
                    continue;
                }
                let mut rows = Vec::new();
                for variant in chosen {
                    add_rows(&mut rows, variant, threads, modes, selection.ignored);
                }
                let (base, is_substitute) = base_of(&rows, selection);
                has_substitutes |= is_substitute;
                let own_function = kernel.variants.iter().copied().find(|v| v.is_base);
                cells.push(Cell { kernel: kernel.entry, own_function, base, size, rows });
            }
        }
        Ok(Plan {
            cells,
            filtered_out,
            has_yardstick: selection.base.is_some(),
            has_substitutes,
            is_brief: false,
            along: selection.along.clone(),
            partition: selection.partition,
            kernels,
        })
    }

    /// Leaves one size of every element type of a kernel after the first: the one in the middle, the smaller of two.
    pub fn shorten(&mut self) {
        let all = std::mem::take(&mut self.cells);
        for of_type in all.chunk_by(|a, b| std::ptr::eq(a.kernel, b.kernel)) {
            let middle = (of_type.len() - 1) / 2;
            let kept = if of_type[0].kernel.element_index == 0 {
                of_type
            } else {
                &of_type[middle..=middle]
            };
            self.is_brief |= kept.len() < of_type.len();
            self.filtered_out += rows_of(of_type) - rows_of(kept);
            self.cells.extend_from_slice(kept);
        }
    }

    /// All rows with their cells.
    pub fn rows(&self) -> impl Iterator<Item = (&Cell, &Row)> {
        self.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row)))
    }
}

fn rows_of(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.rows.len()).sum()
}

/// The row that others are compared with, and whether it stands in for the kernel's own function.
fn base_of(rows: &[Row], selection: &Selection) -> (Option<usize>, bool) {
    // A base in several pools is the one with most threads.
    let row_of = |is_base: &dyn Fn(&VariantEntry) -> bool| {
        let bases = rows.iter().enumerate().filter(|(_, row)| is_base(row.variant));
        let base = bases.max_by_key(|(_, row)| (row.threads, Reverse(row.mode)));
        base.map(|(index, _)| index)
    };
    let base = row_of(&|variant| selection.is_base(variant));
    if base.is_some() || selection.base.is_some() {
        return (base, false);
    }
    let runs = rows.iter().filter(|row| !row.ignored).map(|row| row.variant);
    // As they are named on the command line, or else as they are registered.
    let first = runs.clone().min_by_key(|variant| selection.place_of(variant));
    let Some(first) = first else { return (None, false) };
    let has_others = runs.into_iter().any(|variant| !std::ptr::eq(variant, first));
    (row_of(&|variant| std::ptr::eq(variant, first)).filter(|_| has_others), has_others)
}

/// Adds the rows of a variant: one for each number of threads and each mode.
fn add_rows(
    rows: &mut Vec<Row>,
    variant: &'static VariantEntry,
    threads: &[usize],
    modes: &[Mode],
    ignored: Ignored,
) {
    let counts: Vec<Option<usize>> = if variant.backend == Backend::Parallel && !threads.is_empty()
    {
        threads.iter().copied().map(Some).collect()
    } else {
        vec![None]
    };
    let ignored = variant.ignore.is_some() && ignored == Ignored::Exclude;
    for threads in counts {
        for mode in Mode::of(variant.backend, modes) {
            rows.push(Row { variant, threads, mode, ignored });
        }
    }
}

#[cfg(test)]
mod tests;
