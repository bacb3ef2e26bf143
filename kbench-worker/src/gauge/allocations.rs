//! Counting allocations.
//!
//! # What is counted
//!
//! A section counts what all threads ask of the global allocator while it is open, since a kernel's pool allocates on
//! threads of its own; whatever else runs at the time is counted with it. Requests that fail are not counted.
//!
//! | request | count | bytes | live |
//! |---|---|---|---|
//! | allocation of n bytes, zeroed or not | 1 | n | + n |
//! | reallocation from m to n bytes | 1 | n | + n − m |
//! | release of m bytes | | | − m |
//!
//! A reallocation is thus the allocation of its new size, growing or shrinking: whether the block had to move is the
//! allocator's secret and changes from call to call, and a kernel that lets its vectors grow should be seen doing so. For
//! the same reason the moment at which a moving block exists twice is no part of the peak.
//!
//! `live` is 0 when the section opens and goes below when memory from before is released. The peak is its highest value,
//! hence never below 0.
//!
//! # Cost
//!
//! While no section is open, a request costs one relaxed load of a flag that nobody writes, and a branch. In a section it
//! costs up to four atomic additions on memory that all threads share: times taken there mean nothing.
//!
//! Naming a global allocator at all, be it the system's, makes a request about 1 ns faster than naming none, for it is
//! reached more directly: runs to be compared should be alike in that.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

/// What a section of code asked of the global allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocations {
    /// Allocations and reallocations.
    pub count: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Most bytes that were live at once, above those that were when the section began.
    pub peak: u64,
}

impl Allocations {
    /// Mean number of allocations of one of `calls` calls.
    pub fn count_per_call(&self, calls: u64) -> f64 {
        self.count as f64 / calls.max(1) as f64
    }

    /// Mean number of bytes allocated by one of `calls` calls.
    pub fn bytes_per_call(&self, calls: u64) -> f64 {
        self.bytes as f64 / calls.max(1) as f64
    }
}

/// A global allocator that counts when it is asked to, and leaves the work to another.
///
/// While no section is open nothing is counted, and a request takes as long as it does without it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System> {
    inner: A,
}

impl Allocator {
    /// Counts what the system's allocator does.
    pub const fn system() -> Self {
        Allocator::new(System)
    }
}

impl<A> Allocator<A> {
    /// Counts what `inner` does.
    pub const fn new(inner: A) -> Self {
        Allocator { inner }
    }
}

#[allow(unsafe_code)] // the trait of global allocators is unsafe to implement and to call
// SAFETY: every request goes to `inner` as it came and its answer goes back as it is, so that the contract is kept as well
// as `inner` keeps it. Counting adds to atomics in static memory: it neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about `layout` are those that `inner` needs.
        let block = unsafe { self.inner.alloc(layout) };
        if COUNTING.load(Relaxed) {
            TALLY.allocated(block, layout.size());
        }
        block
    }

    // Not left to the trait's default, which would write zeros into memory that the system gives zeroed.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about `layout` are those that `inner` needs.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if COUNTING.load(Relaxed) {
            TALLY.allocated(block, layout.size());
        }
        block
    }

    // Not left to the trait's default, which would always move.
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `block` came from `inner` with `layout`, as the caller promises that it came from here; `size` is also
        // promised to fit.
        let moved = unsafe { self.inner.realloc(block, layout, size) };
        if COUNTING.load(Relaxed) {
            TALLY.reallocated(moved, layout.size(), size);
        }
        moved
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if COUNTING.load(Relaxed) {
            TALLY.released(layout.size());
        }
        // SAFETY: `block` came from `inner` with `layout`, as the caller promises that it came from here.
        unsafe { self.inner.dealloc(block, layout) }
    }
}

/// Whether [`Allocator`] is this program's global allocator, alone or under another one.
///
/// Found out once, by an allocation that it should see.
pub fn is_installed() -> bool {
    static SEEN: OnceLock<bool> = OnceLock::new();
    *SEEN.get_or_init(|| {
        let section = Section::open();
        drop(black_box(Box::new(0_u8)));
        section.close().count > 0
    })
}

/// Runs `code` and counts what all threads allocate meanwhile; `None` where [`Allocator`] is not installed.
///
/// Memory of the result is counted, and its release is not. Sections of several threads wait for each other.
///
/// # Panics
///
/// When `code` opens a section of its own: there is one tally.
pub fn count<R>(code: impl FnOnce() -> R) -> (R, Option<Allocations>) {
    let (mut code, mut result) = (Some(code), None);
    let allocations = count_once(&mut || result = code.take().map(|code| code()));
    match result {
        Some(result) => (result, allocations),
        None => unreachable!("the code has run"),
    }
}

/// [`count`] of code that returns nothing: compiled once, however many kernels there are.
pub(crate) fn count_once(code: &mut dyn FnMut()) -> Option<Allocations> {
    let section = (is_installed() && !UNCOUNTED.get()).then(Section::open);
    code();
    section.map(Section::close)
}

/// Runs code in which this thread counts nothing, so that it waits for no other one.
pub(crate) fn uncounted<R>(code: impl FnOnce() -> R) -> R {
    let before = UNCOUNTED.replace(true);
    let result = code();
    UNCOUNTED.set(before);
    result
}

/// Whether a section is open. All that a request looks at while none is.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// What the open section has counted, or the last one.
static TALLY: Tally = Tally::new();
/// Held by the open section.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread opened the section: waiting for it would have no end.
    static OPENED_HERE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread opens no section.
    static UNCOUNTED: Cell<bool> = const { Cell::new(false) };
}

