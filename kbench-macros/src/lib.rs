//! The attribute of kbench.
use proc_macro::TokenStream;
/// Registers a kernel.
#[proc_macro_attribute]
pub fn kernel_bench(_arguments: TokenStream, item: TokenStream) -> TokenStream { item }
