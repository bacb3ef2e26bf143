//! Two logarithmic scales, what is drawn between them, and what is written around.

use super::canvas::{Canvas, Layer};
use super::scale::{Scale, Tick};
use crate::order;
use crate::report::Style;
use crate::report::style::Tone;

/// Columns of a chart with everything around it: an issue tracker shows so many, indented by the usual four.
pub(super) const WIDTH: usize = 96;

/// Rows between the axes.
pub(super) const HEIGHT: usize = 14;

/// A chart is no narrower than this, whatever is written beside it.
const NARROWEST: usize = 40;

/// Blanks around what is drawn: the axis on its left, and a gap before the labels on its right.
const BORDERS: usize = 5;

/// Labels that are longer lose their beginning.
const LONGEST_LABEL: usize = 24;

/// Rows of a bar on either side of its marker, at most: what is hardly known must not hide the rest.
const LONGEST_BAR: usize = 3;

/// The end of a bar that would go on.
const CUT_BAR: char = '¦';

/// A name beside the end of what it belongs to.
pub(super) struct Label {
    pub(super) marker: char,
    pub(super) text: String,
    /// Where the curve ends.
    pub(super) figure: f64,
}

impl Label {
    fn text(&self) -> String {
        format!("{} {}", self.marker, self.text)
    }
}

/// Places of the horizontal scale that are marked below it, on a line of their own.
pub(super) struct Mark {
    pub(super) marker: char,
    /// From one figure to another.
    pub(super) brackets: Vec<(f64, f64)>,
    pub(super) arrow: Option<f64>,
    pub(super) text: String,
}

/// A chart; draw first, then render.
pub(super) struct Chart {
    pub(super) x: Scale,
    pub(super) y: Scale,
    columns: usize,
    gutter: usize,
    canvas: Canvas,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    labels: Vec<Label>,
    /// Whether some bar was cut.
    has_cut_bars: bool,
}

impl Chart {
    /// A chart over these figures with labels on its right; none when nothing of them can be drawn.
    pub(super) fn over(works: &[f64], ratios: &[f64], labels: Vec<Label>) -> Option<Self> {
        let y = Scale::over(ratios.iter().copied(), HEIGHT)?;
        let y_ticks = y.speedups();
        let gutter = widest(y_ticks.iter().map(|tick| tick.label.as_str())).max(4);
        let label_width = widest(labels.iter().map(|label| label.text.as_str())) + 2;
        let columns = WIDTH.saturating_sub(gutter + label_width + BORDERS).max(NARROWEST);
        let x = Scale::over(works.iter().copied(), columns)?;
        let canvas = Canvas::new(columns, HEIGHT);
        Some(Chart {
            x,
            y,
            columns,
            gutter,
            canvas,
            x_ticks: x.works(),
            y_ticks,
            labels,
            has_cut_bars: false,
        })
    }

    /// The same with these ticks below it.
    pub(super) fn with_ticks(self, x_ticks: Vec<Tick>) -> Self {
        Chart { x_ticks, ..self }
    }

    /// Column and row of a point.
    fn place(&self, x: f64, y: f64) -> (usize, usize) {
        (self.x.cell(x), HEIGHT - 1 - self.y.cell(y))
    }

    /// A rule over the whole width.
    pub(super) fn rule(&mut self, figure: f64) {
        for column in 0..self.columns {
            let row = HEIGHT - 1 - self.y.cell(figure);
            self.canvas.put((column, row), '─', Tone::Plain, Layer::Rule);
        }
    }

    pub(super) fn marker(&mut self, (x, y): (f64, f64), marker: char, tone: Tone) {
        self.canvas.put(self.place(x, y), marker, tone, Layer::Marker);
    }

    /// A bar around a marker, where that is more than the cell of the marker; one that is cut has an end that says so.
    pub(super) fn interval(&mut self, (x, y): (f64, f64), low: f64, high: f64) {
        let (column, row) = self.place(x, y);
        let ends = [(self.place(x, high).1, high), (self.place(x, low).1, low)];
        for (end, figure) in ends {
            let (from, to) = (end.min(row), end.max(row));
            let is_cut = to - from > LONGEST_BAR || !self.y.covers(figure);
            for distance in 1..=(to - from).min(LONGEST_BAR) {
                let at = if end < row { row - distance } else { row + distance };
                let is_end = distance == (to - from).min(LONGEST_BAR);
                let character = if is_cut && is_end { CUT_BAR } else { '│' };
                self.canvas.put((column, at), character, Tone::Plain, Layer::Interval);
                self.has_cut_bars |= character == CUT_BAR;
            }
        }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.canvas.line(self.place(from.0, from.1), self.place(to.0, to.1), '·');
    }

    /// A curve over the whole width, as far as it is on the scale.
    pub(super) fn curve(&mut self, character: char, height: impl Fn(f64) -> f64) {
        for column in 0..self.columns {
            let figure = height(self.x.figure(column));
            if self.y.covers(figure) {
                let row = HEIGHT - 1 - self.y.cell(figure);
                self.canvas.put((column, row), character, Tone::Plain, Layer::Line);
            }
        }
    }

