//! The page: its head, its parts in order, and nothing from outside.

use super::super::{Report, Trend};
use super::series::subjects;
use super::text::escape;
use super::{
    changes, correctness, data, history, kernel, machine, matrix, roofline, table, verdict,
};
use crate::calendar::date_and_time;
use crate::environment::target_name;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What the page may do: show itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Parts that the navigation leads to; those that a page has not are left out.
const PARTS: [(&str, &str); 10] = [
    ("verdict", "Verdict"),
    ("machine", "Machine"),
    ("changes", "Changes"),
    ("matrix", "Matrix"),
    ("kernels", "Kernels"),
    ("roofline", "Roofline"),
    ("correctness", "Correctness"),
    ("history", "History"),
    ("rows", "Rows"),
    ("command", "Command"),
];

/// The whole page.
pub(super) fn page(report: &Report, trends: &[Trend]) -> String {
    let subjects = subjects(report);
    let body = [
        verdict::section(report, &matrix::extent(&subjects)),
        machine::section(report),
        changes::section(report),
        matrix::section(&subjects),
        kernel::section(&subjects),
        roofline::section(&subjects, report),
        correctness::section(&subjects),
        history::section(trends),
        table::section(report),
        table::command(report),
    ]
    .concat();
    let title = escape(&format!("{}: kbench report {}", program(report), report.run));
    format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
{}
{}
<main id="main" tabindex="-1">
{body}
</main>
<footer><p>Written by kbench {}. One file, no network.</p></footer>
<div id="tip" role="status" hidden></div>
{}
<script>
{SCRIPT}</script>
</body>
</html>
"##,
        header(report),
        navigation(&body),
        escape(&report.environment.kbench),
        data::script(report)
    )
}

fn header(report: &Report) -> String {
    let environment = &report.environment;
    let commit = environment.git_commit.as_ref().map(|hash| format!(" · commit {hash:.8}"));
    let device = report.device.as_ref().map(|device| format!(" · {}", device.info.name));
    let place = match report.parts.len() {
        0 => format!(
            "{} · {} cores{}",
            environment.cpu,
            environment.cores,
            device.unwrap_or_default()
        ),
        parts => format!("{parts} runs merged"),
    };
    format!(
        r#"<header><h1><span class="brand">kbench</span> {}</h1><p><time title="run {}">{}</time> · {}{}</p></header>"#,
        escape(program(report)),
        escape(&report.run),
        escape(&date_and_time(report.started)),
        escape(&place),
        escape(&commit.unwrap_or_default())
    )
}

/// The name of the program that was measured.
fn program(report: &Report) -> &str {
    let path = report.command.first().map_or("", String::as_str);
    target_name(path.rsplit(['/', '\\']).next().unwrap_or(path))
}

fn navigation(body: &str) -> String {
    let is_there = |(id, _): &&(&str, &str)| body.contains(&format!(r#"<section id="{id}""#));
    let links: String = PARTS
        .iter()
        .filter(is_there)
        .map(|(id, title)| format!(r##"<li><a href="#{id}">{title}</a>"##))
        .collect();
    format!(r#"<nav aria-label="parts of the report"><ul>{links}</ul></nav>"#)
}
