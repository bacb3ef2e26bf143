//! The marker type of a kernel and its implementation of `Kernel`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, Type};

use super::owned::{is_view, owned};
use super::{Expansion, at, ours};
use crate::check::{referent, text};
use crate::model::{Access, Function, Gives, InPlace, Inputs, Kernel, Parameter, Sizes};
use crate::parse::{Regimes, Values};

/// A braced struct, usually of the function's name: it lives in the type namespace alone, and a `use` of the function brings
/// both.
pub(super) fn marker(name: &Ident, function: &Function) -> TokenStream {
    let site = Span::mixed_site();
    let conditions = &function.conditions;
    let visibility = ours(&function.visibility);
    let name = ours(name);
    let parameters = function.generics.iter().map(|generic| {
        let name = ours(&generic.ident);
        match &generic.constant {
            Some(kind) => quote_spanned!(site=> const #name: #kind),
            None => quote_spanned!(site=> #name),
        }
    });
    let types = function.generics.iter().filter(|g| g.constant.is_none()).map(|g| ours(&g.ident));
    quote_spanned! {site=>
        #(#conditions)*
        #[doc(hidden)]
        #visibility struct #name<#(#parameters),*> {
            marker: ::core::marker::PhantomData<(#(fn() -> #types,)*)>,
        }
    }
}

/// A parameter with its place in the data.
struct Operand<'a> {
    local: Ident,
    parameter: &'a Parameter,
    owned: Type,
    /// Position among the values that are read, or among those that are written.
    place: Index,
}

impl Operand<'_> {
    fn is_written(&self) -> bool {
        self.parameter.access == Access::Write
    }
}

