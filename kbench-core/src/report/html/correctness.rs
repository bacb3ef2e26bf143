//! Correctness: how far each variant is from its reference, against what is tolerated. Failures come first.

use std::fmt::Write;

use super::super::index::Index;
use super::super::{RowReport, Status, units};
use super::plot::short;
use super::series::Subject;
use super::text::{cut, escape, grouped, last_segment, name};
use crate::order;

const READING: &str = "The dot is the relative error of the worst size on a logarithmic scale, the line at the right the \
    tolerance; a dot beyond it would be a failure. A wrong variant has an error and no time. Mistakes are made in the expected \
    results, to see whether the comparison would notice them.";

/// Variants that are closest to their tolerance; others are folded.
const SHOWN: usize = 12;

/// Decades below the tolerance that are shown, and above.
const DECADES: (f64, f64) = (-8.0, 1.0);

/// The worst check of one variant.
struct Check<'a> {
    subject: &'a Subject<'a>,
    row: &'a RowReport,
    sizes: usize,
}

impl Check<'_> {
    fn failure(&self) -> Option<&str> {
        match &self.row.status {
            Status::Failed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Error over tolerance; where nothing is tolerated, any error is beyond it.
    fn share(&self) -> Option<f64> {
        let (error, tolerance) = (self.row.check.error?, self.row.check.tolerance?);
        let beyond = 10_f64.powf(DECADES.1);
        Some(if tolerance > 0.0 {
            error / tolerance
        } else {
            if error > 0.0 { beyond } else { 0.0 }
        })
    }
}

/// The section; empty when nothing was checked.
pub(super) fn section(subjects: &[Subject<'_>]) -> String {
    let mut checks: Vec<Check<'_>> = subjects.iter().flat_map(worst).collect();
    if checks.is_empty() {
        return String::new();
    }
    order::sort_by(&mut checks, |a, b| {
        let key = |c: &Check<'_>| (c.failure().is_some(), c.share().unwrap_or(0.0));
        key(b).0.cmp(&key(a).0).then(key(b).1.total_cmp(&key(a).1))
    });
    let failed = checks.iter().filter(|check| check.failure().is_some()).count();
    let lead = match failed {
        0 => format!("All {} checked variants agree with their references.", grouped(checks.len())),
        _ => format!("{} of {} variants FAILED.", grouped(failed), grouped(checks.len())),
    };
    let shown = SHOWN.max(failed).min(checks.len());
    let (open, folded) = checks.split_at(shown);
    let rest = match folded {
        [] => String::new(),
        some => format!(
            "<details><summary>{} more, further from their tolerance</summary>{}</details>",
            grouped(some.len()),
            table(some, "Further checks")
        ),
    };
    let tone = if failed > 0 { "bad" } else { "lead" };
    format!(
        r#"<section id="correctness" class="part"><h2>Correctness</h2><p class="{tone}">{}</p><p class="read">{}</p>{}{rest}</section>"#,
        escape(&lead),
        escape(READING),
        table(open, "Errors against tolerance, failures and the closest first")
    )
}

/// For every variant of a kernel the row that failed, or else the one with the largest error.
fn worst<'a>(subject: &'a Subject<'a>) -> Vec<Check<'a>> {
    let mut checks: Vec<Check<'a>> = Vec::new();
    let is_checked =
        |row: &&RowReport| row.check.error.is_some() || matches!(row.status, Status::Failed(_));
    let checked = Index::new(subject.rows().filter(is_checked), |row| row.variant.as_str());
    for variant in &subject.variants {
        let rows = checked.of(variant);
        let sizes = order::distinct(rows.iter().map(|row| row.size.as_str())).len();
        let all = rows.iter().map(|row| Check { subject, row, sizes });
        checks.extend(all.max_by(|a, b| {
            let key = |c: &Check<'_>| (c.failure().is_some(), c.share().unwrap_or(0.0));
            key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1))
        }));
    }
    checks
}

fn table(checks: &[Check<'_>], caption: &str) -> String {
    let mut lines = String::new();
    for check in checks {
        line(&mut lines, check);
    }
    format!(
        r#"<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table class="errors"><caption>{caption}</caption><thead><tr><th scope="col">kernel<th scope="col">variant<th scope="col">reference<th scope="col" class="num">error<th scope="col" class="num">tolerance<th scope="col" class="strip">error against tolerance<th scope="col">worst element<th scope="col" class="num">mistakes noticed<th scope="col" class="num">sizes</tr></thead><tbody>{lines}</tbody></table></div>"#
    )
}

fn line(lines: &mut String, check: &Check<'_>) {
    let (found, row) = (&check.row.check, check.row);
    let figure = |value: Option<f64>| value.map(units::error).unwrap_or_default();
    let reference = match &found.reference {
        Some(reference) => name(reference),
        None => "the base".to_owned(),
    };
    let place = match (check.failure(), &found.worst) {
        (Some(reason), _) => format!(r#"<strong class="bad">FAILED</strong> {}"#, escape(reason)),
        (None, Some(worst)) => format!("{} at {}", name(worst), escape(&cut(&row.size, 60))),
        (None, None) => String::new(),
    };
    let _ = write!(
        lines,
        r##"<tr><th scope="row"><a href="#k{}">{} {}</a><td class="code">{}<td class="code">{reference}<td class="num">{}<td class="num">{}<td class="strip">{}<td>{place}<td class="num">{}<td class="num">{}</tr>"##,
        check.subject.number,
        name(last_segment(check.subject.kernel)),
        name(check.subject.element),
        name(&row.variant),
        figure(found.error),
        figure(found.tolerance),
        strip(check.share()),
        found.mutation_score.map(units::percent).unwrap_or_default(),
        check.sizes
    );
}

/// A dot between nothing and the tolerance. The figures are beside it, so it is only for the eye.
fn strip(share: Option<f64>) -> String {
    let (low, high) = DECADES;
    let place = |decades: f64| 4.0 + 112.0 * (decades.clamp(low, high) - low) / (high - low);
    let (limit, end) = (short(place(0.0)), short(place(high)));
    let dot = match share {
        Some(share) => {
            let at = short(place(share.max(1e-300).log10()));
            let class = if share > 1.0 { "bad" } else { "good" };
            format!(r#"<circle class="{class}" cx="{at}" cy="7" r="3.5"/>"#)
        }
        None => String::new(),
    };
    format!(
        r#"<svg viewBox="0 0 120 14" aria-hidden="true"><path class="axis" d="M4 7H{end}"/><path class="limit" d="M{limit} 1V13"/>{dot}</svg>"#
    )
}
