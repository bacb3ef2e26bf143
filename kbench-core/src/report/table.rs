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

/// Columns of the longest text of a cell; nobody finds the next column behind a longer one.
pub(super) const LONGEST_CELL: usize = 60;

/// A text in so many columns, without its middle: names that are alike differ in the beginning or at the end.
pub(super) fn shortened(text: String, columns: usize) -> String {
    // No text has more characters than bytes, and nearly all are short.
    let length = if text.len() <= columns { 0 } else { text.chars().count() };
    if length <= columns {
        return text;
    }
    let kept = columns.saturating_sub(1);
    let beginning = text.chars().take(kept - kept / 3);
    beginning.chain(['…']).chain(text.chars().skip(length - kept / 3)).collect()
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
        let short = |cell: Cell| Cell { text: shortened(cell.text, LONGEST_CELL), ..cell };
        self.rows.push(row.into_iter().map(short).collect());
    }

    /// Columns of the widest line.
    pub(super) fn width(&self) -> usize {
        self.render(Style::PLAIN).lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines, each indented by two blanks, without blanks at the end.
    pub(super) fn render(&self, style: Style) -> String {
        let columns = self.columns();
        let mut lines = vec![String::new()];
        for &(column, width) in &columns {
            let (title, align) = self.header[column];
            lines[0] += &self.pad(title, title, width, align);
        }
        for row in &self.rows {
            let mut line = String::new();
            for &(column, width) in &columns {
                let Cell { text, tone } = &row[column];
                let painted = style.toned(*tone, text);
                line += &self.pad(text, &painted, width, self.header[column].1);
            }
            lines.push(line);
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The columns that are not empty, with their widths.
    fn columns(&self) -> Vec<(usize, usize)> {
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].text.as_str());
        let width = |column: usize| {
            let texts = cells(column).chain([self.header[column].0]);
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        (0..self.header.len())
            .filter(|column| cells(*column).any(|text| !text.is_empty()))
            .map(|column| (column, width(column)))
            .collect()
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
    fn a_text_that_is_too_long_keeps_both_its_ends() {
        assert_eq!(shortened("kernel_0123456789".into(), 17), "kernel_0123456789");
        assert_eq!(shortened("kernel_0123456789".into(), 10), "kernel…789");
        let mut table = Table::new(vec![("name", Align::Left), ("µs", Align::Right)]);
        table.push(vec![Cell::new("é".repeat(4096)), Cell::new("1.5")]);
        assert_eq!(table.width(), 2 + LONGEST_CELL + 2 + 3);
    }

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
