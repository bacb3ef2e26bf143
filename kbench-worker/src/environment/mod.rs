//! The machine and the build that a run was made with, and what makes its figures doubtful.
//!
//! What the system does not tell is `None`; nothing here fails, and nothing starts a process. All files of the system are
//! read below a root that tests replace, and what their texts mean is said by plain functions.

mod build;
mod container;
mod doubt;
mod git;
mod load;
mod memory;
mod processor;
mod root;
mod throttle;

pub use build::{target_name, this_program};
pub use container::Container;
pub use doubt::Conduct;
pub use load::{CpuTimes, Usage};
pub use memory::free_memory;
pub use processor::Caches;
pub use throttle::Throttling;

use std::env;
use std::path::Path;
use std::thread;

use serde::{Deserialize, Serialize};

use processor::{CpuInfo, Processors};
use root::Root;

use crate::hash::fnv64;

/// Where and with what a run was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// A key of the machine: the same for the same processors and memory, whatever its name is today.
    pub machine: String,
    /// Model of the processor.
    pub cpu: String,
    /// Threads that this process can run at once, by its affinity and its quota.
    pub cores: usize,
    /// Physical cores of the machine: hyper-threads of one core count once.
    pub cores_physical: Option<usize>,
    /// Logical processors that this process may be placed on, whatever its quota.
    pub processors: Option<usize>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// Sizes of the caches that one core sees.
    pub caches: Caches,
    /// How the kernel chooses the frequency, such as `performance` or `powersave`.
    pub governor: Option<String>,
    /// Whether the processor may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// Load average of the last minute, at the time of reading.
    pub load: Option<f64>,
    /// Cores whose time the control group may use.
    pub quota: Option<f64>,
    /// The container that the process is in; none when there is no sign of one.
    pub container: Option<Container>,
    /// Whether the processor is one of a virtual machine.
    pub hypervisor: Option<bool>,
    /// The kernel and its release.
    pub os: Option<String>,
    /// Operating system and architecture.
    pub target: String,
    /// The compiler.
    pub rustc: String,
    /// Optimisation level that kbench was built with.
    pub opt_level: String,
    /// Flags that the compiler was given by `RUSTFLAGS` or cargo's configuration; empty when none were.
    pub rustflags: String,
    /// The processor that the flags compile for; the least of its architecture when they name none.
    pub target_cpu: Option<String>,
    /// Version of kbench.
    pub kbench: String,
    /// The commit that is checked out around the current directory. Files may differ from it.
    pub git_commit: Option<String>,
}

impl Environment {
    /// Looks at this machine.
    pub fn read() -> Self {
        let here = env::current_dir().ok();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::read_below(&Root::machine(), here.as_deref(), cores)
    }

    /// Looks at the machine whose files are below a root, from a directory in it.
    fn read_below(root: &Root, here: Option<&Path>, cores: usize) -> Self {
        let info = CpuInfo::read(root);
        let allowed = Processors::allowed(root);
        let first = allowed.as_ref().and_then(Processors::first).unwrap_or(0);
        let cpu = info.model().unwrap_or("unknown processor").to_owned();
        let memory_bytes = processor::memory(root);
        Environment {
            machine: machine(&cpu, cores, memory_bytes),
            cpu,
            cores,
            cores_physical: info.physical_cores(),
            processors: allowed.as_ref().map(Processors::count),
            memory_bytes,
            microcode: info.microcode().map(str::to_owned),
            caches: Caches::read(root, first),
            governor: processor::governor(root, first),
            turbo: processor::turbo(root),
            load: load::average(root),
            quota: container::quota(root),
            container: Container::read(root),
            hypervisor: info.hypervisor(),
            os: os(root),
            target: build::TARGET.to_owned(),
            rustc: build::RUSTC.to_owned(),
            opt_level: build::OPT_LEVEL.to_owned(),
            rustflags: build::RUSTFLAGS.to_owned(),
            target_cpu: build::target_cpu(build::RUSTFLAGS).map(str::to_owned),
            kbench: env!("CARGO_PKG_VERSION").to_owned(),
            git_commit: here.and_then(git::commit),
        }
    }

