//! Memory that can still be had.

use std::path::Path;

use super::container::folders;
use super::root::Root;

/// Bytes that could be had now without taking them from others; none where nobody tells.
pub fn free_memory() -> Option<u64> {
    free(&Root::machine())
}

/// What the machine has, or less where a control group is the tighter fence.
fn free(root: &Root) -> Option<u64> {
    let machine = available(&root.text("proc/meminfo")?)?;
    let groups = folders(root, "memory").into_iter();
    Some(groups.filter_map(|folder| left(root, &folder)).fold(machine, u64::min))
}

/// `MemAvailable:   12345 kB`.
fn available(figures: &str) -> Option<u64> {
    let line = figures.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What a control group may still take; none where it has no limit. Version 1 of control groups writes a number beyond all
/// memory for no limit, version 2 `max`.
fn left(root: &Root, folder: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> { root.line(folder.join(name))?.parse().ok() };
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let cached = root.text(folder.join("memory.stat")).map_or(0, |figures| cached(&figures));
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// Bytes that hold files, which the system gives up when somebody needs them: `active_file 1234`. In version 1 those of the
/// groups below are in `total_active_file`.
fn cached(figures: &str) -> u64 {
    let figure = |name: &str| -> Option<u64> {
        let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    };
    let either = |name: &str| figure(&format!("total_{name}")).or_else(|| figure(name));
    let parts = ["active_file", "inactive_file"].into_iter().filter_map(either);
    parts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal: 16000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n");

    fn free_with(files: &[(&str, &str)]) -> Option<u64> {
        free(&Fake::new(&[&[MACHINE], files].concat()).root())
    }

    #[test]
    fn the_tightest_fence_counts() {
        assert_eq!(free_with(&[]), Some(8000 << 10));
        let group = [
            ("proc/self/cgroup", "0::/jobs/one"),
            ("sys/fs/cgroup/jobs/memory.max", "5000000"),
            ("sys/fs/cgroup/jobs/memory.current", "1000000"),
            ("sys/fs/cgroup/jobs/one/memory.max", "max"),
            ("sys/fs/cgroup/jobs/one/memory.current", "900000"),
        ];
        assert_eq!(free_with(&group), Some(4_000_000));
        let former = [
            ("proc/self/cgroup", "4:memory:/one"),
            ("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "700"),
            ("sys/fs/cgroup/memory/one/memory.usage_in_bytes", "900"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "900"),
        ];
        assert_eq!(free_with(&former), Some(0));
        let files = "cache 300\nactive_file 1\ninactive_file 2\ntotal_active_file 100\ntotal_inactive_file 200\n";
        let with_files = ("sys/fs/cgroup/memory/one/memory.stat", files);
        assert_eq!(free_with(&[&former[..], &[with_files]].concat()), Some(100));
        let modern = (
            "sys/fs/cgroup/jobs/memory.stat",
            "anon 5\nactive_file 400000\ninactive_file 100000\n",
        );
        assert_eq!(free_with(&[&group[..], &[modern]].concat()), Some(4_500_000));
    }
}
