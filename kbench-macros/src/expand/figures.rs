//! Closures and conditions over the axes.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::{Expansion, at};
use crate::model::Condition;
use crate::parse::{Closure, Formula};

impl Expansion<'_> {
    /// The value of a formula as `f64`, where `axes` is in scope.
    pub(super) fn figure(&self, formula: &Formula, axes: &[Ident]) -> TokenStream {
        let (span, value) = match formula {
            Formula::Closure(closure) => (at(closure.body.span()), self.closure(closure, None)),
            Formula::Function(path) => {
                let span = at(path.span());
                (span, quote_spanned!(span=> #path(#(axes.#axes),*)))
            }
        };
        let hidden = self.hidden_at(span);
        quote_spanned!(span=> #hidden::Figure::figure(#value))
    }

    /// The value of a closure, where `axes` is in scope. It stays a closure, so that a `return` in it means what it says,
    /// but its parameters become variables that are bound by name.
    pub(super) fn closure(&self, closure: &Closure, output: Option<TokenStream>) -> TokenStream {
        let body = &closure.body;
        let bindings = closure.parameters.iter().map(|parameter| {
            let (name, mutability) = (&parameter.name, &parameter.mutability);
            let kind = parameter.kind.as_ref().map(|kind| quote!(: #kind));
            quote_spanned!(self.site=> let #mutability #name #kind = axes.#name; let _ = #name;)
        });
        let output = closure.output.as_ref().map(|output| quote!(#output)).or(output);
        let arrow = output.map(|output| quote_spanned!(self.site=> -> #output));
        quote_spanned!(at(body.span())=> (|| #arrow { #(#bindings)* #body })())
    }

    /// A `Condition` of the runtime.
    pub(super) fn condition(&self, condition: &Condition) -> TokenStream {
        let hidden = &self.hidden;
        let (text, holds) = (&condition.text, self.holds(condition));
        let holds = self.of_size(&holds);
        quote_spanned!(self.site=> #hidden::Condition { text: #text, holds: #holds })
    }

    /// The value of a condition, where `axes` is in scope.
    pub(super) fn holds(&self, condition: &Condition) -> TokenStream {
        let (expression, mentions) = (&condition.expression, &condition.mentions);
        quote_spanned!(self.site=> {
            #(let #mentions = axes.#mentions; let _ = #mentions;)*
            #expression
        })
    }

    /// A function of the size, with the axes in scope as `axes`.
    pub(super) fn of_size(&self, value: &TokenStream) -> TokenStream {
        let axes = self.of_kernel("axes");
        quote_spanned!(self.site=> |size: &[::core::primitive::usize]| {
            let axes = #axes(size);
            let _ = &axes;
            #value
        })
    }
}
