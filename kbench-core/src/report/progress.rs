//! What is going on, on one line of stderr.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::units;
use crate::watch::{Planned, Stage, Watch};

/// Drawing costs time that the machine could measure in, and nobody reads faster.
const INTERVAL: Duration = Duration::from_millis(100);
/// The line is cut here, so that it never wraps.
const WIDTH: usize = 100;

/// What is planned, and a progress line with the time that is left where stderr is a terminal.
#[derive(Debug)]
pub struct Progress {
    /// Whether anything is said at all.
    speaks: bool,
    /// Whether there is a line that can be drawn again.
    enabled: bool,
    drawn: Option<Instant>,
    stage: Option<(Stage, Instant)>,
}

impl Progress {
    /// Draws on a terminal, and not under CI.
    pub fn detect() -> Self {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        let enabled = std::io::stderr().is_terminal() && !ci;
        Progress { speaks: true, enabled, drawn: None, stage: None }
    }

    /// Draws nothing.
    pub fn silent() -> Self {
        Progress { speaks: false, enabled: false, drawn: None, stage: None }
    }

    /// Wipes the line, before something else is printed.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            draw("");
        }
    }
}

impl Watch for Progress {
    fn step(&mut self, stage: Stage, done: f64, total: f64, what: &str) {
        let is_new = self.stage.is_none_or(|(former, _)| former != stage);
        let is_early = self.drawn.is_some_and(|drawn| drawn.elapsed() < INTERVAL);
        if !self.enabled || is_early && !is_new {
            return;
        }
        if is_new {
            self.stage = Some((stage, Instant::now()));
        }
        let began = self.stage.map_or_else(Instant::now, |(_, began)| began);
        self.drawn = Some(Instant::now());
        draw(&line(stage, done, total, began.elapsed().as_secs_f64(), what));
    }

    fn planned(&mut self, planned: Planned) {
        if self.speaks {
            self.clear();
            eprintln!("{}", plan_line(planned));
        }
    }
}

/// What is planned, in words.
fn plan_line(Planned { rows, launches, seconds }: Planned) -> String {
    let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    let time = units::seconds(seconds);
    match launches {
        None => format!("checking and measuring {rows} in at most {time}"),
        Some((1, 1)) => format!("measuring {rows}, 1 launch each, about {time} left"),
        Some((few, many)) if few == many => {
            format!("measuring {rows}, {few} launches each, about {time} left")
        }
        Some((few, many)) => {
            format!("measuring {rows}, {few} to {many} launches each, about {time} left")
        }
    }
}

/// Replaces the line; nobody may be listening.
fn draw(line: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "\r\x1b[2K{line}").and_then(|()| stderr.flush());
}

fn line(stage: Stage, done: f64, total: f64, passed: f64, what: &str) -> String {
    let word = match stage {
        Stage::Checking => "checking",
        Stage::Compiling => "compiling",
        Stage::Calibrating => "calibrating",
        Stage::Measuring => "measuring",
        Stage::Searching => "searching",
    };
    let share = if total > 0.0 { (done / total).clamp(0.0, 1.0) } else { 0.0 };
    let left = if share > 0.01 { units::seconds(passed / share - passed) } else { "?".to_owned() };
    let text = format!("{word:>11} {:>3.0} %  {left} left  {what}", 100.0 * share);
    text.chars().take(WIDTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_is_said_in_one_line() {
        let line = |rows, launches| plan_line(Planned { rows, launches, seconds: 95.0 });
        assert_eq!(line(929, None), "checking and measuring 929 rows in at most 1 min 35 s");
        assert_eq!(
            line(1, Some((7, 7))),
            "measuring 1 row, 7 launches each, about 1 min 35 s left"
        );
        assert_eq!(
            line(9, Some((5, 40))),
            "measuring 9 rows, 5 to 40 launches each, about 1 min 35 s left"
        );
    }

    #[test]
    fn the_line_tells_stage_share_and_time_left() {
        assert_eq!(
            line(Stage::Measuring, 30.0, 120.0, 30.0, "saxpy"),
            "  measuring  25 %  1 min 30 s left  saxpy"
        );
        assert!(line(Stage::Checking, 0.0, 1.0, 0.0, &"x".repeat(500)).chars().count() <= 100);
    }
}
