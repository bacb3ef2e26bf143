//! How many threads there are.

/// Threads of this process; none where nobody tells.
pub(crate) fn count() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // `pid (name) state ...`: the name may hold blanks and brackets, so fields are counted from its end; the 18th of all is
    // the number of threads.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(17)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Other tests start and end threads of the same process; twenty more are not theirs.
    #[test]
    fn threads_are_counted_while_they_run() {
        let (senders, threads): (Vec<_>, Vec<_>) = (0..100)
            .map(|_| {
                let (sender, receiver) = mpsc::channel::<()>();
                (sender, std::thread::spawn(move || receiver.recv()))
            })
            .unzip();
        assert!(count().expect("Linux tells") > 100);
        drop(senders);
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}
