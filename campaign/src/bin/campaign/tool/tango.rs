//! tango: one paired run of two copies of an executable.
//!
//! Its mark of significance counts, which rests on |z| ≥ 2.6 and its noise threshold of 1 %, both by default. Without the
//! mark it says nothing: inconclusive. The estimate is the percentage that it prints; it gives no interval. It ends with
//! exit status 1 when the other is significantly slower, which is an answer and no failure.

use std::process::{Command, ExitStatus};
use std::time::Duration;

use super::{Answer, Failure, Verdict, Workshop, process};
use crate::experiment::{Experiment, Tool};

/// Starting its processes comes on top of its time, so that it is taken off.
const ALLOWANCE: Duration = Duration::from_millis(50);

/// What is left to measure in, however short the budget.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// Runs tango once.
pub(super) fn compare(experiment: &Experiment, workshop: &Workshop) -> Result<Answer, Failure> {
    let pair = experiment.pairs()[0];
    let time = experiment.budget.saturating_sub(ALLOWANCE).max(LEAST_TIME);
    let mut command = Command::new(workshop.executable(Tool::Tango));
    command.env("CAMPAIGN_BASE", pair.base.to_string());
    command.env("CAMPAIGN_OTHER", pair.other.to_string());
    command.args(["--color", "never", "compare", "--time", &time.as_secs_f64().to_string()]);
    command.args(["--strip-candidate", "other/**", "--strip-baseline", "base/**"]);
    command.arg(workshop.copy_of_tango());
    let is_good = |status: &ExitStatus| matches!(status.code(), Some(0 | 1));
    let text = process::run_to(&mut command, experiment.budget, is_good)?;
    read(&text).ok_or(Failure::Unreadable { program: "tango", text })
}

/// The line of a benchmark ends with its difference, starred when it is significant: `+4.60%*`.
fn read(printed: &str) -> Option<Answer> {
    let line = printed.lines().find(|line| line.trim_start().starts_with("work"))?;
    let last = line.split_whitespace().last()?;
    let significant = last.ends_with('*');
    let percent: f64 = last.trim_end_matches('*').strip_suffix('%')?.parse().ok()?;
    let estimate = (percent / 100.0).ln_1p();
    let verdict = if significant { Verdict::different(estimate) } else { Verdict::Inconclusive };
    Some(Answer { estimate, interval: None, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_star_makes_the_difference() {
        let line = "work                    [ 178.6 us ... 187.1 us ]      +4.60%*\n";
        let answer = read(line).expect("readable");
        assert_eq!(answer.verdict, Verdict::DifferentSlower);
        assert!((answer.estimate - 1.046f64.ln()).abs() < 1e-12);
        let plain = read(&line.replace("+4.60%*", "-0.42%")).expect("readable");
        assert_eq!(plain.verdict, Verdict::Inconclusive);
        assert!(plain.estimate < 0.0);
        let faster = read(&line.replace('+', "-")).expect("readable");
        assert_eq!(faster.verdict, Verdict::DifferentFaster);
    }

    #[test]
    fn another_text_is_no_answer() {
        assert_eq!(read("base/work\nother/work\n"), None);
        assert_eq!(read("work [ 1 us ... 1 us ] NaN"), None);
    }
}