    /// The kind of machine that a measured threshold holds for, such as `x86_64, Fast 9000, 2 cores`. The macros put the
    /// same text together when they look for it in the tuning file.
    pub fn kind(&self) -> String {
        if let Some(named) = env::var(MACHINE).ok().filter(|name| !name.is_empty()) {
            return named;
        }
        let (cpu, cores) = (&self.cpu, self.cores);
        let noun = if cores == 1 { "core" } else { "cores" };
        format!("{}, {cpu}, {cores} {noun}", env::consts::ARCH)
    }
}

/// The variable that names the kind of machine, where builds and runs have to agree on another name.
pub const MACHINE: &str = "KBENCH_MACHINE";

/// The key of a machine. A few megabytes of memory come and go with the kernel's release, so gibibytes count.
fn machine(cpu: &str, cores: usize, memory_bytes: Option<u64>) -> String {
    let gibibytes =
        memory_bytes.map_or(0, |bytes| (bytes as f64 / f64::from(1 << 30)).round() as u64);
    let text = format!("{}/{cpu}/{cores}/{gibibytes}", env::consts::ARCH);
    format!("{:012x}", fnv64(text.as_bytes()) >> 16)
}

fn os(root: &Root) -> Option<String> {
    let kernel = root.line("proc/sys/kernel/ostype")?;
    let release = root.line("proc/sys/kernel/osrelease")?;
    Some(format!("{kernel} {release}"))
}

#[cfg(test)]
mod tests {
    use super::root::Fake;
    use super::*;

    #[test]
    fn a_machine_that_tells_nothing_is_read_all_the_same() {
        let fake = Fake::new(&[]);
        let environment = Environment::read_below(&fake.root(), Some(fake.path()), 3);
        assert_eq!((environment.cpu.as_str(), environment.cores), ("unknown processor", 3));
        let told = serde_json::to_value(&environment).unwrap();
        for field in
            "cores_physical processors governor turbo load quota container hypervisor os".split(' ')
        {
            assert_eq!(told.get(field), Some(&serde_json::Value::Null), "{field}");
        }
        assert_eq!(environment.caches, Caches::default());
    }

    #[test]
    fn a_machine_that_tells_everything_is_described_in_full() {
        let cache = "sys/devices/system/cpu/cpu2/cache";
        let fake = Fake::new(&[
            (
                "proc/cpuinfo",
                "model name\t: Fast 9000\nphysical id\t: 0\ncore id\t: 0\nflags\t: sse hypervisor\n",
            ),
            ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t2-5\n"),
            ("proc/self/cgroup", "0::/job\n"),
            ("proc/loadavg", "0.25 0.35 0.97 3/80 27179\n"),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            (&format!("{cache}/index0/level"), "1\n"),
            (&format!("{cache}/index0/type"), "Data\n"),
            (&format!("{cache}/index0/size"), "48K\n"),
            ("run/.containerenv", ""),
            ("repository/.git/HEAD", "0123456789012345678901234567890123456789\n"),
        ]);
        let here = fake.path().join("repository");
        let told =
            serde_json::to_value(Environment::read_below(&fake.root(), Some(&here), 1)).unwrap();
        let expected = serde_json::json!({
            "cpu": "Fast 9000", "cores": 1, "cores_physical": 1, "processors": 4,
            "caches": { "l1d": 49152, "l2": null, "l3": null },
            "governor": "powersave", "turbo": true, "load": 0.25, "quota": 1.5,
            "container": "podman", "hypervisor": true, "os": "Linux 6.1.0-13-amd64",
            "git_commit": "0123456789012345678901234567890123456789",
        });
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&told[field], value, "{field}");
        }
    }

    #[test]
    fn the_kind_of_a_machine_is_architecture_model_and_cores() {
        let kind = |files: &[(&str, &str)], cores| {
            let fake = Fake::new(files);
            Environment::read_below(&fake.root(), None, cores).kind()
        };
        let arch = env::consts::ARCH;
        let fast = [("proc/cpuinfo", "model name\t: Fast 9000\n")];
        assert_eq!(kind(&fast, 2), format!("{arch}, Fast 9000, 2 cores"));
        assert_eq!(kind(&[], 1), format!("{arch}, unknown processor, 1 core"));
    }

    #[test]
    fn this_machine_is_read_in_a_moment() {
        Environment::read();
        let started = std::time::Instant::now();
        let environment = Environment::read();
        assert!(started.elapsed().as_millis() < 100, "took {:?}", started.elapsed());
        assert!(environment.cores >= 1 && !environment.target.is_empty());
    }
}
