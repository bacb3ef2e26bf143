//! How much memory a process may take, and how much it has.
//!
//! What is counted is what the system limits: private memory that can be written, whether it was touched or not.

#[cfg(target_os = "linux")]
pub(crate) use linux::{confine, in_use, limit};

/// Nobody tells here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn in_use() -> Option<usize> {
    None
}

/// There is no such limit here.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn limit() -> Option<u64> {
    None
}

/// Nobody is confined here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_more: usize) {}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // limits of a process are set by the system's own interface
mod linux {
    use std::fs;

    /// Bytes that this process has now.
    pub(crate) fn in_use() -> Option<usize> {
        // `size resident shared text library data dirty`, in pages.
        let figures = fs::read_to_string("/proc/self/statm").ok()?;
        let pages: usize = figures.split_whitespace().nth(5)?.parse().ok()?;
        pages.checked_mul(page_size()?)
    }

    fn page_size() -> Option<usize> {
        // SAFETY: a number in, a number out.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
    }

    /// Bytes that this process may take; none when there is no limit.
    pub(crate) fn limit() -> Option<u64> {
        let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the system writes one structure of two numbers, which lives on this stack.
        let told = unsafe { libc::getrlimit(libc::RLIMIT_DATA, &mut limits) };
        (told == 0 && limits.rlim_cur != libc::RLIM_INFINITY).then_some(limits.rlim_cur)
    }

    /// Lets this process take so many bytes more, and no others; and lets it be the first that the system ends when memory
    /// is short all the same.
    pub(crate) fn confine(more: usize) {
        let Some(limit) = in_use().and_then(|bytes| bytes.checked_add(more)) else { return };
        // SAFETY: the system reads and writes one structure of two numbers, which lives on this stack.
        unsafe {
            let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::getrlimit(libc::RLIMIT_DATA, &mut limits) == 0 {
                limits.rlim_cur = limits.rlim_cur.min(limit as libc::rlim_t);
                libc::setrlimit(libc::RLIMIT_DATA, &limits);
            }
        }
        // Whoever may not write this is in a place where nobody is ended by the system.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::env;
    use std::hint::black_box;
    use std::process::Command;

    use super::*;

    #[test]
    fn memory_is_counted_when_it_is_asked_for() {
        let before = in_use().expect("Linux tells");
        let taken: Vec<u8> = black_box(Vec::with_capacity(256 << 20));
        let after = in_use().expect("Linux tells");
        assert!(after > before + (200 << 20), "{before} {after}");
        drop(taken);
    }

    /// Set in the process that is confined: a limit holds for all threads, so other tests should not have it.
    const IS_CONFINED: &str = "KBENCH_TEST_IS_CONFINED";

    #[test]
    fn a_confined_process_is_refused_more_than_it_is_allowed() {
        if env::var_os(IS_CONFINED).is_none() {
            let name =
                "system::memory::tests::a_confined_process_is_refused_more_than_it_is_allowed";
            let program = env::current_exe().expect("this program");
            let mut confined = Command::new(program);
            let ended = confined.args([name, "--exact"]).env(IS_CONFINED, "1").output();
            let ended = ended.expect("started");
            let text = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        confine(64 << 20);
        assert!(limit().is_some_and(|bytes| bytes > 64 << 20));
        // Nothing is written to it, so that no memory is taken where it is granted.
        let is_granted = |bytes| black_box(&mut Vec::<u8>::new()).try_reserve_exact(bytes).is_ok();
        assert!(is_granted(16 << 20) && !is_granted(256 << 20));
    }
}
