//! Runs in which every text is hostile, in every form that a report has.
//!
//! The texts are put into the document of a run wherever it holds a text, so that a field that is added later is among them.
//! They are not cleaned as a document is when it is read: each form has to be safe by itself. Only what is shown on
//! terminals relies on the reading, and is tested through it.

use std::collections::HashSet;
use std::path::Component;
use std::sync::LazyLock;

use serde_json::Value;

use super::*;
use crate::doorway::REPORT;
use crate::gate::{Ruling, summary};
use crate::store::read_document;
use crate::visible::{is_obeyed, without_commands};

/// What nobody should call anything.
const TEXTS: [&str; 30] = [
    "",
    "../../..",
    "/etc/passwd",
    "C:\\x",
    "a\"b'c",
    "<script>alert(1)</script>",
    "--><!--",
    "]]>",
    "&lt;&#x3c;&",
    "🚀 é",
    "line\nbreak\r\n# goos: plan9\ntest x ... ok",
    "tab\tand blank",
    "\0\u{7}\u{ffff}",
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m",
    "\u{202e}gnp.\u{2066}exe",
    "=1+2",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "|x|`y`|**z** [a](b)",
    "- [ ] @you #1 https://example.com www.example.com",
    "Benchmark 1 2 ns/op",
    "::warning file=a,line=1::b",
    "a\n ::error::b ::set-output name=c::d",
    "##[set-output name=a;]b",
    "##vso[task.setvariable variable=a]b ##teamcity[c]",
    "<img src=x onerror=alert(1)>![i](https://example.com/i)",
    "sa\u{200b}xpy\u{e0061}\u{e007f}\u{3164}",
];

/// Numbers of the texts of the run's document that may be any.
static PLACES: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let document = serde_json::to_value(&*REPORT).expect("written");
    let is_free = |place: &usize| {
        let mut changed = document.clone();
        put(&mut changed, &mut 0, &|at| at == *place, "any");
        serde_json::from_value::<Report>(changed).is_ok()
    };
    (0..put(&mut document.clone(), &mut 0, &|_| false, "")).filter(is_free).collect()
});

/// Replaces some of the texts of a document, which are numbered from outside to inside; gives how many there are.
fn put(value: &mut Value, next: &mut usize, is_meant: &dyn Fn(usize) -> bool, text: &str) -> usize {
    match value {
        Value::String(own) => {
            if is_meant(*next) {
                *own = text.to_owned();
            }
            *next += 1;
        }
        Value::Array(values) => values.iter_mut().for_each(|v| _ = put(v, next, is_meant, text)),
        Value::Object(values) => {
            values.values_mut().for_each(|v| _ = put(v, next, is_meant, text));
        }
        _ => {}
    }
    *next
}

/// The run with a text in all places, rows that failed or were skipped for it among them.
fn hostile(text: &str) -> Report {
    let mut document = serde_json::to_value(&*REPORT).expect("written");
    let places: HashSet<usize> = PLACES.iter().copied().collect();
    assert!(places.len() > 150, "{}", places.len());
    put(&mut document, &mut 0, &|place| places.contains(&place), text);
    let mut report: Report = serde_json::from_value(document).expect("texts may be any");
    report.rows[1].status = Status::Failed(text.to_owned());
    report.rows[2].status = Status::Skipped(text.to_owned());
    report.rows[0].axes = [(text.to_owned(), 1)].into();
    report.workers = vec![WorkerReport {
        name: text.to_owned(),
        command: vec![text.to_owned()],
        about: Some(text.to_owned()),
        variants: 1,
        unavailable: None,
    }];
    report
}

fn all() -> impl Iterator<Item = (String, Report)> {
    let long = "x".repeat(4096);
    let texts = TEXTS.into_iter().map(str::to_owned).chain([long]);
    texts.map(|text| (text.clone(), hostile(&text)))
}

fn file(report: &Report, format: Format) -> String {
    match export(report, &[], format).expect("exported") {
        Exported::File(text) => text,
        Exported::Tree(_) => panic!("a folder"),
    }
}

/// Records of comma-separated values, by RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut characters) = (false, text.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            character => field.push(character),
        }
    }
    assert!(!is_quoted && field.is_empty(), "the last record has an end");
    records
}

