//! Getting memory, touching it and giving it back: by the allocator, and by a pool.

use std::cell::RefCell;
use std::hint::black_box;

use kbench::prelude::*;

/// Bytes after which another page begins: memory that is not touched may not be there at all.
const PAGE: usize = 4096;

/// Allocates a buffer, writes a byte to each of its pages and frees it; gives the number of pages.
#[kernel_bench(
    sizes = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20],
    inputs = |bytes| bytes,
    bytes = |bytes| bytes.div_ceil(PAGE), // those that are written
    reference = pages,
    expect = [time < 10us at bytes <= 1 << 20],
)]
pub fn allocate(bytes: usize) -> usize {
    let mut buffer: Vec<u8> = Vec::with_capacity(bytes);
    let pages = buffer.spare_capacity_mut()[..bytes].chunks_mut(PAGE);
    let touched = pages.map(|page| page[0].write(1)).count();
    black_box(&mut buffer); // otherwise there would be no allocation to be measured
    touched
}

/// [`allocate`] with memory that is all zeros.
#[kernel_bench(of = allocate)]
pub fn allocate_zeroed(bytes: usize) -> usize {
    let mut buffer = vec![0; bytes];
    let touched = touch(&mut buffer);
    black_box(&mut buffer);
    touched
}

/// [`allocate`] from a pool of this thread's.
#[kernel_bench(of = allocate, expect = [time < 10us at bytes <= 1 << 20])]
pub fn allocate_pooled(bytes: usize) -> usize {
    thread_local! {
        static POOL: RefCell<Pool> = RefCell::default();
    }
    POOL.with_borrow_mut(|pool| {
        let mut buffer = pool.take(bytes);
        let touched = touch(&mut buffer[..bytes]);
        black_box(&mut buffer);
        pool.give_back(buffer);
        touched
    })
}

/// Writes a byte to each page; gives their number.
fn touch(buffer: &mut [u8]) -> usize {
    buffer.chunks_mut(PAGE).map(|page| page[0] = 1).count()
}

fn pages(bytes: usize) -> usize {
    (0..bytes).step_by(PAGE).count()
}

/// Buffers that were given back, by their size, which is a power of two: whoever asks for as much gets one of them.
#[derive(Debug, Default)]
pub struct Pool {
    /// At position i, buffers of 2^i bytes.
    shelves: Vec<Vec<Box<[u8]>>>,
}

impl Pool {
    /// A buffer of at least so many bytes; what it contains is of no meaning.
    pub fn take(&mut self, bytes: usize) -> Box<[u8]> {
        let size = bytes.next_power_of_two();
        let shelf = self.shelves.get_mut(shelf_of(size));
        let kept = shelf.and_then(Vec::pop);
        kept.unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    /// Keeps a buffer that [`take`](Self::take) gave for the next one who asks.
    pub fn give_back(&mut self, buffer: Box<[u8]>) {
        let shelf = shelf_of(buffer.len());
        if self.shelves.len() <= shelf {
            self.shelves.resize_with(shelf + 1, Vec::new);
        }
        self.shelves[shelf].push(buffer);
    }
}

/// The shelf for buffers of a size, which is a power of two.
fn shelf_of(size: usize) -> usize {
    size.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_the_same_memory_again_and_never_too_little() {
        let mut pool = Pool::default();
        let (first, second) = (pool.take(1000), pool.take(1000));
        assert_eq!((first.len(), second.len()), (1024, 1024));
        let address = first.as_ptr();
        pool.give_back(first);
        let again = pool.take(600);
        assert_eq!(again.as_ptr(), address);
        assert_eq!(pool.take(1025).len(), 2048);
        pool.give_back(second);
        assert_eq!([0, 1, 2].map(|bytes| pool.take(bytes).len()), [1, 1, 2]);
    }
}
