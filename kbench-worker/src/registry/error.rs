use crate::kernel::Location;

/// Why the registrations do not make a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Nothing was registered, most often because the crate with the kernels was not linked.
    #[error(
        "no kernel is registered in this program\n\
         note: a crate that is only named in Cargo.toml is not linked; name it in this target's source as well:\n    \
         use my_kernels as _;\n\
         note: and annotate its kernels with #[kernel_bench(...)], with kbench's default feature `run` on"
    )]
    Empty,
    /// Two kernels with the same path and element type.
    #[error(
        "two kernels are called `{name}`\n  first:  {first}\n  second: {second}\n\
         note: give one of them another name: #[kernel_bench(name = \"...\")]"
    )]
    DuplicateKernel {
        /// `module::path::kernel`.
        name: String,
        /// Where one is.
        first: Location,
        /// Where the other is.
        second: Location,
    },
    /// Two variants of a kernel with the same name.
    #[error(
        "two variants are called `{name}`\n  first:  {first}\n  second: {second}\n\
         note: give one of them another name: #[kernel_bench(of = ..., name = \"...\")]"
    )]
    DuplicateVariant {
        /// `module::path::kernel/variant/type`.
        name: String,
        /// Where one is.
        first: Location,
        /// Where the other is.
        second: Location,
    },
}
