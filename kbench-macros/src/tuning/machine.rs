//! The kind of machine that a crate is compiled for.

use std::env;
use std::fs;
use std::thread;

/// Names another machine than that of the compiler.
pub(crate) const VARIABLE: &str = "KBENCH_MACHINE";

/// Such as `x86_64, Intel(R) Xeon(R) Processor, 2 cores`: the text of the runtime's `Environment::kind`, which wrote it
/// into the tuning file.
pub(super) fn kind() -> String {
    let given = env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    given.unwrap_or_else(|| {
        let bytes = fs::read("/proc/cpuinfo").unwrap_or_default();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        described(&String::from_utf8_lossy(&bytes), cores)
    })
}

fn described(cpuinfo: &str, cores: usize) -> String {
    let cpu = model(cpuinfo).unwrap_or("unknown processor");
    let noun = if cores == 1 { "core" } else { "cores" };
    format!("{}, {cpu}, {cores} {noun}", env::consts::ARCH)
}

/// What the processor is called. The key depends on the architecture; on some there is only the board's name.
fn model(cpuinfo: &str) -> Option<&str> {
    let values = |key: &'static str| {
        cpuinfo.lines().filter_map(move |line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim())
        })
    };
    ["model name", "cpu model", "cpu", "uarch", "Model", "Hardware"]
        .into_iter()
        .find_map(|key| values(key).find(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_by_architecture_model_and_cores() {
        let arch = env::consts::ARCH;
        let xeon = "processor\t: 0\nmodel\t\t: 207\nmodel name\t: Xeon: the great\n";
        assert_eq!(described(xeon, 2), format!("{arch}, Xeon: the great, 2 cores"));
        assert_eq!(described("model name\t:\nModel\t: Pi 4\n", 1), format!("{arch}, Pi 4, 1 core"));
        assert_eq!(described("", 4), format!("{arch}, unknown processor, 4 cores"));
    }
}
