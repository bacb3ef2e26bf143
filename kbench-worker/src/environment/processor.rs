//! The processor: model, cores, caches, and what moves its frequency.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::root::Root;

/// Where Linux describes its processors.
const PROCESSORS: &str = "sys/devices/system/cpu";

/// The text of `/proc/cpuinfo`: lines of `key : value`, one paragraph for every logical processor.
pub(super) struct CpuInfo(String);

impl CpuInfo {
    pub(super) fn read(root: &Root) -> Self {
        CpuInfo(root.text("proc/cpuinfo").unwrap_or_default())
    }

    /// What the processor is called. The key depends on the architecture; on some there is only the board's name.
    pub(super) fn model(&self) -> Option<&str> {
        ["model name", "cpu model", "cpu", "uarch", "Model", "Hardware"]
            .into_iter()
            .find_map(|key| self.values(key).find(|value| !value.is_empty()))
    }

    /// Distinct cores of all sockets.
    pub(super) fn physical_cores(&self) -> Option<usize> {
        let sockets = self.values("physical id");
        let cores: HashSet<(&str, &str)> = sockets.zip(self.values("core id")).collect();
        (!cores.is_empty()).then_some(cores.len())
    }

    /// Whether the flags say that a hypervisor is below; only x86 has such a flag.
    pub(super) fn hypervisor(&self) -> Option<bool> {
        let flags = self.values("flags").next()?;
        Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
    }

    /// Revision of the microcode; only x86 tells it here.
    pub(super) fn microcode(&self) -> Option<&str> {
        self.values("microcode").next()
    }

    fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.lines().filter_map(move |line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim())
        })
    }
}

/// A set of logical processors, as ranges from first to last.
#[derive(Debug, PartialEq)]
pub(super) struct Processors(Vec<(usize, usize)>);

impl Processors {
    /// Those that this process may be placed on.
    pub(super) fn allowed(root: &Root) -> Option<Self> {
        let status = root.text("proc/self/status")?;
        Self::parse(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
    }

    /// A list as the kernel writes it: `0-3,8`.
    fn parse(list: &str) -> Option<Self> {
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some((first, last))
        };
        list.split(',').map(range).collect::<Option<_>>().map(Processors)
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.0.iter().map(|(first, _)| *first).min()
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().fold(0, |count: usize, (first, last)| {
            count.saturating_add(last - first).saturating_add(1)
        })
    }
}