#[test]
fn csv_has_the_same_fields_when_it_is_read_and_no_formula() {
    for (text, report) in all() {
        let records = records(&csv(&report));
        assert_eq!(records.len(), 1 + report.rows.len() + report.searched.len(), "{text:?}");
        for record in &records {
            assert_eq!(record.len(), records[0].len(), "{text:?}");
        }
        for (row, record) in report.rows.iter().zip(&records[1..]) {
            let disarmed = record[0].strip_prefix('\'').unwrap_or(&record[0]);
            assert_eq!(disarmed, row.kernel);
            let is_formula = row.kernel.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert_eq!(record[0].starts_with('\''), is_formula, "{text:?}");
            assert_eq!(record[9].parse().ok(), row.time_ns, "numbers stay numbers");
        }
    }
}

/// Whether a text is one element of XML 1.0 with others inside, as the grammar has it.
fn check_xml(text: &str) {
    let is_allowed = |c: char| matches!(c, '\n' | '\t' | ' '..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(is_allowed));
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").expect("a head");
    let mut open: Vec<&str> = Vec::new();
    while let Some((content, behind)) = rest.split_once('<') {
        check_references(content);
        let (tag, behind) = behind.split_once('>').expect("a tag has an end");
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name}");
        // Values have no quotes inside, so that every second piece is one.
        let pieces: Vec<&str> = attributes.split('"').collect();
        assert_eq!(pieces.len() % 2, 1, "{tag}");
        for (key, value) in pieces.chunks_exact(2).map(|pair| (pair[0], pair[1])) {
            let key = key.trim().strip_suffix('=').expect("a key");
            assert!(key.chars().all(|c| c.is_ascii_lowercase()), "{key}");
            check_references(value);
        }
        if !is_empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
}

fn check_references(text: &str) {
    for reference in text.split('&').skip(1) {
        let (name, _) = reference.split_once(';').expect("a reference has an end");
        let is_number = name.strip_prefix('#').is_some_and(|n| n.parse::<u32>().is_ok());
        assert!(is_number || ["amp", "lt", "gt", "quot", "apos"].contains(&name), "{name}");
    }
}

#[test]
fn junit_is_well_formed_whatever_its_names_are() {
    for (_, report) in all() {
        check_xml(&file(&report, Format::Junit));
    }
}

#[test]
fn no_text_leaves_its_place_on_the_page() {
    let tags = |page: &str| page.matches('<').count();
    let plain = tags(&file(&hostile("any"), Format::Html));
    for (text, report) in all() {
        let page = file(&report, Format::Html);
        assert_eq!(page.matches("<script").count(), 2, "{text:?}: the data and the script");
        assert!(!page.contains(|c| is_obeyed(c) && !"\n\t".contains(c)), "{text:?}");
        // Text is not markup: pages differ in tags only where a text decides what is shown.
        assert!(tags(&page).abs_diff(plain) < plain / 5, "{text:?}: {} {plain}", tags(&page));
    }
}

/// Everything that a run's texts could do in Markdown.
fn check_markdown(text: &str, shown: &str) {
    // What breaks mentions is invisible, and comes from here alone.
    let own = ["@\u{200b}", "#\u{200b}"];
    let kept = own.iter().fold(shown.to_owned(), |kept, own| kept.replace(own, ""));
    assert!(!kept.contains(|c| is_obeyed(c) && c != '\n'), "{text:?}");
    // Within code nothing is followed, and what is escaped means nothing.
    let meant = shown.replace("\\`", "").replace("\\]", "");
    let around: String = meant.split('`').step_by(2).collect();
    for part in ["<script", "<img", "](", "://", "www.", "@y", "@S"] {
        assert!(!around.contains(part), "{text:?}: {part} in {shown}");
    }
}

/// A run that fails, is beyond limits, and has changes and doubts.
#[test]
fn a_summary_says_what_it_says_and_does_nothing() {
    for (text, report) in all() {
        let mut report = report;
        report.rows[0].status = Status::Ok;
        report.rows[0].change.change = Some(0.5);
        report.rows[0].change.change_verdict = Some(text.clone());
        report.warnings.push(text.clone());
        let lines = vec![text.clone(), "slower".to_owned()];
        let ruling =
            Ruling { blocked: lines.clone(), to_explain: lines.clone(), open: lines, wide: 1 };
        check_markdown(&text, &summary(&report, Some(&ruling)));
        check_markdown(&text, &summary(&report, None));
    }
    let mut report = hostile("saxpy_rayon");
    report.warnings = vec!["a_b".to_owned()];
    let shown = summary(&report, None);
    assert!(shown.contains("- a\\_b\n") && !shown.contains("\\\\"), "escaped once: {shown}");
}