/// The figures of a section in the making.
///
/// Relaxed throughout: no figure says anything about other memory, and code that waits for the threads that work for it
/// has thereby seen their additions.
struct Tally {
    count: AtomicU64,
    bytes: AtomicU64,
    live: AtomicI64,
    peak: AtomicI64,
}

impl Tally {
    const fn new() -> Self {
        Tally {
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
        }
    }

    fn clear(&self) {
        self.count.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.live.store(0, Relaxed);
        self.peak.store(0, Relaxed);
    }

    fn figures(&self) -> Allocations {
        Allocations {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            peak: self.peak.load(Relaxed).unsigned_abs(),
        }
    }

    #[cold]
    fn allocated(&self, block: *mut u8, size: usize) {
        self.reallocated(block, 0, size);
    }

    // Sizes of blocks are at most `isize::MAX`: the casts keep their values.
    #[cold]
    fn reallocated(&self, block: *mut u8, former: usize, size: usize) {
        if block.is_null() {
            return;
        }
        self.count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(size as u64, Relaxed);
        let change = size as i64 - former as i64;
        let live = self.live.fetch_add(change, Relaxed).wrapping_add(change);
        self.peak.fetch_max(live, Relaxed);
    }

    #[cold]
    fn released(&self, size: usize) {
        self.live.fetch_sub(size as i64, Relaxed);
    }
}

/// An open section; dropping it, be it by a panic in the code that is counted, switches counting off.
struct Section {
    _alone: MutexGuard<'static, ()>,
}

impl Section {
    fn open() -> Self {
        assert!(!OPENED_HERE.get(), "a section that counts allocations cannot contain another one");
        // A section that panicked left nothing behind that the next one does not clear.
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        OPENED_HERE.set(true);
        TALLY.clear();
        COUNTING.store(true, Relaxed);
        Section { _alone: alone }
    }

    fn close(self) -> Allocations {
        COUNTING.store(false, Relaxed);
        TALLY.figures()
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        COUNTING.store(false, Relaxed);
        OPENED_HERE.set(false);
    }
}

#[cfg(test)]
#[allow(unsafe_code)] // an allocator that is not installed is called by hand
mod tests {
    use std::panic::{catch_unwind, resume_unwind};
    use std::ptr::null_mut;

    use super::*;

    const BLOCK: Layout = Layout::new::<[u64; 8]>();

    /// An allocator without memory.
    struct Exhausted;

    // SAFETY: null is an answer that every caller must expect; no block ever comes back.
    unsafe impl GlobalAlloc for Exhausted {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            null_mut()
        }
        unsafe fn realloc(&self, _: *mut u8, _: Layout, _: usize) -> *mut u8 {
            null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    /// An allocation, a reallocation and a release, as the compiler would ask for them.
    fn exercise(allocator: &impl GlobalAlloc) {
        // SAFETY: the layout is not empty, and the block is released with what it was last allocated with. Where there is none,
        // the allocator is `Exhausted`, which does not look at it.
        unsafe {
            let block = allocator.alloc(BLOCK);
            let larger = allocator.realloc(block, BLOCK, 2 * BLOCK.size());
            if !larger.is_null() {
                allocator.dealloc(larger, Layout::new::<[u64; 16]>());
            }
        }
    }

    /// A section around calls by hand. Whether the allocator is installed is settled before there are any: they would be
    /// taken for a proof that it is.
    fn section() -> Section {
        assert!(!is_installed());
        Section::open()
    }

    #[test]
    fn nothing_is_counted_where_it_is_not_installed() {
        let (vector, allocations) = count(|| vec![1_u8; 100]);
        assert_eq!(vector.len(), 100);
        assert_eq!(allocations, None);
        assert!(!is_installed());
    }

    #[test]
    fn a_section_counts_and_what_follows_is_not_counted() {
        let allocator = Allocator::system();
        let open = section();
        exercise(&allocator);
        COUNTING.store(false, Relaxed);
        let inside = TALLY.figures();
        assert_eq!(inside, Allocations { count: 2, bytes: 64 + 128, peak: 128 });
        exercise(&allocator);
        assert_eq!(TALLY.figures(), inside);
        assert_eq!(open.close(), inside);
    }

    #[test]
    fn a_panic_inside_switches_counting_off() {
        let open = section();
        let panic = catch_unwind(move || {
            let _open = open;
            assert!(COUNTING.load(Relaxed));
            resume_unwind(Box::new("a kernel failed"));
        });
        assert!(panic.is_err());
        // Another test may have opened a section: with the lock in hand there is none.
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!COUNTING.load(Relaxed));
        drop(alone);
        section().close();
    }

    #[test]
    fn sections_do_not_nest() {
        let outer = section();
        assert!(catch_unwind(Section::open).is_err());
        outer.close();
    }

    #[test]
    fn requests_that_fail_are_not_counted() {
        let open = section();
        exercise(&Allocator::new(Exhausted));
        assert_eq!(open.close(), Allocations::default());
    }

    #[test]
    fn figures_per_call_are_means() {
        let allocations = Allocations { count: 3, bytes: 100, peak: 7 };
        assert_eq!(allocations.count_per_call(2), 1.5);
        assert_eq!(allocations.bytes_per_call(8), 12.5);
        assert_eq!(Allocations::default().bytes_per_call(0), 0.0);
    }
}
