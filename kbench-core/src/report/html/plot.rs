//! A plot as SVG: a frame with two axes, and marks on it. Colours, fonts and line styles are classes of the style sheet.

use std::fmt::Write;

use super::scale::Scale;
use super::text::escape;
use crate::order;

/// Width of a plot in units of its own, which are about pixels.
const WIDTH: f64 = 390.0;
/// Places of the left and the right end of the frame.
pub(super) const ACROSS: (f64, f64) = (46.0, 346.0);
/// Height of a plot without what is below its frame.
const HEIGHT: f64 = 200.0;
/// Places of the lower and the upper end of the frame.
pub(super) const UPWARD: (f64, f64) = (HEIGHT, 19.0);
/// Room below the frame, for ticks and the name of the axis.
const BELOW: f64 = 36.0;
/// Labels at the ends of lines are at least so far apart.
const LABEL_HEIGHT: f64 = 10.0;

/// An axis: its scale, what it is called, and how its ticks are written.
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) label: String,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with about so many ticks.
    pub(super) fn new(
        scale: Scale,
        label: &str,
        ticks: usize,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let ticks = scale.ticks(ticks).into_iter().map(|tick| (tick, text(tick))).collect();
        Axis { scale, label: label.to_owned(), ticks }
    }
}

/// A point with the two ends of its interval.
#[derive(Clone, Copy)]
pub(super) struct Ranged {
    pub(super) x: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A plot that is being drawn.
pub(super) struct Plot {
    title: String,
    description: String,
    x: Axis,
    y: Axis,
    marks: String,
    /// Height, text and class of labels to the right of the frame.
    labels: Vec<(f64, String, String)>,
}

impl Plot {
    /// An empty frame. The title names the plot, the description says what is to be seen on it.
    pub(super) fn new(title: String, description: String, x: Axis, y: Axis) -> Self {
        Plot { title, description, x, y, marks: String::new(), labels: Vec::new() }
    }

    fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.scale.place(x)?, self.y.scale.place(y)?))
    }

    /// A line through points; those without a place are left out.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        let places = points.into_iter().filter_map(|(x, y)| self.place(x, y));
        let path = path(places.collect::<Vec<_>>().as_slice());
        if path.contains('L') {
            let _ = write!(self.marks, r#"<path class="l {class}" d="{path}"/>"#);
        }
    }

    /// The area between the ends of intervals; the bar of one alone.
    pub(super) fn band(&mut self, points: &[Ranged], class: &str) {
        if let [only] = points {
            return self.whisker(*only, class);
        }
        let upper = points.iter().filter_map(|point| self.place(point.x, point.high));
        let lower = points.iter().rev().filter_map(|point| self.place(point.x, point.low));
        let outline: Vec<_> = upper.chain(lower).collect();
        if outline.len() > 2 {
            let path = path(&outline);
            let _ = write!(self.marks, r#"<path class="b {class}" d="{path}Z"/>"#);
        }
    }

    /// An interval as a vertical bar.
    pub(super) fn whisker(&mut self, point: Ranged, class: &str) {
        let ends = self.place(point.x, point.low).zip(self.place(point.x, point.high));
        if let Some(((x, low), (_, high))) = ends {
            let (x, low, high) = (short(x), short(low), short(high));
            let _ = write!(self.marks, r#"<path class="w {class}" d="M{x} {low}V{high}"/>"#);
        }
    }

    /// A point of a shape, with what is said when one asks for it.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), shape: usize, class: &str, tip: &str) {
        let Some((x, y)) = self.place(x, y) else { return };
        let outline = outline(shape, x, y, 3.0);
        let tip = escape(tip);
        let _ = write!(
            self.marks,
            r#"<path class="p {class}" d="{outline}"><title>{tip}</title></path>"#
        );
    }

    /// Many points without a text, as one path of dots.
    pub(super) fn dots(&mut self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) {
        let places = points.into_iter().filter_map(|(x, y)| self.place(x, y));
        let dots: String = places.map(|(x, y)| format!("M{} {}h0", short(x), short(y))).collect();
        if !dots.is_empty() {
            let _ = write!(self.marks, r#"<path class="d {class}" d="{dots}"/>"#);
        }
    }

    /// A vertical line over the whole height with a word at its foot.
    pub(super) fn vertical(&mut self, x: f64, class: &str, word: &str, tip: &str) {
        if !self.x.scale.has(x) {
            return;
        }
        let Some(x) = self.x.scale.place(x) else { return };
        let (bottom, top) = UPWARD;
        let (line, title) = (short(x), tip_element(tip));
        let _ = write!(self.marks, r#"<g class="{class}"><path d="M{line} {bottom}V{top}"/>"#);
        if !word.is_empty() {
            // Near the right end there is room only to the left.
            let is_late = x > ACROSS.1 - 60.0;
            let (aside, anchor) = if is_late { (-3.0, "end") } else { (3.0, "start") };
            let (x, y, word) = (short(x + aside), bottom - 5.0, escape(word));
            let _ =
                write!(self.marks, r#"<text x="{x}" y="{y}" text-anchor="{anchor}">{word}</text>"#);
        }
        let _ = write!(self.marks, "{title}</g>");
    }

    /// A horizontal line over the whole width with a word above its right end.
    pub(super) fn horizontal(&mut self, y: f64, class: &str, word: &str) {
        if !self.y.scale.has(y) {
            return;
        }
        let Some(y) = self.y.scale.place(y) else { return };
        let (left, right) = ACROSS;
        let _ =
            write!(self.marks, r#"<g class="{class}"><path d="M{left} {}H{right}"/>"#, short(y));
        if !word.is_empty() {
            let (x, y, word) = (right - 2.0, short(y - 3.0), escape(word));
            let _ = write!(self.marks, r#"<text x="{x}" y="{y}" text-anchor="end">{word}</text>"#);
        }
        self.marks += "</g>";
    }

    /// A range of x: shaded, and marked as a bar at some height.
    pub(super) fn bracket(&mut self, (from, to): (f64, f64), y: f64, class: &str, tip: &str) {
        let ends = self.place(from, y).zip(self.place(to, y));
        let Some(((from, y), (to, _))) = ends else { return };
        let (bottom, top) = UPWARD;
        let (from, to, width) = (short(from), short(to), short((to - from).max(1.0)));
        let (up, down, height, tip) = (short(y - 4.0), short(y + 4.0), bottom - top, escape(tip));
        let _ = write!(
            self.marks,
            r#"<g class="p x {class}"><rect x="{from}" y="{top}" width="{width}" height="{height}"/><path d="M{from} {up}V{down}M{from} {y}H{to}M{to} {up}V{down}"/><title>{tip}</title></g>"#,
            y = short(y)
        );
    }

    /// A word above the frame that tells the plot from its neighbours.
    pub(super) fn caption(&mut self, text: &str) {
        let (x, text) = (ACROSS.1, escape(text));
        let _ = write!(self.marks, r#"<text class="c" x="{x}" y="9">{text}</text>"#);
    }

    /// A word to the right of the frame, at the height of a figure.
    pub(super) fn label(&mut self, y: f64, text: &str, class: &str) {
        if let Some(y) = self.y.scale.place(y) {
            self.labels.push((y, text.to_owned(), class.to_owned()));
        }
    }

    /// The drawing.
    pub(super) fn render(mut self) -> String {
        let height = HEIGHT + BELOW;
        let (title, description) = (escape(&self.title), escape(&self.description));
        let (axes, labels) = (self.axes(), self.end_labels());
        format!(
            r#"<svg viewBox="0 0 {WIDTH} {height}" role="img"><title>{title}</title><desc>{description}</desc>{axes}{}{labels}</svg>"#,
            self.marks
        )
    }

    fn axes(&self) -> String {
        let ((left, right), (bottom, top)) = (ACROSS, UPWARD);
        let (mut grid, mut below, mut beside) = (String::new(), String::new(), String::new());
        for (tick, text) in &self.x.ticks {
            let Some(x) = self.x.scale.place(*tick).map(short) else { continue };
            let _ = write!(grid, "M{x} {bottom}v4");
            let _ = write!(below, r#"<text x="{x}" y="{}">{}</text>"#, bottom + 15.0, escape(text));
        }
        for (tick, text) in &self.y.ticks {
            let Some(y) = self.y.scale.place(*tick) else { continue };
            let _ = write!(grid, "M{left} {}H{right}", short(y));
            let (y, text) = (short(y + 3.5), escape(text));
            let _ = write!(beside, r#"<text x="{}" y="{y}">{text}</text>"#, left - 6.0);
        }
        let (middle, foot) = ((left + right) / 2.0, bottom + BELOW - 6.0);
        let (across, upward) = (escape(&self.x.label), escape(&self.y.label));
        format!(
            r#"<path class="grid" d="{grid}"/><path class="axis" d="M{left} {top}V{bottom}H{right}"/><g class="tx">{below}<text class="n" x="{middle}" y="{foot}">{across}</text></g><g class="ty">{beside}</g><text class="n" x="2" y="9">{upward}</text>"#
        )
    }

    /// Labels beside the frame, moved apart where they would overlap.
    fn end_labels(&mut self) -> String {
        order::sort_by(&mut self.labels, |a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = self.labels.iter().map(|label| label.0).collect();
        let heights = spread(&wanted, LABEL_HEIGHT, (UPWARD.1, UPWARD.0));
        let x = ACROSS.1 + 5.0;
        let text = |((_, text, class), y): (&(f64, String, String), f64)| {
            let (y, text) = (short(y + 3.5), escape(text));
            format!(r#"<text class="e {class}" x="{x}" y="{y}">{text}</text>"#)
        };
        self.labels.iter().zip(heights).map(text).collect()
    }
}

fn tip_element(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

/// A path through places.
fn path(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in places.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", short(*x), short(*y));
    }
    path
}

/// A coordinate with one decimal at most: a tenth of a pixel cannot be seen.
pub(super) fn short(coordinate: f64) -> String {
    let coordinate = if coordinate.is_finite() { coordinate } else { 0.0 };
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The outline of one of several shapes around a place, so that variants differ by more than colour.
pub(super) fn outline(shape: usize, x: f64, y: f64, radius: f64) -> String {
    let (r, wide) = (radius, 1.25 * radius);
    let at = |dx: f64, dy: f64| format!("{} {}", short(x + dx), short(y + dy));
    let closed = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("M{}Z", corners.join("L"))
    };
    match shape % 6 {
        0 => {
            let (d, r) = (short(2.0 * r), short(r));
            format!("M{}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0Z", at(-radius, 0.0))
        }
        1 => closed(&[(-r, -r), (r, -r), (r, r), (-r, r)]),
        2 => closed(&[(0.0, -wide), (wide, r), (-wide, r)]),
        3 => closed(&[(0.0, -wide), (wide, 0.0), (0.0, wide), (-wide, 0.0)]),
        4 => closed(&[(0.0, wide), (wide, -r), (-wide, -r)]),
        _ => closed(&[
            (-wide, -r),
            (0.0, -1.0),
            (wide, -r),
            (1.0, 0.0),
            (wide, r),
            (0.0, 1.0),
            (-wide, r),
            (-1.0, 0.0),
        ]),
    }
}

/// Heights as near to those wanted as a least distance and two ends allow; they are in order.
fn spread(wanted: &[f64], distance: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut heights: Vec<f64> = Vec::with_capacity(wanted.len());
    for &height in wanted {
        let least = heights.last().map_or(top, |above| above + distance);
        heights.push(height.max(least));
    }
    let mut most = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - distance;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::super::scale::Spread;
    use super::*;

    fn plot() -> Plot {
        let axis = |ends| {
            let scale = Scale::over(Spread::Octaves, [1.0, 16.0], ends);
            Axis::new(scale, "<axis>", 4, |tick| tick.to_string())
        };
        Plot::new("a < b".into(), "what".into(), axis(ACROSS), axis(UPWARD))
    }

    #[test]
    fn a_drawing_has_numbers_only() {
        let strange = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -3.0, 1e300, 2.0];
        let mut plot = plot();
        for x in strange {
            plot.line(strange.map(|y| (x, y)), "s0");
            plot.band(&strange.map(|low| Ranged { x, low, high: x }), "s0");
            plot.dots(strange.map(|y| (x, y)), "s0");
            plot.vertical(x, "v", "word", "tip");
            plot.horizontal(x, "h", "word");
            for y in strange {
                plot.mark((x, y), 5, "s0", "tip");
                plot.bracket((x, y), 1.0, "s0", "tip");
                plot.label(y, "label", "s0");
            }
        }
        let text = plot.render();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_drawing_names_itself_and_its_text_is_inert() {
        let mut plot = plot();
        plot.mark((2.0, 2.0), 0, "s0", "<script>");
        let text = plot.render();
        assert!(text.contains(r#"role="img"><title>a &lt; b</title><desc>what</desc>"#), "{text}");
        assert!(!text.contains("<script>") && text.contains("&lt;axis&gt;"), "{text}");
    }

    #[test]
    fn labels_are_apart_and_within_the_frame() {
        let heights = spread(&[10.0, 11.0, 12.0, 95.0, 99.0], 10.0, (0.0, 100.0));
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{heights:?}");
        assert!(heights.iter().all(|height| *height <= 100.0), "{heights:?}");
    }
}
