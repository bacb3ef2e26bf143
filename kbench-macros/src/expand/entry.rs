//! The registry entry of a variant, and how it is called.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, Ident, ReturnType};

use super::{Expansion, at};
use crate::check::is_of_numbers;
use crate::model::{Access, Backend, Expectation, Role, Threshold};
use crate::parse::{Formula, Metric};

impl Expansion<'_> {
    /// Submits the entry.
    pub(super) fn entry(&self) -> TokenStream {
        let Expansion { registration, hidden, site, .. } = self;
        let kernel = self.of_kernel("ENTRY");
        let name = &self.instance.name;
        let (function, code) =
            (registration.function.ident.unraw().to_string(), &registration.function.code);
        let (backend, implementation) = self.implementation();
        let location = self.location();
        let expectations = registration.expectations.iter().map(|e| self.expectation(e));
        let ignore = self.option(registration.ignore.as_ref());
        let Overrides { is_base, threshold, valid, tolerance, flops, bytes } = self.overrides();
        let is_reentrant = registration.is_reentrant;
        let function_of = &registration.function;
        let has_fixed_outputs = function_of.data().all(|parameter| {
            parameter.access != Access::Write
                || is_of_numbers(&parameter.kind, &function_of.generics, &self.instance.arguments)
        });
        quote_spanned! {*site=>
            #hidden::inventory::submit! {
                #hidden::VariantEntry {
                    kernel: #kernel,
                    name: #name,
                    is_base: #is_base,
                    module: ::core::module_path!(),
                    function: #function,
                    code: #code,
                    location: #location,
                    backend: #hidden::Backend::#backend,
                    threshold: #threshold,
                    valid: #valid,
                    expectations: const { &[#(#expectations),*] },
                    ignore: #ignore,
                    tolerance: #tolerance,
                    flops: #flops,
                    bytes: #bytes,
                    debug_assertions: ::core::cfg!(debug_assertions),
                    has_fixed_outputs: #has_fixed_outputs,
                    is_reentrant: #is_reentrant,
                    implementation: #implementation,
                }
            }
        }
    }

    /// What a variant has of its own; for the base it is part of the kernel.
    fn overrides(&self) -> Overrides {
        let registration = self.registration;
        let none = || self.option(None::<TokenStream>);
        let Role::Variant(variant) = &registration.role else {
            return Overrides {
                is_base: true,
                threshold: none(),
                valid: none(),
                tolerance: none(),
                flops: none(),
                bytes: none(),
            };
        };
        Overrides {
            is_base: false,
            threshold: self
                .option(variant.threshold.as_ref().map(|threshold| self.threshold(threshold))),
            valid: self.option(variant.valid.as_ref().map(|valid| self.condition(valid))),
            tolerance: self.tolerance(),
            flops: self.own_figure(registration.flops.as_ref()),
            bytes: self.own_figure(registration.bytes.as_ref()),
        }
    }

    fn own_figure(&self, formula: Option<&Formula>) -> TokenStream {
        self.option(formula.map(|formula| self.of_size(&self.figure(formula, &[]))))
    }

    /// The tolerance, if the attribute has one.
    pub(super) fn tolerance(&self) -> TokenStream {
        let checked = self.registration.tolerance.as_ref().map(|tolerance| {
            quote_spanned! {self.site=> const {
                let tolerance: ::core::primitive::f64 = #tolerance;
                ::core::assert!(tolerance >= 0.0, "a tolerance is a number from 0 on");
                tolerance
            }}
        });
        self.option(checked)
    }

    /// Where the attribute stands.
    pub(super) fn location(&self) -> TokenStream {
        let hidden = &self.hidden;
        quote_spanned!(self.site=> #hidden::Location {
            file: ::core::file!(),
            line: ::core::line!(),
            column: ::core::column!(),
        })
    }

    /// `Some(value)` or `None`.
    pub(super) fn option(&self, value: Option<impl quote::ToTokens>) -> TokenStream {
        match value {
            Some(value) => quote_spanned!(self.site=> ::core::option::Option::Some(#value)),
            None => quote_spanned!(self.site=> ::core::option::Option::None),
        }
    }

    fn threshold(&self, threshold: &Threshold) -> TokenStream {
        let hidden = &self.hidden;
        match threshold {
            Threshold::Work(work) => {
                let work = self.constant(work);
                quote_spanned!(self.site=> #hidden::Threshold::Work(#work as ::core::primitive::u64))
            }
            Threshold::When(condition) => {
                let condition = self.condition(condition);
                quote_spanned!(self.site=> #hidden::Threshold::When(#condition))
            }
            Threshold::Tuned { default, tuning } => self.tuned(default, tuning),
        }
    }

    /// An expression of the user as a constant of type `usize`.
    pub(super) fn constant(&self, expression: &Expr) -> TokenStream {
        quote_spanned!(self.site=> const { let value: ::core::primitive::usize = #expression; value })
    }

    fn expectation(&self, expectation: &Expectation) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        let Expectation { text, option, at } = expectation;
        let metric = match option.metric {
            Metric::Speedup => quote_spanned!(*site=> Speedup),
            Metric::Best => quote_spanned!(*site=> Best),
            Metric::Ceiling => quote_spanned!(*site=> Ceiling),
            Metric::Time => quote_spanned!(*site=> Time),
        };
        let bound = match option.is_lower_bound {
            true => quote_spanned!(*site=> AtLeast),
            false => quote_spanned!(*site=> AtMost),
        };
        let value = option.value;
        let at = self.option(at.as_ref().map(|at| self.condition(at)));
        quote_spanned!(*site=> #hidden::Expectation {
            text: #text,
            metric: #hidden::Metric::#metric,
            bound: #hidden::Bound::#bound,
            value: #value,
            at: #at,
        })
    }

    /// The backend, and what calls the function there.
    fn implementation(&self) -> (TokenStream, TokenStream) {
        let Expansion { hidden, site, .. } = self;
        let (backend, routine) = match self.registration.backend {
            Backend::Serial => (quote_spanned!(*site=> Serial), self.routine("serial")),
            Backend::Parallel => (quote_spanned!(*site=> Parallel), self.routine("parallel")),
            Backend::Cuda => {
                let routine = self.where_supported(self.device_routine());
                let device = quote_spanned!(*site=> #hidden::Implementation::Device(|| #routine));
                return (quote_spanned!(*site=> Cuda), device);
            }
        };
        let routine = self.where_supported(routine);
        (backend, quote_spanned!(*site=> #hidden::Implementation::Host(|| #routine)))
    }

    /// The routine, or one that declines where the processor lacks a feature that the function is compiled for. It is asked for
    /// once, and not by every call. A feature that nothing tells of at run time is there where all code is compiled for it.
    fn where_supported(&self, routine: TokenStream) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        let features = &self.registration.function.features;
        if features.is_empty() {
            return routine;
        }
        let checks = features.iter().map(|feature| {
            let (name, conditions) = (&feature.name, &feature.conditions);
            let declined = quote_spanned!(*site=> return #hidden::Implementation::lacking(#name));
            let checked = quote_spanned! {*site=> {
                #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                {
                    if !::std::arch::is_x86_feature_detected!(#name) { #declined }
                }
                #[cfg(any(target_arch = "aarch64", target_arch = "arm64ec"))]
                {
                    if !::std::arch::is_aarch64_feature_detected!(#name) { #declined }
                }
                #[cfg(not(any(
                    target_arch = "x86",
                    target_arch = "x86_64",
                    target_arch = "aarch64",
                    target_arch = "arm64ec",
                )))]
                {
                    if !::core::cfg!(target_feature = #name) { #declined }
                }
            }};
            quote_spanned!(*site=> #(#[cfg(#conditions)])* #checked)
        });
        quote_spanned!(*site=> { #(#checks)* #routine })
    }

    /// The call as a routine of the runtime, monomorphic down to the function.
    fn routine(&self, constructor: &str) -> TokenStream {
        // The return type's span: it is what the constructor's bounds are about.
        let span = match &self.registration.function.output {
            ReturnType::Default => self.kernel.span(),
            ReturnType::Type(_, output) => at(output.span()),
        };
        let (hidden, kernel) = (self.hidden_at(span), &self.kernel);
        let constructor = Ident::new(constructor, span);
        let arguments = self.of_kernel("arguments");
        let arguments = self.bind(quote_spanned!(span=> #arguments(reads, writes)));
        let call = self.call();
        quote_spanned! {span=>
            #hidden::#constructor::<#kernel, _, _>(|reads, writes| {
                #arguments
                #call
            })
        }
    }

    /// The call as a routine of the runtime, with what the kernel's data becomes on a device.
    fn device_routine(&self) -> TokenStream {
        let Expansion { hidden, kernel, site, .. } = self;
        let arguments = self.of_kernel("Arguments");
        let (bindings, call) = (self.bind(quote_spanned!(*site=> arguments)), self.call());
        // The type is spelled out: the compiler does not find one for all lifetimes by itself.
        quote_spanned! {*site=> {
            const CALL: for<'lent> fn(
                &'lent #hidden::Gpu,
                <#arguments<'lent> as #hidden::DeviceArguments<'lent>>::Device,
            ) -> #hidden::Box<dyn #hidden::Operand> = |gpu, arguments| {
                let _ = gpu;
                #bindings
                let output = #call;
                #hidden::Box::new(output)
            };
            #hidden::device::<#kernel>(CALL)
        }}
    }
}

/// Fields of the entry in which a variant differs from the base.
struct Overrides {
    is_base: bool,
    threshold: TokenStream,
    valid: TokenStream,
    tolerance: TokenStream,
    flops: TokenStream,
    bytes: TokenStream,
}
