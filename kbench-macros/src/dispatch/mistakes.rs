//! What is wrong with a dispatching function, and where.

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

use super::tokens::respanned;

/// The mistakes found so far.
#[derive(Default)]
pub(super) struct Mistakes(Vec<Mistake>);

struct Mistake {
    first: Span,
    last: Span,
    text: String,
}

impl Mistakes {
    /// Adds a mistake at a place.
    pub(super) fn at(&mut self, span: Span, text: impl Into<String>) {
        self.0.push(Mistake { first: span, last: span, text: text.into() });
    }

    /// Adds a mistake at some tokens, or at another place when there are none.
    pub(super) fn at_tokens(&mut self, tokens: &[TokenTree], or: Span, text: impl Into<String>) {
        let first = tokens.first().map_or(or, TokenTree::span);
        let last = tokens.last().map_or(or, TokenTree::span);
        self.0.push(Mistake { first, last, text: text.into() });
    }

    /// Whether there are none yet.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Errors of the compiler, as items or statements.
    pub(super) fn into_errors(self) -> TokenStream {
        self.0.into_iter().map(Mistake::into_error).collect()
    }
}

impl Mistake {
    /// `::core::compile_error! { "text" }`, which the compiler shows from the first token to the last.
    fn into_error(self) -> TokenStream {
        let text = TokenTree::from(Literal::string(&self.text));
        let mut group = Group::new(Delimiter::Brace, text.into());
        group.set_span(self.last);
        let mut error = respanned("::core::compile_error!", self.first);
        error.extend([TokenTree::from(group)]);
        error
    }
}
