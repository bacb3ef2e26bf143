//! How busy the machine is, and with whose work.

use super::root::Root;

/// Load average of the last minute.
pub(super) fn average(root: &Root) -> Option<f64> {
    root.text("proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

/// Shorter spans say nothing, for the kernel counts in steps of 10 ms and its own work weighs too much.
const SHORTEST_TICKS: u64 = 50;

/// How the processors have spent their time since the machine started, in ticks of usually 10 ms.
///
/// ```no_run
/// # fn measure() {}
/// use kbench_worker::environment::CpuTimes;
///
/// let before = CpuTimes::read();
/// measure();
/// let usage = CpuTimes::read().zip(before).and_then(|(after, before)| after.usage_since(&before));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// All time of all processors.
    pub total: u64,
    /// Time in which they had nothing to do.
    pub idle: u64,
    /// Time in which the hypervisor ran something else.
    pub steal: u64,
    /// Time that this process has used, those of its children that have ended, and processes that were named.
    pub own: u64,
    /// Logical processors of the machine.
    pub processors: u64,
}

/// Who used the processors during some span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Share of all time that the hypervisor took away.
    pub steal_share: f64,
    /// Processors that other processes and the kernel kept busy on average.
    pub others: f64,
}

impl CpuTimes {
    /// Looks at the counters, where the system has them.
    pub fn read() -> Option<Self> {
        Self::read_with(&[])
    }

    /// The same, where the time of some processes and of all that they have started is this one's as well.
    pub fn read_with(processes: &[u32]) -> Option<Self> {
        Self::read_below(&Root::machine(), processes)
    }

    fn read_below(root: &Root, processes: &[u32]) -> Option<Self> {
        // The own time first: what passes between the two counts as others', if little enough not to matter.
        let own = root.text("proc/self/stat").and_then(|stat| own_ticks(&stat))?;
        let theirs = processes.iter().map(|process| family_ticks(root, *process));
        let own = theirs.fold(own, u64::saturating_add);
        Self::parse(&root.text("proc/stat")?, own)
    }

    /// From `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user and nice.
    fn parse(stat: &str, own: u64) -> Option<Self> {
        let all = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            all.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[_, _, _, idle, waiting, _, _, steal] = ticks.as_slice() else { return None };
        let processors = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
        Some(CpuTimes {
            total: sum(&ticks),
            idle: sum(&[idle, waiting]),
            steal,
            own,
            processors: processors.max(1) as u64,
        })
    }

    /// What happened since an earlier look; none when that is too short ago to tell.
    pub fn usage_since(&self, earlier: &CpuTimes) -> Option<Usage> {
        // Some counters may step back: the kernel estimates them.
        let since = |of: fn(&CpuTimes) -> u64| of(self).saturating_sub(of(earlier));
        let total = since(|times| times.total);
        if total / self.processors.max(1) < SHORTEST_TICKS {
            return None;
        }
        let steal = since(|times| times.steal);
        let known = sum(&[since(|times| times.idle), steal, since(|times| times.own)]);
        let share = |ticks: u64| ticks as f64 / total as f64;
        Some(Usage {
            steal_share: share(steal),
            others: share(total.saturating_sub(known)) * self.processors as f64,
        })
    }
}

/// From `/proc/self/stat`: time in user and kernel mode, of the process and of its children that have ended.
fn own_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses, and may hold anything; time is in fields 14 to 17.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: Vec<u64> =
        fields.skip(14 - 3).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 4).then(|| sum(&ticks))
}

/// Time of a process, of its children that have ended, and of those that run.
fn family_ticks(root: &Root, process: u32) -> u64 {
    let own = root.text(format!("proc/{process}/stat")).and_then(|stat| own_ticks(&stat));
    let children = root.text(format!("proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.fold(own.unwrap_or(0), |sum, child| sum.saturating_add(family_ticks(root, child)))
}

/// The sum of counters, which some kernels let run below zero: such a one is huge.
fn sum(ticks: &[u64]) -> u64 {
    ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks))
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    const STAT: &str = "cpu  700 10 50 1200 20 1 9 50 300 0\ncpu0 1 2\ncpu1 1 2\nintr 5\ncpufoo\n";
    const SELF: &str = "42 (odd) name (x) R 1 1 1 0 -1 4194560 88 0 0 0 31 12 5 2 20 0 1 0\n";

    #[test]
    fn load_is_the_first_of_the_averages() {
        let told = |text| average(&Fake::new(&[("proc/loadavg", text)]).root());
        assert_eq!(told("0.35 0.20 0.10 3/80 27179\n"), Some(0.35));
        assert_eq!([told(""), told("much\n")], [None; 2]);
    }

    #[test]
    fn counters_are_read_in_full_or_not_at_all() {
        let read = |stat, own| {
            let fake = Fake::new(&[("proc/stat", stat), ("proc/self/stat", own)]);
            CpuTimes::read_below(&fake.root(), &[])
        };
        let expected = CpuTimes { total: 2040, idle: 1220, steal: 50, own: 50, processors: 2 };
        assert_eq!(read(STAT, SELF), Some(expected));
        for stat in ["", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 x\n", "cpu0 1 2 3 4 5 6 7 8\n"] {
            assert_eq!(read(stat, SELF), None, "{stat}");
        }
        assert_eq!([read(STAT, ""), read(STAT, "42 (x) R 1 1")], [None; 2]);
    }

    #[test]
    fn time_of_named_processes_and_of_all_that_they_have_started_is_own_time() {
        let fake = Fake::new(&[
            ("proc/stat", STAT),
            ("proc/self/stat", SELF),
            ("proc/7/stat", SELF),
            ("proc/7/task/7/children", "8 9 "),
            ("proc/8/stat", SELF),
            ("proc/8/task/8/children", ""),
            ("proc/9/task/9/children", "10"),
            ("proc/10/stat", SELF),
        ]);
        let own = |processes| CpuTimes::read_below(&fake.root(), processes).map(|times| times.own);
        assert_eq!(
            [own(&[]), own(&[8]), own(&[7]), own(&[11])].map(Option::unwrap),
            [50, 100, 200, 50]
        );
    }

    #[test]
    fn time_is_divided_among_steal_own_and_others() {
        let before = CpuTimes { total: 5_000, idle: 4_000, steal: 10, own: 100, processors: 4 };
        let after = CpuTimes { total: 9_000, idle: 6_000, steal: 110, own: 1_000, processors: 4 };
        let usage = after.usage_since(&before).unwrap();
        assert_eq!(usage, Usage { steal_share: 0.025, others: 1.0 });
    }

    #[test]
    fn a_short_span_and_counters_that_step_back_tell_nothing_wrong() {
        let before = CpuTimes { total: 5_000, idle: 4_000, steal: 10, own: 100, processors: 4 };
        assert_eq!(CpuTimes { total: 5_199, ..before }.usage_since(&before), None);
        assert_eq!(before.usage_since(&CpuTimes { total: 5_200, ..before }), None);
        let huge = "cpu  18446744073709551615 1 1 18446744073709551615 9 1 1 1\n";
        let huge = CpuTimes::parse(huge, 0).unwrap();
        assert_eq!(huge.usage_since(&before).map(|usage| usage.others), Some(0.0));
        let odd = CpuTimes { total: 5_400, idle: 3_999, steal: 9, own: 600, processors: 4 };
        assert_eq!(odd.usage_since(&before), Some(Usage { steal_share: 0.0, others: 0.0 }));
    }
}
