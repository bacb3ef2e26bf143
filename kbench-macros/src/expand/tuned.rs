//! Thresholds that the tuning file may set.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Expr;

use super::Expansion;
use crate::model::{Role, Threshold};
use crate::tuning::{Finding, MACHINE, Tuning};

impl Expansion<'_> {
    /// A `Threshold` of the runtime, which says what holds and why.
    pub(super) fn tuned(&self, default: &Expr, tuning: &Tuning) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        let default = self.constant(default);
        let default = quote_spanned!(*site=> #default as ::core::primitive::u64);
        let work = match tuning.value() {
            Some(value) => quote_spanned!(*site=> #value),
            None => default.clone(),
        };
        let source = self.source(&tuning.finding);
        let (folder, file) = (&tuning.folder, self.option(tuning.file.as_ref()));
        quote_spanned!(*site=> #hidden::Threshold::Tuned(#hidden::Tuned {
            work: #work,
            default: #default,
            source: #source,
            folder: #folder,
            file: #file,
        }))
    }

    fn source(&self, finding: &Finding) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        let source = match finding {
            Finding::NoFile => quote_spanned!(*site=> NoFile),
            Finding::NoEntry => quote_spanned!(*site=> NoEntry),
            Finding::Foreign { machine } => quote_spanned!(*site=> Foreign { machine: #machine }),
            Finding::Measured(measured) if measured.is_stale => {
                let on = &measured.on;
                quote_spanned!(*site=> Stale { on: #on })
            }
            Finding::Measured(measured) => {
                let (on, low, high) = (&measured.on, measured.low, measured.high);
                quote_spanned!(*site=> Measured { on: #on, low: #low, high: #high })
            }
        };
        quote_spanned!(*site=> #hidden::TuningSource::#source)
    }

    /// What lets the compiler know what a tuned threshold depends on: a file, and a variable of the environment.
    pub(super) fn tracked(&self) -> Option<TokenStream> {
        let Role::Variant(variant) = &self.registration.role else { return None };
        let Some(Threshold::Tuned { tuning, .. }) = &variant.threshold else { return None };
        let file = tuning.tracked().map(|file| {
            quote_spanned!(self.site=>
                const _: &[::core::primitive::u8] = ::core::include_bytes!(#file);
            )
        });
        Some(quote_spanned! {self.site=>
            const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#MACHINE);
            #file
        })
    }
}