/// Bytes of memory that the kernel can use.
pub(super) fn memory(root: &Root) -> Option<u64> {
    let text = root.text("proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// How the frequency of a processor is chosen.
pub(super) fn governor(root: &Root, processor: usize) -> Option<String> {
    root.line(format!("{PROCESSORS}/cpu{processor}/cpufreq/scaling_governor"))
}

/// Whether the nominal frequency may be exceeded: Intel's driver says when not, the others when.
pub(super) fn turbo(root: &Root) -> Option<bool> {
    let switch = |path: &str| match root.line(format!("{PROCESSORS}/{path}"))?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    switch("intel_pstate/no_turbo").map(|off| !off).or_else(|| switch("cpufreq/boost"))
}

/// Sizes of caches in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// First level, for data.
    pub l1d: Option<u64>,
    /// Second level.
    pub l2: Option<u64>,
    /// Third level, usually shared by several cores.
    pub l3: Option<u64>,
}

impl Caches {
    /// The caches that a processor sees.
    pub(super) fn read(root: &Root, processor: usize) -> Self {
        let mut caches = Caches::default();
        for index in 0.. {
            let entry = |name: &str| {
                root.line(format!("{PROCESSORS}/cpu{processor}/cache/index{index}/{name}"))
            };
            let Some(level) = entry("level") else { break };
            let holds_data = entry("type").is_some_and(|kind| kind != "Instruction");
            let size = entry("size").and_then(|size| bytes(&size));
            match level.as_str() {
                "1" if holds_data => caches.l1d = size,
                "2" if holds_data => caches.l2 = size,
                "3" if holds_data => caches.l3 = size,
                _ => {}
            }
        }
        caches
    }
}

/// A size as the kernel writes it: `48K`.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    /// Two sockets of two cores with two threads each.
    fn eight_processors() -> CpuInfo {
        processors(8)
    }

    /// Two sockets with two threads on each core.
    fn processors(count: usize) -> CpuInfo {
        let paragraph = |n: usize| {
            let (socket, core) = (2 * n / count, n % (count / 4).max(1));
            format!(
                "processor\t: {n}\nmodel\t\t: 207\nmodel name\t: Xeon: the great\nphysical id\t: {socket}\n\
                 core id\t\t: {core}\nflags\t\t: fpu hypervisor_not sse\n\n"
            )
        };
        CpuInfo((0..count).map(paragraph).collect())
    }

    #[test]
    fn one_processor_and_512_are_counted() {
        assert_eq!(processors(1).physical_cores(), Some(1));
        assert_eq!(processors(512).physical_cores(), Some(256));
    }

    #[test]
    fn an_x86_processor_tells_model_cores_and_hypervisor() {
        let info = eight_processors();
        assert_eq!(info.model(), Some("Xeon: the great"));
        assert_eq!(info.physical_cores(), Some(4));
        assert_eq!(info.hypervisor(), Some(false));
        let guest = CpuInfo("flags\t: fpu hypervisor sse\n".into());
        assert_eq!(guest.hypervisor(), Some(true));
    }

    #[test]
    fn an_arm_board_tells_its_model_and_no_more() {
        let info = CpuInfo(
            "processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd08\n\nModel\t: Pi 4\n".into(),
        );
        assert_eq!(info.model(), Some("Pi 4"));
        assert_eq!((info.physical_cores(), info.hypervisor()), (None, None));
    }

    #[test]
    fn lists_of_processors_are_read_as_the_kernel_writes_them() {
        let told = |list| Processors::parse(list).map(|p| (p.first(), p.count()));
        assert_eq!(told("0"), Some((Some(0), 1)));
        assert_eq!(told("\t4-7,16,32-33"), Some((Some(4), 7)));
        assert_eq!([told(""), told("a-b"), told("7-4")], [None; 3]);
    }

    #[test]
    fn turbo_is_told_by_either_driver() {
        let told = |file: &str, text: &str| {
            turbo(&Fake::new(&[(&format!("{PROCESSORS}/{file}"), text)]).root())
        };
        let intel = "intel_pstate/no_turbo";
        assert_eq!((told(intel, "0\n"), told(intel, "1\n")), (Some(true), Some(false)));
        let others = "cpufreq/boost";
        assert_eq!((told(others, "1\n"), told(others, "0\n")), (Some(true), Some(false)));
        assert_eq!((told(others, "maybe\n"), told("else", "1\n")), (None, None));
    }

    #[test]
    fn caches_are_those_that_hold_data() {
        let entry =
            |index: usize, name: &str| format!("{PROCESSORS}/cpu1/cache/index{index}/{name}");
        let caches = [("1", "Instruction", "32K"), ("1", "Data", "48K"), ("3", "Unified", "300M")];
        let mut files = Vec::new();
        for (index, (level, kind, size)) in caches.into_iter().enumerate() {
            files.push((entry(index, "level"), level));
            files.push((entry(index, "type"), kind));
            files.push((entry(index, "size"), size));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let fake = Fake::new(&files);
        let expected = Caches { l1d: Some(48 << 10), l2: None, l3: Some(300 << 20) };
        assert_eq!(Caches::read(&fake.root(), 1), expected);
        assert_eq!(Caches::read(&fake.root(), 0), Caches::default());
    }

    #[test]
    fn sizes_that_are_none_are_not_guessed() {
        assert_eq!([bytes("64"), bytes("1G")], [Some(64), Some(1 << 30)]);
        assert_eq!([bytes(""), bytes("K"), bytes("4 KB"), bytes("99999999999999999G")], [None; 4]);
    }
}