    /// What the ends of bars mean, where some are cut.
    pub(super) fn bar_note(&self) -> Option<String> {
        self.has_cut_bars.then(|| format!("{CUT_BAR} is where an interval goes on"))
    }

    /// The lines, at most 96 columns wide unless a name is very long.
    pub(super) fn render(&self, x_title: &str, marks: &[Mark], style: Style) -> String {
        let labels = self.placed_labels();
        let mut lines = Vec::new();
        for (row, drawn) in self.canvas.rows(style).iter().enumerate() {
            let at_row = |tick: &&Tick| HEIGHT - 1 - self.y.cell(tick.figure) == row;
            let (name, axis) = match self.y_ticks.iter().find(at_row) {
                Some(tick) => (tick.label.as_str(), '┤'),
                None => ("", '│'),
            };
            let label = labels[row].map_or_else(String::new, Label::text);
            lines.push(format!("{name:>width$} {axis}{drawn} {label}", width = self.gutter));
        }
        lines.extend(self.horizontal_axis(x_title));
        lines.extend(marks.iter().flat_map(|mark| self.mark_lines(mark)));
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// For every row the label that is written beside it: that of the curve that ends there, or near it.
    fn placed_labels(&self) -> Vec<Option<&Label>> {
        let mut sorted: Vec<(usize, &Label)> =
            self.labels.iter().map(|l| (HEIGHT - 1 - self.y.cell(l.figure), l)).collect();
        order::sort_by_key(&mut sorted, |(row, _)| *row);
        let mut placed = vec![None; HEIGHT];
        let mut next = 0;
        for (i, (row, label)) in sorted.iter().enumerate() {
            // No lower than leaves a row for each of those that follow.
            let lowest = (HEIGHT + i).saturating_sub(sorted.len());
            let at = (*row).min(lowest).max(next);
            if let Some(place) = placed.get_mut(at) {
                *place = Some(*label);
            }
            next = at + 1;
        }
        placed
    }

    /// The axis with its ticks, and below them what they are.
    fn horizontal_axis(&self, title: &str) -> [String; 2] {
        let mut axis = vec!['─'; self.columns];
        let mut names = vec![' '; self.columns];
        let mut free = 0;
        for tick in &self.x_ticks {
            let (cell, length) = (self.x.cell(tick.figure), tick.label.chars().count());
            axis[cell] = '┬';
            let from = cell.saturating_sub(length / 2).min(self.columns.saturating_sub(length));
            if from >= free {
                names.splice(from..(from + length).min(self.columns), tick.label.chars());
                free = from + length + 1;
            }
        }
        let indent = " ".repeat(self.gutter);
        let line = |characters: &[char]| characters.iter().collect::<String>();
        [format!("{indent} └{}", line(&axis)), format!("{indent}  {} {title}", line(&names))]
    }

    /// Brackets and arrow below their places, and the words beside them where there is room, else below.
    fn mark_lines(&self, mark: &Mark) -> Vec<String> {
        let mut strip =
            vec![' '; WIDTH.max(self.columns + self.gutter + BORDERS) - self.gutter - 2];
        for (low, high) in &mark.brackets {
            let (low, high) = (self.x.cell(*low), self.x.cell(*high));
            strip[low..=high].fill('─');
            (strip[low], strip[high]) = if low == high { ('┼', '┼') } else { ('├', '┤') };
        }
        if let Some(arrow) = mark.arrow {
            strip[self.x.cell(arrow)] = '↑';
        }
        let first = strip.iter().position(|character| *character != ' ').unwrap_or(0);
        let last = strip.iter().rposition(|character| *character != ' ').unwrap_or(0);
        let length = mark.text.chars().count();
        let line = |strip: &[char]| {
            let strip: String = strip.iter().collect();
            format!("{:>width$}  {strip}", mark.marker, width = self.gutter)
        };
        if last + 2 + length < strip.len() {
            strip.splice(last + 2..last + 2 + length, mark.text.chars());
        } else if length < first {
            strip.splice(first - 1 - length..first - 1, mark.text.chars());
        } else {
            return vec![
                line(&strip),
                format!("{:>width$}  {}", "", mark.text, width = self.gutter),
            ];
        }
        vec![line(&strip)]
    }
}

/// Labels without the kernel's name in front, which the title has, when they are long.
pub(super) fn shortened(mut labels: Vec<Label>, kernel: &str) -> Vec<Label> {
    let kernel = kernel.rsplit("::").next().unwrap_or_default();
    if widest(labels.iter().map(|label| label.text.as_str())) > LONGEST_LABEL {
        for label in &mut labels {
            let rest = label.text.strip_prefix(kernel).filter(|rest| rest.starts_with('_'));
            let text = rest.map_or_else(|| label.text.clone(), |rest| format!("…{rest}"));
            label.text = text.chars().take(LONGEST_LABEL + 8).collect();
        }
    }
    labels
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
