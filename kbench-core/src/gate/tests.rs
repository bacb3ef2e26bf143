use super::*;
use crate::report::{ChangeReport, Status};
use crate::store::read_document;

/// A run whose rows changed so: low, estimate, high.
fn run(changes: &[(&str, [f64; 3])]) -> Report {
    let fixture = include_str!("../store/fixtures/schema-1.json");
    let mut report = read_document(fixture).expect("readable");
    report.rows.truncate(changes.len());
    for (row, (verdict, [low, value, high])) in report.rows.iter_mut().zip(changes) {
        row.change = ChangeReport {
            change: Some(*value),
            change_low: Some(*low),
            change_high: Some(*high),
            change_verdict: Some((*verdict).to_owned()),
            ..ChangeReport::default()
        };
    }
    report
}

fn counts(policy: &str, report: &Report) -> [usize; 3] {
    let Ruling { blocked, to_explain, open, .. } =
        policy.parse::<Policy>().expect("fine").judge(report);
    [blocked.len(), to_explain.len(), open.len()]
}

#[test]
fn only_what_is_verified_to_be_beyond_the_limit_fails() {
    let verified = run(&[("slower", [0.06, 0.08, 0.10])]);
    assert_eq!(counts("5%", &verified), [1, 0, 0]);
    assert_eq!(counts("7%", &verified), [0, 0, 1], "it may be beyond, or not");
    assert_eq!(counts("20%", &verified), [0, 0, 0]);
    for verdict in ["advisory slower", "provisional slower", "inconclusive"] {
        assert_eq!(counts("5%", &run(&[(verdict, [0.06, 0.08, 0.10])])), [0, 0, 1], "{verdict}");
    }
    assert_eq!(counts("5%", &run(&[("faster", [-0.3, -0.2, -0.1])])), [0, 0, 0]);
}

#[test]
fn the_policy_of_reviews_has_a_limit_to_explain_and_one_to_fail() {
    let rows = [
        ("slower", [0.01, 0.03, 0.04]),
        ("slower", [0.06, 0.07, 0.08]),
        ("slower", [0.11, 0.12, 0.13]),
    ];
    assert_eq!(counts("review", &run(&rows)), [1, 1, 0]);
}

#[test]
fn memory_and_crossovers_have_limits_of_their_own() {
    let mut report = run(&[("equivalent", [0.0, 0.0, 0.0]), ("equivalent", [0.0, 0.0, 0.0])]);
    report.rows[0].change.memory_change = Some(0.15);
    report.rows[1].change.memory_change = Some(0.25);
    assert_eq!(counts("50%", &report), [1, 0, 0]);
    let shift = |then: Option<[f64; 2]>, now: Option<[f64; 2]>, octaves| ShiftReport {
        kernel: "a::b".into(),
        element: "f32".into(),
        variant: "rayon".into(),
        held: String::new(),
        then,
        now,
        wins_everywhere: false,
        octaves,
    };
    let fixture = include_str!("../store/fixtures/schema-1.json");
    let baseline = crate::baseline::Baseline {
        name: "main".into(),
        report: read_document(fixture).expect("readable"),
    };
    let mut report = run(&[]);
    baseline.put_beside(&mut report, crate::baseline::Comparison::Interleaved);
    let shifts = &mut report.baseline.as_mut().expect("put there").shifts;
    *shifts = vec![
        shift(Some([1.0, 2.0]), Some([8.0, 16.0]), Some(2.0)),
        shift(Some([1.0, 2.0]), Some([3.0, 4.0]), Some(0.5)),
        shift(Some([8.0, 16.0]), Some([1.0, 2.0]), Some(-2.0)),
        shift(Some([1.0, 2.0]), None, None),
    ];
    assert_eq!(counts("50%", &report), [1, 0, 1]);
}

#[test]
fn a_summary_has_the_verdict_first_and_names_stay_text() {
    let mut report = run(&[("slower", [0.06, 0.08, 0.10]), ("equivalent", [0.0, 0.001, 0.002])]);
    report.rows[0].name = "a::b/<script>|x_y/f32/n=1\n# @all".into();
    let ruling = "5%".parse::<Policy>().expect("fine").judge(&report);
    let text = summary(&report, Some(&ruling));
    assert!(text.starts_with("### kbench: ❌ 1 beyond a limit"), "{text}");
    assert!(text.contains("&lt;script&gt;\\|x\\_y") && !text.contains("<script>"), "{text}");
    assert!(!text.contains("@all") && !text.contains("\n# "), "{text}");
    assert!(text.contains("<details><summary>1 without a change"), "{text}");
    let undecided = run(&[("provisional slower", [0.06, 0.08, 0.10])]);
    let ruling = "5%".parse::<Policy>().expect("fine").judge(&undecided);
    let text = summary(&undecided, Some(&ruling));
    assert!(text.starts_with("### kbench: ⚠️ 1 not decided"), "{text}");
    report.rows[1].status = Status::Failed("wrong by 3".into());
    let text = summary(&report, Some(&ruling));
    assert!(text.contains("wrong by 3"), "{text}");
    let passing = summary(&run(&[]), Some(&Ruling::default()));
    assert!(passing.starts_with("### kbench: ✅ 0 rows measured"), "{passing}");
}

/// A run beside a baseline of which some rows are gone.
fn beside(changes: &[(&str, [f64; 3])], gone: &[&str]) -> Report {
    let baseline = BaselineReport {
        name: "main".into(),
        run: "earlier".into(),
        started: 0,
        git_commit: None,
        method: crate::report::Method::Interleaved,
        reason: None,
        gone: gone.iter().map(|&key| key.into()).collect(),
        fresh: Vec::new(),
        shifts: Vec::new(),
    };
    Report { baseline: Some(baseline), ..run(changes) }
}

#[test]
fn a_gate_that_compares_less_than_the_baseline_has_fails() {
    let same = ("equivalent", [0.0, 0.0, 0.0]);
    let blocked = |report: &Report| Policy::judge(&"5%".parse().expect("fine"), report).blocked;
    assert_eq!(blocked(&beside(&[same], &[])), [""; 0]);
    let [gone] = &blocked(&beside(&[same], &["a::b/c/f32/n=1"]))[..] else { panic!("not one") };
    assert!(
        gone.ends_with("n=1: not compared, it is in the baseline and not in this run"),
        "{gone}"
    );

    let mut lost = beside(&[same, same], &[]);
    lost.rows[1].change = ChangeReport::default();
    let [line] = &blocked(&lost)[..] else { panic!("not one") };
    assert!(line.ends_with("not compared, see its remark"), "{line}");
    let fresh = lost.rows[1].key().to_string();
    lost.baseline.as_mut().expect("one").fresh.push(fresh);
    assert_eq!(blocked(&lost), [""; 0], "the baseline does not have it");

    let mut nothing = beside(&[same], &[]);
    nothing.rows[0].change = ChangeReport::default();
    let [line] = &blocked(&nothing)[..] else { panic!("not one") };
    assert_eq!(line, "nothing was compared with `main`: no row is in both");
}
