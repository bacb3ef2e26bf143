//! Running code of the user's that may panic.

use std::any::Any;
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// Why a call of user code did not come back with a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// It panicked.
    #[error("panicked at {location}: {message}")]
    Panic {
        /// The panic's text.
        message: String,
        /// File, line and column.
        location: String,
    },
    /// It returned an `Err`.
    #[error("returned an error: {0}")]
    Failed(String),
    /// Something went wrong on a device.
    #[error("{0}")]
    Device(String),
    /// Something went wrong with the other program that implements it.
    #[error("{text}")]
    Foreign {
        /// What.
        text: String,
        /// Whether that program is gone, and with it the data that it had.
        ends: bool,
    },
    /// It cannot be done here, and that is nobody's fault.
    #[error("{0}")]
    Declined(String),
}

impl Fault {
    /// Whether others should go on in another process.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Fault::Foreign { ends: true, .. })
    }
}

/// How many guarded calls are running: while there are any, the hook notes panics instead of printing them.
static GUARDED: AtomicUsize = AtomicUsize::new(0);
/// How many have begun, so that somebody who looks twice can tell whether it is still the same one.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Whether panics are noted for the controller as well: the process may not live to tell of them.
static IS_NOTED_FOR_CONTROLLER: AtomicBool = AtomicBool::new(false);
/// The latest panic on any thread; a kernel's panic may start on a pool's thread.
static NOTED: Mutex<Option<Note>> = Mutex::new(None);

thread_local! {
    /// The panic on this very thread, which is the better witness when several tests run side by side.
    static NOTED_HERE: RefCell<Option<Note>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Note {
    location: String,
}

/// Begins a line on standard error that tells the controller of a panic. Where unwinding is not possible, as in a function
/// of C's kind or in a build that aborts, it is all that is heard of it.
pub(crate) const PANIC_NOTE: &str = "\u{1}kbench:";

/// Notes panics for the controller from now on.
pub(crate) fn note_panics_for_controller() {
    IS_NOTED_FOR_CONTROLLER.store(true, Ordering::SeqCst);
}

/// Lets the controller forget what was printed: what comes next is called by somebody else.
pub(crate) fn forget_last_words() {
    if IS_NOTED_FOR_CONTROLLER.load(Ordering::SeqCst) {
        let _ = writeln!(std::io::stderr(), "{PANIC_NOTE}");
    }
}

/// The number of the call of user code that is running; none when there is none.
pub(crate) fn current_call() -> Option<u64> {
    (GUARDED.load(Ordering::SeqCst) > 0).then(|| BEGUN.load(Ordering::SeqCst))
}

/// Says that what runs now is another call, where several are made under one guard.
pub(crate) fn next_call() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

/// Calls `code`; a panic becomes a [`Fault`] that carries its text and its place.
pub fn guard<R>(code: impl FnOnce() -> R) -> Result<R, Fault> {
    begin_guarded();
    let result = catch_unwind(AssertUnwindSafe(code));
    GUARDED.fetch_sub(1, Ordering::SeqCst);
    result.map_err(fault_of_panic)
}

fn begin_guarded() {
    install_hook();
    next_call();
    GUARDED.fetch_add(1, Ordering::SeqCst);
    NOTED_HERE.take();
    take_noted();
}

fn fault_of_panic(payload: Box<dyn Any + Send>) -> Fault {
    let elsewhere = take_noted();
    let note = NOTED_HERE.take().or(elsewhere);
    Fault::Panic {
        message: text_of(payload.as_ref()).unwrap_or_else(|| "a panic without a text".into()),
        location: note.map_or_else(|| "an unknown place".into(), |note| note.location),
    }
}

fn take_noted() -> Option<Note> {
    NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
}

fn install_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |info| {
            if GUARDED.load(Ordering::SeqCst) > 0 { note(info) } else { former(info) }
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let note = Note { location: info.location().map(ToString::to_string).unwrap_or_default() };
    if IS_NOTED_FOR_CONTROLLER.load(Ordering::SeqCst) {
        let text = text_of(info.payload()).unwrap_or_default().replace('\n', " ");
        let _ = writeln!(std::io::stderr(), "{PANIC_NOTE}panicked at {}: {text}", note.location);
    }
    NOTED_HERE.set(Some(note.clone()));
    *NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(note);
}

fn text_of(payload: &(dyn Any + Send)) -> Option<String> {
    payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_reported_with_text_and_place() {
        let fault = guard(|| panic!("index {} is out of range", 7)).expect_err("it panics");
        let text = fault.to_string();
        assert!(text.contains("index 7 is out of range"), "{text}");
        assert!(text.contains("fault.rs:"), "{text}");
    }

    #[test]
    fn a_panic_on_a_pool_is_reported_with_its_place() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        let fault = guard(|| pool.install(|| panic!("in the pool"))).expect_err("it panics");
        assert!(fault.to_string().contains("in the pool"), "{fault}");
    }
}
