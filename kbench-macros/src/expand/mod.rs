//! From the checked model to tokens.
//!
//! A kernel becomes a marker type of the function's name, which implements `Kernel`; kernels and variants alike become
//! entries of the registry. Three rules keep the expansion out of the user's way. Every path is absolute, through the
//! hidden module of the runtime. Items sit in an anonymous constant, and the few that need a name have one that nobody
//! writes by hand. Tokens have the span of the macro, so that local variables cannot capture the user's and lints stay
//! silent without `allow` attributes (which would be errors under `forbid`); only where the compiler shall point at the
//! user's code do they have its span.

mod entry;
mod figures;
mod kernel;
mod owned;
mod tuned;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Path};

use crate::model::{Access, Backend, Instance, Parameter, Registration, Role};

/// The registration of a function.
pub(crate) fn expand(registration: &Registration) -> TokenStream {
    let marker = match &registration.role {
        Role::Kernel(model) => kernel::marker(&model.marker, &registration.function),
        Role::Variant(_) => TokenStream::new(),
    };
    let instances = registration
        .instances
        .iter()
        .enumerate()
        .map(|(index, instance)| Expansion::new(registration, instance, index).scope());
    quote!(#marker #(#instances)*)
}

/// The expansion of one instance.
struct Expansion<'a> {
    registration: &'a Registration,
    instance: &'a Instance,
    /// Position of the instance in `types`.
    index: usize,
    /// The hidden module of the runtime.
    hidden: Path,
    /// The marker type of the kernel, by a name that is declared once: a path that does not resolve is then one error.
    kernel: Ident,
    /// The span of what is ours.
    site: Span,
}

impl<'a> Expansion<'a> {
    fn new(registration: &'a Registration, instance: &'a Instance, index: usize) -> Self {
        let site = Span::mixed_site();
        let mut hidden = registration.krate.clone();
        hidden.segments.push(Ident::new("__private", site).into());
        let kernel = Ident::new("__Kernel", at(instance.kernel.span()));
        Expansion { registration, instance, index, hidden, kernel, site }
    }

    /// Everything about this instance, in a scope of its own.
    fn scope(&self) -> TokenStream {
        let Expansion { kernel, site, .. } = self;
        let conditions = &self.registration.function.conditions;
        let path = &self.instance.kernel;
        let aliases = self.aliases();
        let items = match &self.registration.role {
            Role::Kernel(model) => self.kernel(model),
            Role::Variant(_) => TokenStream::new(),
        };
        let entry = self.entry();
        let tracked = self.tracked();
        quote_spanned! {*site=>
            #(#conditions)*
            const _: () = {
                #tracked
                #(#aliases)*
                type #kernel = #path;
                #items
                #entry
            };
        }
    }

    /// Binds the local variables of all parameters to the elements of a tuple, which must have as many.
    fn bind(&self, arguments: TokenStream) -> TokenStream {
        let locals: Vec<Ident> = self.arguments().map(|(local, _)| local).collect();
        let (count, span) = (locals.len(), at(self.registration.function.list));
        let hidden = self.hidden_at(span);
        // Bound first: the number is then wrong at one place only, the list of parameters.
        quote_spanned!(span=>
            let arguments = #arguments;
            let (#(#locals,)*) = #hidden::Parameters::<#count>::same(arguments);
        )
    }

    /// An associated item of the kernel, at the path that names it.
    fn of_kernel(&self, item: &str) -> TokenStream {
        let span = self.kernel.span();
        let (kernel, hidden, item) = (&self.kernel, self.hidden_at(span), Ident::new(item, span));
        quote_spanned!(span=> <#kernel as #hidden::Kernel>::#item)
    }

    /// The hidden module, for a path that the compiler shall show at a place in the user's code.
    fn hidden_at(&self, span: Span) -> TokenStream {
        located(&self.hidden, span)
    }

    /// The generic parameters by their names, so that types and expressions that mention them mean this instance.
    fn aliases(&self) -> impl Iterator<Item = TokenStream> {
        let generics = self.registration.function.generics.iter();
        generics.zip(&self.instance.arguments).map(|(generic, argument)| {
            let name = ours(&generic.ident);
            match &generic.constant {
                Some(kind) => quote_spanned!(self.site=> const #name: #kind = #argument;),
                None => quote_spanned!(self.site=> type #name = #argument;),
            }
        })
    }

    /// Parameters that carry data, with the name of the local variable for each.
    fn arguments(&self) -> impl Iterator<Item = (Ident, &'a Parameter)> + Clone {
        let data = self.registration.function.data().enumerate();
        data.map(move |(i, parameter)| {
            (format_ident!("argument_{i}", span = at(parameter.kind.span())), parameter)
        })
    }

    /// A call of the function, every argument lent from its local variable. The device, if asked for, is `gpu`.
    fn call(&self) -> TokenStream {
        let function = &self.registration.function;
        let (name, generics) = (&function.ident, &self.instance.arguments);
        let mut locals = self.arguments().map(|(local, _)| local);
        let gpu = Ident::new("gpu", self.site);
        let arguments = function.parameters.iter().map(|parameter| {
            // The parameter's span: when it does not fit what is lent, that is where the mistake is.
            let local = match parameter.access {
                Access::Device => return quote!(#gpu),
                Access::Read | Access::Write => locals.next(),
            };
            let span = at(parameter.kind.span());
            let hidden = self.hidden_at(span);
            let lent = quote_spanned!(span=> #hidden::Lend::lend(#local));
            match self.registration.backend {
                // Opaque to the compiler: a timed loop would otherwise see the same call again and again, and make it once.
                Backend::Serial | Backend::Parallel => {
                    quote_spanned!(span=> ::core::hint::black_box(#lent))
                }
                Backend::Cuda => lent,
            }
        });
        let call = match generics.is_empty() {
            true => quote_spanned!(self.site=> #name(#(#arguments),*)),
            false => quote_spanned!(self.site=> #name::<#(#generics),*>(#(#arguments),*)),
        };
        match function.is_unsafe || !function.features.is_empty() {
            // SAFETY: `where_supported` has asked for the features. Who makes a kernel of an unsafe function promises that it
            // may be called with whatever the documentation of the attribute names.
            true => quote_spanned!(self.site=> unsafe { #call }),
            false => call,
        }
    }
}

/// A span that points at the user's code but belongs to the macro.
fn at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// A path that the compiler shall show at a place in the user's code.
pub(crate) fn located(path: impl ToTokens, span: Span) -> TokenStream {
    let located = |mut tree: TokenTree| {
        // Its own hygiene stays: that is what `$crate` lives on.
        tree.set_span(tree.span().located_at(span));
        tree
    };
    path.to_token_stream().into_iter().map(located).collect()
}

/// Tokens of the user's function in an item of ours: lints about them are for the original.
fn ours(tokens: impl ToTokens) -> TokenStream {
    let ours = |mut tree: TokenTree| {
        if let TokenTree::Group(group) = &tree {
            tree = Group::new(group.delimiter(), ours(group.stream())).into();
        }
        tree.set_span(at(tree.span()));
        tree
    };
    tokens.into_token_stream().into_iter().map(ours).collect()
}
