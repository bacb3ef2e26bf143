//! How a process ended, in words that help.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What the system says of a process that ended.
pub(crate) fn of_status(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => of_signal(signal),
        (None, Some(code)) => format!("it called `exit({code})`"),
        (None, None) => status.to_string(),
    }
}

/// Whether it was ended by a signal that comes from elsewhere: from the system when memory is short, or from a person.
pub(crate) fn is_by_others(status: ExitStatus) -> bool {
    let signals = [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
    status.signal().is_some_and(|signal| signals.contains(&signal))
}

fn of_signal(signal: i32) -> String {
    let (name, meaning) = match signal {
        libc::SIGSEGV => (
            "SIGSEGV",
            "it touched memory that is not its own, relied on more alignment than the type has, or overflowed its stack",
        ),
        libc::SIGBUS => ("SIGBUS", "it touched memory that is not there"),
        libc::SIGILL => ("SIGILL", "an instruction that this processor does not have"),
        libc::SIGFPE => ("SIGFPE", "a division that has no result"),
        libc::SIGABRT => ("SIGABRT", "it, or a library that it calls, gave up"),
        libc::SIGTRAP => ("SIGTRAP", "it ran into a trap"),
        libc::SIGKILL => {
            ("SIGKILL", "somebody killed it, the system when memory was short or a person")
        }
        libc::SIGTERM => ("SIGTERM", "somebody asked it to end"),
        libc::SIGXCPU => ("SIGXCPU", "its limit of processor time"),
        libc::SIGPIPE => ("SIGPIPE", "it wrote to somebody who was gone"),
        libc::SIGSYS => ("SIGSYS", "a call of the system that is forbidden here"),
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal}), {meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names_and_codes_their_numbers() {
        assert_eq!(of_status(ExitStatus::from_raw(3 << 8)), "it called `exit(3)`");
        let text = of_status(ExitStatus::from_raw(11));
        assert!(text.starts_with("SIGSEGV (signal 11), it touched memory"), "{text}");
        assert_eq!(of_status(ExitStatus::from_raw(42)), "signal 42");
        assert!(is_by_others(ExitStatus::from_raw(9)) && !is_by_others(ExitStatus::from_raw(11)));
    }
}
