//! Discovery: from entries scattered over the linked crates to kernels with their variants, in a fixed order.

mod enlist;
mod error;

pub use enlist::EnlistError;
pub use error::RegistryError;

use crate::kernel::{KernelEntry, VariantEntry};
use crate::order;

/// One kernel for one element type, with all its variants.
#[derive(Clone)]
pub struct RegisteredKernel {
    /// The kernel.
    pub entry: &'static KernelEntry,
    /// Its variants: the base first, then by place in the source.
    pub variants: Vec<&'static VariantEntry>,
}

/// All kernels of the program.
#[derive(Clone)]
pub struct Registry {
    /// By module, place in the source, and element type; never in the order of the linker.
    pub kernels: Vec<RegisteredKernel>,
}

/// What makes two entries belong to the same kernel.
fn key(entry: &VariantEntry) -> (&'static str, &'static str, &'static str) {
    let kernel = entry.kernel;
    (kernel.module, kernel.name, kernel.element)
}

impl Registry {
    /// Collects every registration of the linked crates.
    pub fn collect() -> Result<Self, RegistryError> {
        Self::of(inventory::iter::<VariantEntry>())
    }

    /// A registry of given entries.
    pub fn of(
        entries: impl IntoIterator<Item = &'static VariantEntry>,
    ) -> Result<Self, RegistryError> {
        Self::of_all(entries.into_iter().collect())
    }

    fn of_all(mut entries: Vec<&'static VariantEntry>) -> Result<Self, RegistryError> {
        if entries.is_empty() {
            return Err(RegistryError::Empty);
        }
        entries.sort_unstable_by_key(|v| (key(v), !v.is_base, v.module, v.location, v.name));
        let mut kernels = Vec::new();
        for variants in entries.chunk_by(|a, b| key(a) == key(b)) {
            kernels.push(RegisteredKernel::of(variants)?);
        }
        kernels.sort_unstable_by_key(|kernel| {
            let entry = kernel.entry;
            (entry.module, entry.location, entry.name, entry.element_index, entry.element)
        });
        Ok(Registry { kernels })
    }
}

impl RegisteredKernel {
    /// The kernel's own function.
    pub fn own_function(&self) -> Option<&'static VariantEntry> {
        self.variants.iter().copied().find(|variant| variant.is_base)
    }

    /// The variant of a name; an error says that there is none.
    pub fn variant(&self, name: &str) -> Result<&'static VariantEntry, String> {
        let found = self.variants.iter().copied().find(|variant| variant.name == name);
        found.ok_or_else(|| format!("the kernel `{}` has no variant `{name}`", self.entry.path()))
    }

    /// A kernel of its variants, the own function first.
    fn of(variants: &[&'static VariantEntry]) -> Result<Self, RegistryError> {
        let entry = variants[0].kernel;
        if let Some(other) = variants.iter().find(|v| v.kernel.location != entry.location) {
            return Err(RegistryError::DuplicateKernel {
                name: entry.path(),
                first: entry.location,
                second: other.kernel.location,
            });
        }
        let mut by_name = variants.to_vec();
        order::sort_by_key(&mut by_name, |variant| variant.name);
        if let Some(same) = by_name.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(RegistryError::DuplicateVariant {
                name: format!("{}/{}/{}", entry.path(), same[0].name, entry.element),
                first: same[0].location,
                second: same[1].location,
            });
        }
        Ok(RegisteredKernel { entry, variants: variants.to_vec() })
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
