//! The body of a dispatching function: one `match` on the amount of work, with arms of three forms.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use super::mistakes::Mistakes;
use super::tokens::{
    Angles, as_group, is_double_mark, is_mark, is_word, position, split_at_commas, ungrouped,
};

/// Which function is called for which work.
pub(super) struct Choice {
    /// The amount of work.
    pub(super) work: TokenStream,
    /// From top to bottom.
    pub(super) arms: Vec<Arm>,
    /// Called for all other work.
    pub(super) otherwise: Function,
}

/// A function that is called from some amount of work on.
pub(super) struct Arm {
    pub(super) from: From,
    pub(super) function: Function,
}

/// The amount of work.
pub(super) enum From {
    /// A number.
    Fixed(TokenStream),
    /// What the tuning file says, or else the default.
    Tuned { keyword: Span, default: TokenStream },
}

pub(super) struct Function {
    pub(super) path: TokenStream,
    /// The last segment of the path.
    pub(super) name: String,
}

/// The left side of an arm.
enum Pattern {
    From(From),
    Otherwise,
}

impl Choice {
    pub(super) fn parse(body: &Group, mistakes: &mut Mistakes) -> Option<Self> {
        let tokens = ungrouped(body.stream());
        let parts = match &tokens[..] {
            [keyword, work @ .., arms] if is_word(keyword, "match") && !work.is_empty() => {
                as_group(arms, Delimiter::Brace).map(|arms| (work, arms))
            }
            _ => None,
        };
        let Some((work, block)) = parts else {
            let text = "the body of a dispatcher is one `match` on the amount of work, such as \
                        `match x.len() { tuned(1 << 16).. => saxpy_rayon, _ => saxpy }`";
            mistakes.at_tokens(&tokens, body.span(), text);
            return None;
        };
        let mut arms = Vec::new();
        let mut otherwise = None;
        let tokens: Vec<TokenTree> = block.stream().into_iter().collect();
        let mut rest = &tokens[..];
        while let Some(first) = rest.first() {
            if otherwise.is_some() {
                mistakes.at(first.span(), "no work is left for this arm: `_` is the last");
                return None;
            }
            let (pattern, function) = arm(&mut rest, mistakes)?;
            match (pattern, function) {
                (Some(Pattern::From(from)), Some(function)) => arms.push(Arm { from, function }),
                (Some(Pattern::Otherwise), Some(function)) => otherwise = Some(function),
                // A mistake in an arm does not hide those in the next.
                _ => {}
            }
        }
        if otherwise.is_none() && mistakes.is_empty() {
            let text = "the last arm must be `_ => function`, for all other amounts of work";
            mistakes.at(block.span_close(), text);
        }
        Some(Choice { work: work.iter().cloned().collect(), arms, otherwise: otherwise? })
    }
}

/// The next arm, each side for itself; nothing when it is too far from being one.
fn arm(
    rest: &mut &[TokenTree],
    mistakes: &mut Mistakes,
) -> Option<(Option<Pattern>, Option<Function>)> {
    let arrow = (0..rest.len()).find(|index| is_double_mark(&rest[*index..], ['=', '>']));
    let Some(arrow) = arrow else {
        mistakes.at_tokens(rest, Span::call_site(), EXPECTED_ARM);
        return None;
    };
    let (pattern, target) = (&rest[..arrow], &rest[arrow + 2..]);
    let end =
        position(target, Angles::Everywhere, |tree| is_mark(tree, ',')).unwrap_or(target.len());
    let arrow = rest[arrow].span();
    *rest = target.get(end + 1..).unwrap_or_default();
    Some((self::pattern(pattern, arrow, mistakes), function(&target[..end], arrow, mistakes)))
}

const EXPECTED_ARM: &str = "expected an arm: `tuned(default).. => function`, `number.. => function` or, as the last, \
                            `_ => function`";

fn pattern(tokens: &[TokenTree], arrow: Span, mistakes: &mut Mistakes) -> Option<Pattern> {
    let from = match tokens {
        [only] if is_word(only, "_") => return Some(Pattern::Otherwise),
        [first, ..] if is_mark(first, '#') => None,
        [from @ .., _, _] if is_double_mark(&tokens[from.len()..], ['.', '.']) => Some(from),
        _ => None,
    };
    let Some(from @ [first, ..]) = from else {
        mistakes.at_tokens(tokens, arrow, EXPECTED_ARM);
        return None;
    };
    if !is_word(first, "tuned") {
        return Some(Pattern::From(From::Fixed(number(from))));
    }
    let arguments = match from {
        [_, group] => as_group(group, Delimiter::Parenthesis).map(Group::stream),
        [_] => Some(TokenStream::new()),
        _ => None,
    };
    let Some(arguments) = arguments else {
        mistakes.at_tokens(tokens, arrow, EXPECTED_ARM);
        return None;
    };
    let keyword = first.span();
    let default = default(arguments, keyword, mistakes)?;
    Some(Pattern::From(From::Tuned { keyword, default }))
}

/// A number without the parentheses that a range, but nothing else, needs around it: `(N + 8)..`.
fn number(tokens: &[TokenTree]) -> TokenStream {
    match tokens {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => group.stream(),
        _ => tokens.iter().cloned().collect(),
    }
}

/// The only argument of `tuned`.
fn default(arguments: TokenStream, keyword: Span, mistakes: &mut Mistakes) -> Option<TokenStream> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    match &split_at_commas(&tokens, Angles::AfterColons)[..] {
        [default] => return Some(default.iter().cloned().collect()),
        [] => {
            let text = "`tuned` needs a default, which holds until `--tune` has measured: `tuned(1 << 16)`";
            mistakes.at(keyword, text);
        }
        [_, second, ..] => {
            mistakes.at_tokens(second, keyword, "`tuned` takes one number, the default");
        }
    }
    None
}

/// The function of an arm, whose path may have generic arguments.
fn function(tokens: &[TokenTree], arrow: Span, mistakes: &mut Mistakes) -> Option<Function> {
    let tokens = ungrouped(tokens.iter().cloned().collect());
    let is_of_path = |tree: &TokenTree| {
        matches!(tree, TokenTree::Ident(_)) || [':', '<', '>'].iter().any(|m| is_mark(tree, *m))
    };
    if let Some(odd) = position(&tokens, Angles::Everywhere, |tree| !is_of_path(tree)) {
        let text = match as_group(&tokens[odd], Delimiter::Parenthesis) {
            Some(_) => {
                "write the path of the function alone: it is called with the dispatcher's own parameters"
            }
            None => "expected the path of a function, and a comma after it",
        };
        mistakes.at(tokens[odd].span(), text);
        return None;
    }
    let Some(name) = last_segment(&tokens) else {
        mistakes.at_tokens(&tokens, arrow, "expected the path of a function");
        return None;
    };
    Some(Function { path: tokens.iter().cloned().collect(), name })
}

fn last_segment(mut path: &[TokenTree]) -> Option<String> {
    let mut last = None;
    while let Some(next) =
        position(path, Angles::Everywhere, |tree| matches!(tree, TokenTree::Ident(_)))
    {
        last = Some(path[next].to_string());
        path = &path[next + 1..];
    }
    last.map(|name| name.trim_start_matches("r#").to_owned())
}
