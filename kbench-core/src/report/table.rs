//! Aligned columns.

use super::Style;
use super::style::Tone;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A cell: what is printed, and what it means.
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Cell::toned(text, Tone::Plain)
    }

    pub(super) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Cell { text: text.into(), tone }
    }
}

/// A table with a header; columns that are empty in every row are left out.
pub(super) struct Table<'a> {
    /// Blanks between columns.
    gap: usize,
    header: Vec<(&'a str, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(header: Vec<(&'a str, Align)>) -> Self {
        Table { gap: 2, header, rows: Vec::new() }
    }

    /// The same with columns as close as they can be.
    pub(super) fn dense(self) -> Self {
        Table { gap: 1, ..self }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    /// Columns of the widest line.
    pub(super) fn width(&self) -> usize {
        self.render(Style::PLAIN).lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines, each indented by two blanks, without blanks at the end.
    pub(super) fn render(&self, style: Style) -> String {
        let columns: Vec<usize> = (0..self.header.len())
            .filter(|&column| self.rows.iter().any(|row| !row[column].text.is_empty()))
            .collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            cells.chain([self.header[column].0.chars().count()]).max().unwrap_or(0)
        };
        let mut lines = vec![String::new()];
        for &column in &columns {
            let (title, align) = self.header[column];
            lines[0] += &self.pad(title, title, width(column), align);
        }
        for row in &self.rows {
            let mut line = String::new();
            for &column in &columns {
                let Cell { text, tone } = &row[column];
                let painted = style.toned(*tone, text);
                line += &self.pad(text, &painted, width(column), self.header[column].1);
            }
            lines.push(line);
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Pads by the width of the bare text, since paint has no width.
    fn pad(&self, text: &str, painted: &str, width: usize, align: Align) -> String {
        let gap = " ".repeat(self.gap);
        let blanks = " ".repeat(width - text.chars().count());
        match align {
            Align::Left => format!("{gap}{painted}{blanks}"),
            Align::Right => format!("{gap}{blanks}{painted}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_whatever_the_paint_and_empty_ones_vanish() {
        let mut table =
            Table::new(vec![("name", Align::Left), ("none", Align::Left), ("µs", Align::Right)]);
        table.push(vec![Cell::new("a"), Cell::new(""), Cell::new("1.5")]);
        table.push(vec![Cell::toned("longer", Tone::Bad), Cell::new(""), Cell::new("12.25")]);
        assert_eq!(
            table.render(Style::COLOURED),
            "  name       µs\n  a         1.5\n  \x1b[31mlonger\x1b[0m  12.25\n"
        );
    }
}
