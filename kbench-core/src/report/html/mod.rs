//! The report as one page: a single file that loads nothing, reads well in light and in dark, on paper, on a phone, with a
//! keyboard and with a screen reader, and says everything without its script.
//!
//! Every part of the page is a module with a function `section` that gives its markup, or nothing where there is nothing to
//! say. Plots are SVG made by [`plot`]; what has to look alike shares a class of `style.css`. Text passes through
//! [`text::escape`], coordinates through [`plot::short`], so that neither a name nor a figure can break the page.

mod changes;
mod correctness;
mod data;
mod history;
mod kernel;
mod machine;
mod matrix;
mod page;
mod plot;
mod roofline;
mod samples;
mod scale;
mod scaling;
mod series;
mod speedup;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod throughput;
mod verdict;

use super::{Report, Trend};

/// The report as an HTML page, with what the stored runs of the machine say about its rows.
pub fn html(report: &Report, trends: &[Trend]) -> String {
    page::page(report, trends)
}
