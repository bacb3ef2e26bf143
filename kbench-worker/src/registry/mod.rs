//! Discovery: from entries scattered over the linked crates to kernels with their variants, in a fixed order.

mod enlist;
mod error;

pub use enlist::EnlistError;
pub use error::RegistryError;

use std::collections::BTreeMap;

use crate::kernel::{KernelEntry, VariantEntry};

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
type Key = (&'static str, &'static str, &'static str);

impl Registry {
    /// Collects every registration of the linked crates.
    pub fn collect() -> Result<Self, RegistryError> {
        Self::of(inventory::iter::<VariantEntry>())
    }

    /// A registry of given entries.
    pub fn of(
        entries: impl IntoIterator<Item = &'static VariantEntry>,
    ) -> Result<Self, RegistryError> {
        let mut groups: BTreeMap<Key, Vec<&'static VariantEntry>> = BTreeMap::new();
        for entry in entries {
            let kernel = entry.kernel;
            groups.entry((kernel.module, kernel.name, kernel.element)).or_default().push(entry);
        }
        if groups.is_empty() {
            return Err(RegistryError::Empty);
        }
        let mut kernels =
            groups.into_values().map(RegisteredKernel::of).collect::<Result<Vec<_>, _>>()?;
        kernels.sort_by_key(|kernel| {
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

    fn of(mut variants: Vec<&'static VariantEntry>) -> Result<Self, RegistryError> {
        variants.sort_by_key(|v| (!v.is_base, v.module, v.location, v.name));
        let entry = variants[0].kernel;
        if let Some(other) = variants.iter().find(|v| v.kernel.location != entry.location) {
            return Err(RegistryError::DuplicateKernel {
                name: entry.path(),
                first: entry.location,
                second: other.kernel.location,
            });
        }
        let mut places = BTreeMap::new();
        for variant in &variants {
            if let Some(first) = places.insert(variant.name, variant.location) {
                return Err(RegistryError::DuplicateVariant {
                    name: format!("{}/{}/{}", entry.path(), variant.name, entry.element),
                    first,
                    second: variant.location,
                });
            }
        }
        Ok(RegisteredKernel { entry, variants })
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