impl<'a> Expansion<'a> {
    fn operands(&self) -> Vec<Operand<'a>> {
        let (mut reads, mut writes) = (0, 0);
        let operand = |(local, parameter): (Ident, &'a Parameter)| {
            let counter = if parameter.access == Access::Write { &mut writes } else { &mut reads };
            let place = Index { index: *counter, span: self.site };
            *counter += 1;
            let owned = owned(parameter, self.registration.backend, &self.hidden);
            Operand { local, parameter, owned, place }
        };
        self.arguments().map(operand).collect()
    }

    /// The implementation of `Kernel`.
    pub(super) fn kernel(&self, model: &Kernel) -> TokenStream {
        let Expansion { hidden, kernel, site, .. } = self;
        let operands = self.operands();
        let axes = &model.axes;
        let indices = (0..axes.len()).map(Index::from);
        let types = self.types(&operands);
        let entry = self.kernel_entry(model);
        let inputs = self.inputs(model, &operands);
        let arguments = self.lent_arguments(&operands);
        let restore = self.restored_outputs(&operands);
        let reference = self.reference(model, &operands);
        let figures = self.figures(model);
        quote_spanned! {*site=>
            pub struct __Axes {
                #(pub #axes: ::core::primitive::usize,)*
            }
            impl #hidden::Kernel for #kernel {
                type Axes = __Axes;
                #types
                #entry
                fn axes(size: &[::core::primitive::usize]) -> __Axes {
                    __Axes { #(#axes: size[#indices],)* }
                }
                #inputs
                #arguments
                #restore
                #reference
                #figures
            }
        }
    }

    /// What is read, what is written, and how both are lent in the order of the parameters.
    fn types(&self, operands: &[Operand<'_>]) -> TokenStream {
        let reads =
            operands.iter().filter(|operand| !operand.is_written()).map(|operand| &operand.owned);
        let writes =
            operands.iter().filter(|operand| operand.is_written()).map(|operand| &operand.owned);
        let arguments =
            operands.iter().map(|Operand { owned, parameter, .. }| match parameter.access {
                Access::Write => quote_spanned!(self.site=> &'lent mut #owned),
                Access::Read | Access::Device => quote_spanned!(self.site=> &'lent #owned),
            });
        // The parentheses have the span of the function's: that is where a type stands that cannot be an operand.
        let span = at(self.registration.function.list);
        let (reads, writes) =
            (quote_spanned!(span=> (#(#reads,)*)), quote_spanned!(span=> (#(#writes,)*)));
        quote_spanned! {self.site=>
            type Reads = #reads;
            type Writes = #writes;
            type Arguments<'lent> = (#(#arguments,)*);
        }
    }

    fn kernel_entry(&self, model: &Kernel) -> TokenStream {
        let Expansion { registration, hidden, instance, index, site, .. } = self;
        let (name, element) = (&registration.name, &instance.element);
        let axes = model.axes.iter().map(|axis| syn::ext::IdentExt::unraw(axis).to_string());
        let outputs = outputs(&registration.function);
        let parameters = registration.function.data().map(|parameter| &parameter.name);
        let in_place = match model.in_place {
            InPlace::No => quote_spanned!(*site=> No),
            InPlace::Fresh => quote_spanned!(*site=> Fresh),
            InPlace::Reuse => quote_spanned!(*site=> Reuse),
        };
        let reference =
            model.reference.as_ref().map(|path| text(path.to_token_stream()).replace(' ', ""));
        let reference = self.option(reference);
        let regimes = model.regimes.as_ref().map(|Regimes { names, reason }| {
            quote_spanned!(*site=> #hidden::Regimes { names: &[#(#names),*], reason: #reason })
        });
        let regimes = self.option(regimes);
        let (location, sizes, tolerance) =
            (self.location(), self.sizes(&model.sizes), self.tolerance());
        quote_spanned! {*site=>
            const ENTRY: &'static #hidden::KernelEntry = &#hidden::KernelEntry {
                name: #name,
                element: #element,
                element_index: #index,
                module: ::core::module_path!(),
                location: #location,
                axes: &[#(#axes),*],
                sizes: #sizes,
                parameters: &[#(#parameters),*],
                outputs: &[#(#outputs),*],
                in_place: #hidden::InPlace::#in_place,
                tolerance: #tolerance,
                reference: #reference,
                regimes: #regimes,
                definition: &#hidden::Erased::<Self>::NEW,
            };
        }
    }

    fn sizes(&self, sizes: &Sizes) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        match sizes {
            Sizes::Grid(axes) => {
                let axes = axes.iter().map(|values| self.values(values));
                quote_spanned!(*site=> #hidden::Sizes::Grid(const { &[#(#axes),*] }))
            }
            Sizes::Labelled(shapes) => {
                let shapes = shapes
                    .iter()
                    .map(|(label, values)| quote_spanned!(*site=> (#label, &[#(#values),*])));
                quote_spanned!(*site=> #hidden::Sizes::Labelled(const { &[#(#shapes),*] }))
            }
        }
    }

    fn values(&self, values: &Values) -> TokenStream {
        let Expansion { hidden, site, .. } = self;
        let (from, to) = match values {
            Values::List(values) => {
                return quote_spanned!(*site=> #hidden::Values::List(const { &[#(#values),*] }));
            }
            Values::PowersOfTwo { from, limits: syn::RangeLimits::Closed(_), to } => {
                (from, quote_spanned!(*site=> #to))
            }
            Values::PowersOfTwo { from, to, .. } => (from, quote_spanned!(*site=> (#to) - 1)),
        };
        quote_spanned!(*site=> #hidden::Values::PowersOfTwo { from: #from, to: #to })
    }

    /// Fresh data, sorted into what is read and what is written.
    fn inputs(&self, model: &Kernel, operands: &[Operand<'_>]) -> TokenStream {
        let owned: Vec<_> = operands.iter().map(|operand| &operand.owned).collect();
        let locals: Vec<_> = operands.iter().map(|operand| &operand.local).collect();
        let value = self.input_values(model, &owned);
        let reads =
            operands.iter().filter(|operand| !operand.is_written()).map(|operand| &operand.local);
        let writes =
            operands.iter().filter(|operand| operand.is_written()).map(|operand| &operand.local);
        quote_spanned! {self.site=>
            fn inputs(axes: &__Axes) -> (Self::Reads, Self::Writes) {
                let _ = axes;
                let (#(#locals,)*): (#(#owned,)*) = #value;
                ((#(#reads,)*), (#(#writes,)*))
            }
        }
    }

    /// A tuple with one value for every parameter.
    fn input_values(&self, model: &Kernel, owned: &[&Type]) -> TokenStream {
        let axes = &model.axes;
        let (value, gives) = match &model.inputs {
            Inputs::Default => {
                let axis = axes.first();
                let values = self.arguments().map(|(_, parameter)| {
                    let span = at(parameter.kind.span());
                    let hidden = self.hidden_at(span);
                    quote_spanned!(span=> #hidden::default_input(axes.#axis))
                });
                return quote_spanned!(self.site=> (#(#values,)*));
            }
            Inputs::Closure { closure, gives } => {
                let output = match gives {
                    Gives::Tuple => quote_spanned!(self.site=> (#(#owned,)*)),
                    Gives::Value => quote_spanned!(self.site=> #(#owned)*),
                };
                (self.closure(closure, Some(output)), gives)
            }
            Inputs::Function { path, gives } => {
                (quote_spanned!(self.site=> #path(#(axes.#axes),*)), gives)
            }
        };
        match gives {
            Gives::Tuple => value,
            Gives::Value => quote_spanned!(self.site=> (#value,)),
        }
    }

    fn lent_arguments(&self, operands: &[Operand<'_>]) -> TokenStream {
        let borrows =
            operands.iter().map(|Operand { place, parameter, .. }| match parameter.access {
                Access::Write => quote_spanned!(self.site=> &mut writes.#place),
                Access::Read | Access::Device => quote_spanned!(self.site=> &reads.#place),
            });
        quote_spanned! {self.site=>
            fn arguments<'lent>(
                reads: &'lent Self::Reads,
                writes: &'lent mut Self::Writes,
            ) -> Self::Arguments<'lent> {
                let _ = (&reads, &writes);
                let arguments: Self::Arguments<'lent> = (#(#borrows,)*);
                arguments
            }
        }
    }

    /// Restores the outputs one by one: a tuple would be replaced as a whole, and its buffers with it.
    fn restored_outputs(&self, operands: &[Operand<'_>]) -> TokenStream {
        let places: Vec<_> = operands
            .iter()
            .filter(|operand| operand.is_written())
            .map(|operand| &operand.place)
            .collect();
        quote_spanned! {self.site=>
            fn restore(writes: &mut Self::Writes, initial: &Self::Writes) {
                let _ = (&writes, &initial);
                #(::core::clone::Clone::clone_from(&mut writes.#places, &initial.#places);)*
            }
        }
    }

    /// The reference on copies of the data, each argument as wide as the reference wants it.
    fn reference(&self, model: &Kernel, operands: &[Operand<'_>]) -> Option<TokenStream> {
        let (path, hidden) = (model.reference.as_ref()?, &self.hidden);
        let locals: Vec<_> = operands.iter().map(|operand| &operand.local).collect();
        let copies = operands.iter().map(|operand| {
            let place = &operand.place;
            match operand.is_written() {
                true => quote_spanned!(self.site=> #hidden::Oracle::new(&writes.#place)),
                false => quote_spanned!(self.site=> #hidden::Oracle::new(&reads.#place)),
            }
        });
        let span = at(path.span());
        let located = self.hidden_at(span);
        let lent = operands.iter().map(|Operand { local, parameter, place, .. }| {
            let mut local = local.clone();
            local.set_span(span);
            // A view is lent by its owner, who has no wider twin.
            match referent(&parameter.kind).is_none() && is_view(&parameter.kind) {
                true => quote_spanned!(span=> #located::Lend::lend(&reads.#place)),
                false => quote_spanned!(span=> #located::OracleArgument::lend(&mut #local)),
            }
        });
        let outputs: Vec<_> = operands
            .iter()
            .filter(|operand| operand.is_written())
            .map(|operand| &operand.local)
            .collect();
        Some(quote_spanned! {self.site=>
            fn reference(
                reads: &Self::Reads,
                writes: &Self::Writes,
            ) -> ::core::option::Option<#hidden::Outputs> {
                let _ = (reads, writes);
                #(let mut #locals = #copies;)*
                let returned = #path(#(#lent),*);
                let mut parts = #hidden::Vec::new();
                #(#outputs.elements(&mut parts);)*
                #hidden::Operand::elements(&returned, &mut parts);
                let mut rests = #hidden::Vec::new();
                #(#outputs.rests(&mut rests);)*
                #hidden::Operand::rests(&returned, &mut rests);
                let mut fields = #hidden::Vec::new();
                #hidden::Operand::fields(&returned, &mut fields);
                let failure = #hidden::Operand::failure(&returned);
                ::core::option::Option::Some(#hidden::Outputs { parts, rests, fields, failure })
            }
        })
    }

    /// The figures of a size that the attribute defines.
    fn figures(&self, model: &Kernel) -> TokenStream {
        let registration = self.registration;
        let formulas =
            [("work", &model.work), ("flops", &registration.flops), ("bytes", &registration.bytes)];
        let figures = formulas.into_iter().filter_map(|(name, formula)| {
            let name = format_ident!("{name}", span = self.site);
            let figure = self.figure(formula.as_ref()?, &model.axes);
            Some(quote_spanned! {self.site=>
                fn #name(axes: &__Axes) -> ::core::option::Option<::core::primitive::f64> {
                    let _ = axes;
                    ::core::option::Option::Some(#figure)
                }
            })
        });
        let valid = model.valid.as_ref().map(|valid| {
            let holds = self.holds(valid);
            quote_spanned! {self.site=>
                fn valid(axes: &__Axes) -> ::core::primitive::bool {
                    let _ = axes;
                    #holds
                }
            }
        });
        quote_spanned!(self.site=> #(#figures)* #valid)
    }
}

/// Names of the outputs, as reports show them.
fn outputs(function: &Function) -> Vec<&str> {
    let written = function.data().filter(|parameter| parameter.access == Access::Write);
    let mut names: Vec<_> = written.map(|parameter| parameter.name.as_str()).collect();
    if function.has_result {
        names.push("return value");
    }
    names
}