#[test]
fn cells_of_markdown_stay_cells() {
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    for (text, report) in all() {
        let shown = file(&report, Format::Markdown);
        check_markdown(&text, &shown);
        let is_table = |line: &&str| line.starts_with('|');
        let lines: Vec<&str> = shown.lines().collect();
        for table in lines.chunk_by(|a, b| is_table(a) == is_table(b)).filter(|t| is_table(&t[0])) {
            for line in table {
                assert_eq!(bars(line), bars(table[0]), "{text:?}: {line}");
            }
        }
    }
}

#[test]
fn lines_of_go_and_libtest_are_their_own() {
    for (text, report) in all() {
        for line in file(&report, Format::Go).lines().filter(|line| !line.is_empty()) {
            let keys = ["# ", "Unit ", "goos: ", "goarch: ", "cpu: ", "gpu:"];
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_sample = words[0].starts_with("Benchmark") && words[1].parse::<u64>().is_ok();
            assert!(is_sample || keys.iter().any(|key| line.starts_with(key)), "{text:?}: {line}");
        }
        let lines = file(&report, Format::Libtest);
        let results = lines.lines().filter(|line| line.starts_with("test ")).count();
        let searched = report.searched.iter().filter(|r| matches!(r.status, Status::Failed(_)));
        assert_eq!(results, report.rows.len() + searched.count() + 1, "{text:?}: {lines}");
        assert!(!lines.contains(|c| is_obeyed(c) && c != '\n'), "{text:?}");
    }
}

#[test]
fn json_of_every_kind_is_json_and_folders_are_not_left() {
    for (text, report) in all() {
        for format in [Format::Json, Format::Gbench, Format::Bmf, Format::Github] {
            serde_json::from_str::<Value>(&file(&report, format)).expect("JSON");
        }
        let exported = export(&report, &[], Format::Criterion).expect("exported");
        let Exported::Tree(files) = exported else { panic!("a file") };
        let paths: HashSet<_> = files.iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), files.len(), "{text:?}: one file replaces another");
        let is_inside = |path: &std::path::PathBuf| {
            path.components().all(|part| matches!(part, Component::Normal(_)))
        };
        assert!(paths.into_iter().all(is_inside), "{text:?}");
    }
}

#[test]
fn a_terminal_shows_what_it_might_obey() {
    for (text, report) in all() {
        let report = read_document(&json(&report).expect("written")).expect("readable");
        for shown in [
            terminal(&report, Style::PLAIN),
            plot(&report, Style::PLAIN),
            test_report(&report, TestFormat::Pretty, Style::PLAIN),
            test_report(&report, TestFormat::Terse, Style::PLAIN),
            test_report(&report, TestFormat::Json, Style::PLAIN),
        ] {
            assert!(!shown.contains(|c| is_obeyed(c) && c != '\n'), "{text:?}: {shown}");
            let printed = without_commands(&shown, false);
            let is_command = |line: &str| line.trim_start().starts_with("::");
            assert!(!printed.lines().any(is_command), "{text:?}: {printed}");
            for command in ["##[", "##vso[", "##teamcity["] {
                assert!(!printed.contains(command), "{text:?}: {printed}");
            }
        }
        for line in without_commands(&json_rows(&report).expect("written"), true).lines() {
            serde_json::from_str::<Value>(line).expect("JSON");
            assert!(!line.contains("##["), "{text:?}: {line}");
        }
        let lines = test_report(&report, TestFormat::Pretty, Style::PLAIN);
        let results = lines.lines().filter(|line| line.starts_with("test ")).count();
        assert_eq!(results, report.rows.len() + 1, "{text:?}: {lines}");
    }
    let report = hostile("\u{1b}[2J");
    let report = read_document(&json(&report).expect("written")).expect("readable");
    assert!(terminal(&report, Style::PLAIN).contains("\\u{1b}[2J"), "it is not just gone");
}
