//! Where the measuring thread runs.
//!
//! Two processes that are measured in turns may sit on two processors, and stay there for a whole run. One of them may have
//! the busier neighbour, so that whatever is bound by memory differs by several per cent, in the same direction in every
//! launch: no repetition shows that. So one of them goes where the other one is.

#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // these are calls of the system that the standard library does not have
mod linux {
    use libc::{CPU_ISSET, CPU_SET, CPU_SETSIZE, cpu_set_t};

    /// The number of the processor that the calling thread runs on.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: it takes nothing and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Moves the calling thread to a processor, where that is allowed, and does not bind it: threads that a kernel starts may
    /// run anywhere, and so may this one, should somebody else need the place.
    pub(crate) fn move_to(processor: usize) {
        if processor >= CPU_SETSIZE as usize || current() == Some(processor) {
            return;
        }
        let size = size_of::<cpu_set_t>();
        // SAFETY: sets of processors are plain bits, so zeroes are one; the system reads and writes no more than the size
        // that it is told, of sets that live on this stack; and the number was compared with the length of a set.
        unsafe {
            let mut allowed: cpu_set_t = std::mem::zeroed();
            let is_known = libc::sched_getaffinity(0, size, &mut allowed) == 0;
            if !is_known || !CPU_ISSET(processor, &allowed) {
                return;
            }
            let mut one: cpu_set_t = std::mem::zeroed();
            CPU_SET(processor, &mut one);
            libc::sched_setaffinity(0, size, &one);
            libc::sched_setaffinity(0, size, &allowed);
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{current, move_to};

/// Nobody tells here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn current() -> Option<usize> {
    None
}

/// Nobody moves here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn move_to(_processor: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Processors that the calling thread may run on, as the system writes them down.
    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
        line.expect("Linux has it").to_owned()
    }

    #[test]
    fn a_thread_that_was_moved_may_still_run_anywhere() {
        let before = allowed();
        let here = current().expect("Linux tells");
        for processor in [here, 0, 1, 100_000] {
            move_to(processor);
            assert_eq!(allowed(), before);
        }
    }

    /// The scheduler may move it on at any moment, but not every time.
    #[test]
    fn a_thread_goes_where_it_is_told() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let first = current().expect("Linux tells");
        let is_allowed = |processor: &usize| {
            (0..100).any(|_| {
                move_to(*processor);
                current() == Some(*processor)
            })
        };
        assert!(is_allowed(&first));
        let reached = (0..1024).filter(is_allowed).take(processors.min(2)).count();
        assert_eq!(reached, processors.min(2));
    }
}
