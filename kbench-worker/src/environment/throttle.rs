//! How often the processors were held back, by their heat or by a quota.

use super::container;
use super::root::Root;

/// Counts that only grow; what the system does not count is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Times that a core was slowed down because it was too hot.
    pub heat: Option<u64>,
    /// Periods in which the control group was stopped because it had used up its time.
    pub quota: Option<u64>,
}

impl Throttling {
    /// All that has happened so far.
    pub fn read() -> Self {
        Self::read_from(&Root::machine())
    }

    fn read_from(root: &Root) -> Self {
        let folders = (0..).map(|cpu| format!("sys/devices/system/cpu/cpu{cpu}"));
        let cores = folders.map_while(|folder| root.has(&folder).then_some(folder));
        let counts = cores.filter_map(|core| {
            root.line(format!("{core}/thermal_throttle/core_throttle_count"))?.parse().ok()
        });
        let heat = counts.reduce(|all: u64, count| all + count);
        Throttling { heat, quota: container::stopped_periods(root) }
    }

    /// What has happened since an earlier reading.
    pub fn since(self, earlier: Throttling) -> Self {
        let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Throttling { heat: grown(self.heat, earlier.heat), quota: grown(self.quota, earlier.quota) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    #[test]
    fn cores_are_added_up_and_the_group_that_was_stopped_most_counts() {
        let files = [
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
            ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n"),
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 5\n"),
            ("sys/fs/cgroup/outer/inner/cpu.stat", "usage_usec 9\n"),
        ];
        let now = Throttling::read_from(&Fake::new(&files).root());
        assert_eq!(now, Throttling { heat: Some(7), quota: Some(5) });
        let before = Throttling { heat: Some(6), quota: None };
        assert_eq!(now.since(before), Throttling { heat: Some(1), quota: None });
        let nothing = Throttling::read_from(&Fake::new(&[]).root());
        assert_eq!(nothing, Throttling::default());
    }
}
