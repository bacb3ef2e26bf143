//! Whether figures of one machine may be held against those of another.

use crate::cuda::DeviceInfo;
use crate::environment::Environment;
use crate::report::Report;

/// What figures depend on, apart from the program.
pub struct Machine<'a> {
    /// The machine.
    pub environment: &'a Environment,
    /// Its device, where one was used.
    pub device: Option<&'a DeviceInfo>,
}

impl<'a> Machine<'a> {
    /// The machine of a run.
    pub fn of(report: &'a Report) -> Self {
        let device = report.device.as_ref().map(|device| &device.info);
        Machine { environment: &report.environment, device }
    }
}

/// What tells two machines apart, in words; empty when nothing does.
pub fn differences(then: &Machine<'_>, now: &Machine<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, then: Option<String>, now: Option<String>| {
        // What one of them does not tell is no difference.
        if let (Some(then), Some(now)) = (then, now)
            && then != now
        {
            found.push(format!("{what} `{then}` then, `{now}` now"));
        }
    };
    let (a, b) = (then.environment, now.environment);
    compare("processor", Some(a.cpu.clone()), Some(b.cpu.clone()));
    compare("cores", Some(a.cores.to_string()), Some(b.cores.to_string()));
    compare("microcode", a.microcode.clone(), b.microcode.clone());
    compare("governor", a.governor.clone(), b.governor.clone());
    if let (Some(a), Some(b)) = (then.device, now.device) {
        compare("GPU", Some(a.name.clone()), Some(b.name.clone()));
        compare("GPU driver", a.driver.clone(), b.driver.clone());
        compare("CUDA", Some(a.cuda.clone()), Some(b.cuda.clone()));
    }
    found
}
