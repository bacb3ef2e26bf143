//! Arrays beside pages that nothing may touch: what reads or writes beyond them ends the process.

#![allow(unsafe_code)] // calls of the system, and vectors in memory that it gives

use std::any::Any;
use std::io::Error;
use std::mem::{ManuallyDrop, size_of};

/// Where an array lies in its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Its first element begins with the first page.
    Start,
    /// Its last element ends with the last page.
    End,
}

/// Arrays that were moved beside guard pages, until they are moved back in the same order.
#[derive(Debug)]
pub struct Pages {
    /// None while they are moved back.
    side: Option<Side>,
    moved: std::collections::VecDeque<Moved>,
    /// Why an array could not be moved.
    failure: Option<Error>,
}

/// An array that was moved.
#[derive(Debug)]
struct Moved {
    region: Region,
    /// Where its items are.
    place: *const u8,
    /// The vector that it was in, which is empty.
    origin: Box<dyn Any>,
}

impl Pages {
    /// For arrays that are to be moved.
    pub(crate) fn new(side: Side) -> Self {
        Pages { side: Some(side), moved: Default::default(), failure: None }
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

    /// Moves the items of a vector there, or back. The vector must not grow or be dropped until it is moved back.
    pub(super) fn carry<T: 'static>(&mut self, items: &mut Vec<T>) {
        if items.is_empty() || size_of::<T>() == 0 {
            return;
        }
        match self.side {
            Some(side) => self.carry_out(items, side),
            None => self.carry_home(items),
        }
    }

    fn carry_out<T: 'static>(&mut self, items: &mut Vec<T>, side: Side) {
        if self.failure.is_some() {
            return;
        }
        let region = match Region::new(items.len() * size_of::<T>()) {
            Ok(region) => region,
            Err(error) => return self.failure = Some(error),
        };
        let (length, mut origin) = (items.len(), std::mem::take(items));
        let place = region.place(side, length * size_of::<T>()).cast::<T>();
        // SAFETY: the region has room for the items, which are no longer those of `origin`. Its pages begin where any type may, and
        // the size of a type is a multiple of its alignment, so they also fit at the end. The vector is taken back by
        // `carry_home` before anything drops it.
        unsafe {
            origin.set_len(0);
            std::ptr::copy_nonoverlapping(origin.as_ptr(), place, length);
            *items = Vec::from_raw_parts(place, length, length);
        }
        let place = place.cast_const().cast();
        self.moved.push_back(Moved { region, place, origin: Box::new(origin) });
    }

    fn carry_home<T: 'static>(&mut self, items: &mut Vec<T>) {
        let Some(Moved { region, place, origin }) = self.moved.pop_front() else { return };
        if items.as_ptr().cast() != place {
            // The kernel has put another vector in its place; had it dropped this one, the process would have ended.
            return;
        }
        let Ok(mut origin) = origin.downcast::<Vec<T>>() else {
            unreachable!("arrays are moved back in the order in which they were moved")
        };
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
        // SAFETY: the memory is this region's, and nothing points to it any more. Should it fail, the memory stays.
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
}
