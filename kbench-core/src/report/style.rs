//! Colour, and when to use it.

use std::env;
use std::io::IsTerminal;

/// What a piece of text means, as far as colour can say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
}

/// Whether and how text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// No colour.
    pub const PLAIN: Style = Style { colour: false };
    /// Colour wherever it means something.
    pub const COLOURED: Style = Style { colour: true };

    /// Colour on a terminal, unless the environment says otherwise (`NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR`,
    /// `CARGO_TERM_COLOR`, `TERM=dumb`).
    pub fn detect() -> Self {
        let set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty() && value != "0");
        let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
        let present = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        let colour = if present("NO_COLOR") || is("CARGO_TERM_COLOR", "never") {
            false
        } else if set("CLICOLOR_FORCE") || is("CARGO_TERM_COLOR", "always") {
            true
        } else {
            std::io::stdout().is_terminal() && !is("CLICOLOR", "0") && !is("TERM", "dumb")
        };
        Style { colour }
    }

    pub(super) fn toned(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.good(text),
            Tone::Bad => self.bad(text),
        }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
