//! Arrays beside pages that nothing may touch: what reads or writes beyond them ends the process.

#![allow(unsafe_code)] // calls of the system, and vectors in memory that it gives

use std::any::Any;
use std::collections::HashMap;
use std::io::Error;
use std::mem::{ManuallyDrop, align_of, size_of};

/// Where an array lies in its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Its first element begins with the first page.
    Start,
    /// Its last element ends with the last page.
    End,
}

/// Arrays that were moved beside guard pages, until they are moved back.
///
/// A process that drops this before all of them are back ends: the vector that is missing may be dropped later, and its memory
/// is not that of the allocator.
#[derive(Debug)]
pub struct Pages {
    /// None while they are moved back.
    side: Option<Side>,
    /// Whether a function may write to the arrays that are moved now.
    are_written: bool,
    /// By where their items are.
    moved: HashMap<*const u8, Moved>,
    /// Why an array could not be moved.
    failure: Option<Error>,
}

/// An array that was moved.
#[derive(Debug)]
struct Moved {
    region: Region,
    /// The vector that it was in, which is empty.
    origin: Box<dyn Any>,
}

impl Pages {
    /// For arrays that are to be moved.
    pub(crate) fn new(side: Side) -> Self {
        Pages { side: Some(side), are_written: false, moved: HashMap::new(), failure: None }
    }

    /// Says whether a function may write to the arrays that are moved from now on. Of these only numbers are moved: what other
    /// items own can be exchanged, dropped and made longer.
    pub(crate) fn are_written(&mut self, are_written: bool) {
        self.are_written = are_written;
    }

    /// From now on, arrays are moved back.
    pub(crate) fn turn(&mut self) {
        self.side = None;
    }

    /// Whether there is an array that was moved.
    pub(crate) fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Why an array could not be moved, if there was one.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Whether arrays of such items are moved.
    pub(super) fn takes(&self, are_numbers: bool) -> bool {
        are_numbers || !self.are_written
    }

    /// Moves the items of a vector there, or back. The vector must not grow or be dropped until it is moved back.
    pub(super) fn carry<T: 'static>(&mut self, items: &mut Vec<T>) {
        match self.side {
            Some(side) => self.carry_out(items, side),
            None => self.carry_home(items),
        }
    }

    fn carry_out<T: 'static>(&mut self, items: &mut Vec<T>, side: Side) {
        if items.is_empty() || size_of::<T>() == 0 || self.failure.is_some() {
            return;
        }
        let region = match Region::new(items.len() * size_of::<T>()) {
            Ok(region) => region,
            Err(error) => return self.failure = Some(error),
        };
        if align_of::<T>() > region.page {
            return;
        }
        let (length, mut origin) = (items.len(), std::mem::take(items));
        let place = region.place(side, length * size_of::<T>()).cast::<T>();
        // SAFETY: the region has room for the items, which are no longer those of `origin`. No alignment is larger than a page,
        // and the size of a type is a multiple of its alignment, so they also fit at the end. The memory is not that of the
        // allocator, which `from_raw_parts` asks for because vectors give theirs back: this one does not, as nothing that is
        // lent grows, shrinks or drops it, and `carry_home` takes it back. `drop` ends the process where it did not.
        unsafe {
            origin.set_len(0);
            std::ptr::copy_nonoverlapping(origin.as_ptr(), place, length);
            *items = Vec::from_raw_parts(place, length, length);
        }
        self.moved.insert(place.cast_const().cast(), Moved { region, origin: Box::new(origin) });
    }

    /// A function may have made vectors change places. One that was not moved stays as it is.
    fn carry_home<T: 'static>(&mut self, items: &mut Vec<T>) {
        let Some(Moved { region, origin }) = self.moved.remove(&items.as_ptr().cast()) else {
            return;
        };
        let Ok(mut origin) = origin.downcast::<Vec<T>>() else { end() };
        // Its memory is not that of the allocator.
        let moved = ManuallyDrop::new(std::mem::take(items));
        let length = moved.len().min(origin.capacity());
        // SAFETY: `origin` has room for so many items, and those of `moved` are never dropped there.
        unsafe {
            std::ptr::copy_nonoverlapping(moved.as_ptr(), origin.as_mut_ptr(), length);
            origin.set_len(length);
        }
        *items = *origin;
        drop(region);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.has_moved() {
            end();
        }
    }
}

/// Ends the process, in which a vector has memory that is not the allocator's.
fn end() -> ! {
    eprintln!("error: a kernel has kept or replaced an array that it was lent; this process ends");
    std::process::abort()
}

