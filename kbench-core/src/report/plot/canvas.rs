//! A grid of characters to draw on.

use crate::report::Style;
use crate::report::style::Tone;

/// What a character is part of; a later one is drawn over an earlier one, and of two alike the first stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    Blank,
    Rule,
    Line,
    Interval,
    Marker,
}

#[derive(Clone, Copy)]
struct Ink {
    character: char,
    tone: Tone,
    layer: Layer,
}

/// Rows of characters, the first on top.
pub(super) struct Canvas {
    columns: usize,
    cells: Vec<Ink>,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let blank = Ink { character: ' ', tone: Tone::Plain, layer: Layer::Blank };
        Canvas { columns, cells: vec![blank; columns * rows] }
    }

    /// A character at a column and row, unless something above it is there; nothing outside.
    pub(super) fn put(
        &mut self,
        (x, y): (usize, usize),
        character: char,
        tone: Tone,
        layer: Layer,
    ) {
        if x >= self.columns {
            return;
        }
        if let Some(cell) = self.cells.get_mut(y * self.columns + x).filter(|c| c.layer < layer) {
            *cell = Ink { character, tone, layer };
        }
    }

    /// A straight line from one place to another, ends included.
    pub(super) fn line(&mut self, from: (usize, usize), to: (usize, usize), character: char) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, step: usize| {
            (a as f64 + (b as f64 - a as f64) * step as f64 / steps as f64).round() as usize
        };
        for step in 0..=steps {
            let place = (between(from.0, to.0, step), between(from.1, to.1, step));
            self.put(place, character, Tone::Plain, Layer::Line);
        }
    }

    /// The rows as text.
    pub(super) fn rows(&self, style: Style) -> Vec<String> {
        let painted = |ink: &Ink| style.toned(ink.tone, &ink.character.to_string());
        self.cells
            .chunks(self.columns.max(1))
            .map(|row| row.iter().map(painted).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_more_is_on_top_and_nothing_is_drawn_outside() {
        let mut canvas = Canvas::new(4, 2);
        canvas.line((0, 1), (3, 0), '·');
        canvas.put((1, 1), '●', Tone::Plain, Layer::Marker);
        canvas.put((1, 1), '○', Tone::Plain, Layer::Marker);
        canvas.put((1, 1), '│', Tone::Plain, Layer::Interval);
        canvas.put((4, 0), '●', Tone::Plain, Layer::Marker);
        canvas.put((0, 9), '●', Tone::Plain, Layer::Marker);
        assert_eq!(canvas.rows(Style::PLAIN), ["  ··", "·●  "]);
    }
}
