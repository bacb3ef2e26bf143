//! Little helpers for tokens.

use proc_macro::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

/// Tokens of the macro. Their span belongs to it, so that local variables cannot capture the user's.
pub(super) fn ours(text: &str) -> TokenStream {
    respanned(text, Span::mixed_site())
}

/// Tokens of the macro that the compiler shall show at the user's.
pub(super) fn ours_at(text: &str, tokens: &TokenStream) -> TokenStream {
    let first = tokens.clone().into_iter().next();
    let span = first.map_or(Span::call_site(), |first| first.span());
    respanned(text, Span::mixed_site().located_at(span))
}

/// The tokens of a text, all with the same span.
pub(super) fn respanned(text: &str, span: Span) -> TokenStream {
    fn set(stream: TokenStream, span: Span) -> TokenStream {
        let respanned = |mut tree: TokenTree| {
            if let TokenTree::Group(group) = &tree {
                tree = Group::new(group.delimiter(), set(group.stream(), span)).into();
            }
            tree.set_span(span);
            tree
        };
        stream.into_iter().map(respanned).collect()
    }
    set(text.parse().expect("the macro's own text is made of tokens"), span)
}

/// Tokens in brackets of the macro.
pub(super) fn grouped(delimiter: Delimiter, stream: TokenStream) -> TokenStream {
    let mut group = Group::new(delimiter, stream);
    group.set_span(Span::mixed_site());
    TokenTree::from(group).into()
}

/// The tokens without the invisible brackets that a `macro_rules!` fragment has around it.
pub(super) fn ungrouped(stream: TokenStream) -> Vec<TokenTree> {
    stream
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                ungrouped(group.stream())
            }
            other => vec![other],
        })
        .collect()
}

pub(super) fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident.to_string() == word)
}

pub(super) fn is_mark(tree: &TokenTree, mark: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Whether two marks without a blank between them stand here, such as `=>`.
pub(super) fn is_double_mark(trees: &[TokenTree], marks: [char; 2]) -> bool {
    match trees {
        [TokenTree::Punct(first), second, ..] => {
            first.as_char() == marks[0]
                && first.spacing() == Spacing::Joint
                && is_mark(second, marks[1])
        }
        _ => false,
    }
}

/// The group, when a token is one with this kind of brackets.
pub(super) fn as_group(tree: &TokenTree, delimiter: Delimiter) -> Option<&Group> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

/// Where a `<` opens a bracket.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Angles {
    /// In types and paths: everywhere.
    Everywhere,
    /// In expressions, where it may also compare or shift: after `::`.
    AfterColons,
}

/// The position of the first token that is looked for and not between angle brackets.
pub(super) fn position(
    trees: &[TokenTree],
    angles: Angles,
    is_wanted: impl Fn(&TokenTree) -> bool,
) -> Option<usize> {
    let mut depth = 0usize;
    let mut previous = None;
    for (index, tree) in trees.iter().enumerate() {
        if depth == 0 && is_wanted(tree) {
            return Some(index);
        }
        let follows = |mark| previous.is_some_and(|previous| is_mark(previous, mark));
        let may_open = angles == Angles::Everywhere || depth > 0 || follows(':');
        if is_mark(tree, '<') && may_open {
            depth += 1;
        } else if is_mark(tree, '>') && !follows('-') {
            depth = depth.saturating_sub(1);
        }
        previous = Some(tree);
    }
    None
}

/// The pieces between commas that are not between angle brackets. A comma at the end begins no other piece.
pub(super) fn split_at_commas(mut trees: &[TokenTree], angles: Angles) -> Vec<&[TokenTree]> {
    let mut pieces = Vec::new();
    while !trees.is_empty() {
        let end = position(trees, angles, |tree| is_mark(tree, ',')).unwrap_or(trees.len());
        pieces.push(&trees[..end]);
        trees = trees.get(end + 1..).unwrap_or_default();
    }
    pieces
}