/// Some pages between two that nothing may touch.
#[derive(Debug)]
struct Region {
    address: *mut u8,
    length: usize,
    page: usize,
}

#[cfg(unix)]
impl Region {
    /// Pages for so many bytes.
    fn new(bytes: usize) -> Result<Self, Error> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| Error::last_os_error())?;
        let length = bytes.next_multiple_of(page) + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, at an address that the system chooses.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let region = Region { address: address.cast(), length, page };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: all but the first and the last page of the memory that was just made.
        match unsafe { libc::mprotect(region.first().cast(), length - 2 * page, access) } {
            0 => Ok(region),
            _ => Err(Error::last_os_error()),
        }
    }

    fn first(&self) -> *mut u8 {
        self.address.wrapping_add(self.page)
    }

    /// Where so many bytes lie on a side.
    fn place(&self, side: Side, bytes: usize) -> *mut u8 {
        match side {
            Side::Start => self.first(),
            Side::End => self.address.wrapping_add(self.length - self.page - bytes),
        }
    }
}

#[cfg(unix)]
impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the memory is this region's. No vector points to it: `carry_out` drops a region that no vector was given, and
        // `carry_home` one whose vector it has taken back; `Pages` drops none. Should it fail, the memory stays.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}

#[cfg(not(unix))]
impl Region {
    fn new(_: usize) -> Result<Self, Error> {
        Err(Error::new(std::io::ErrorKind::Unsupported, "there are no guard pages on this system"))
    }

    fn place(&self, _: Side, _: usize) -> *mut u8 {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_at_the_end_of_their_pages_and_come_back() {
        let (mut bytes, mut numbers) = (vec![7u8; 5], vec![1.5f32, -2.0, 3.0]);
        let addresses = (bytes.as_ptr(), numbers.as_ptr());
        let mut pages = Pages::new(Side::End);
        pages.carry(&mut bytes);
        pages.carry(&mut numbers);
        assert!(pages.failure().is_none());
        assert_eq!((&bytes[..], &numbers[..]), (&[7u8; 5][..], &[1.5f32, -2.0, 3.0][..]));
        assert_eq!(bytes.as_ptr_range().end as usize % 4096, 0);
        assert_eq!(numbers.as_ptr_range().end as usize % 4096, 0);
        numbers[1] = 4.0;
        pages.turn();
        pages.carry(&mut bytes);
        pages.carry(&mut numbers);
        assert_eq!((&bytes[..], &numbers[..]), (&[7u8; 5][..], &[1.5f32, 4.0, 3.0][..]));
        assert_eq!((bytes.as_ptr(), numbers.as_ptr()), addresses);
    }

    #[test]
    fn arrays_that_changed_places_come_back_and_others_stay_as_they_are() {
        let (mut one, mut other, mut own) = (vec![1.0f32; 3], vec![2.0f32; 3], vec![3.0f32; 3]);
        let addresses = (one.as_ptr(), other.as_ptr(), own.as_ptr());
        let mut pages = Pages::new(Side::End);
        pages.carry(&mut one);
        pages.carry(&mut other);
        std::mem::swap(&mut one, &mut other);
        pages.turn();
        pages.carry(&mut one);
        pages.carry(&mut own);
        pages.carry(&mut other);
        assert_eq!((&one[..], &other[..], &own[..]), (&[2.0; 3][..], &[1.0; 3][..], &[3.0; 3][..]));
        assert_eq!((other.as_ptr(), one.as_ptr(), own.as_ptr()), addresses);
    }

    #[test]
    fn an_array_that_was_emptied_comes_back() {
        let mut bytes = vec![7u8; 5];
        let address = bytes.as_ptr();
        let mut pages = Pages::new(Side::End);
        pages.carry(&mut bytes);
        bytes.clear();
        pages.turn();
        pages.carry(&mut bytes);
        assert_eq!((bytes.as_ptr(), bytes.len()), (address, 0));
    }

    #[test]
    fn what_is_aligned_to_more_than_a_page_is_not_moved() {
        #[derive(Clone)]
        #[repr(align(131072))]
        struct Wide(u8);
        let mut items = vec![Wide(1); 2];
        let address = items.as_ptr();
        let mut pages = Pages::new(Side::End);
        pages.carry(&mut items);
        assert!(!pages.has_moved());
        assert_eq!((items.as_ptr(), items[1].0), (address, 1));
    }
}
