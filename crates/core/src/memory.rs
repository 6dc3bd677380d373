//! Large tables in few pages. A table that is filled and looked into at random places touches all of its memory at once:
//! in pages of 4 KiB that is thousands of page faults, and later a miss of the TLB at nearly every look.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size of a huge page where there are any, and the alignment that they ask for.
const HUGE: usize = 1 << 21;

/// Values side by side, in huge pages where they are many and the system has such pages.
pub struct Table<T: Copy> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Copy> Table<T> {
    pub fn filled(value: T, len: usize) -> Self {
        if len == 0 || size_of::<T>() == 0 {
            return Self { start: NonNull::dangling(), len };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(memory.cast::<T>()) else { handle_alloc_error(layout) };
        // SAFETY: the memory is ours alone, and a byte that need not hold a value may hold any.
        ask_for_huge_pages(unsafe { std::slice::from_raw_parts_mut(memory.cast::<MaybeUninit<u8>>(), layout.size()) });
        // SAFETY: the memory is aligned for `T`, and has room for `len` values.
        (0..len).for_each(|at| unsafe { start.add(at).write(value) });
        Self { start, len }
    }

    /// What `filled` took for so many values is what `drop` gives back.
    fn layout(len: usize) -> Layout {
        let plain = Layout::array::<T>(len).unwrap_or_else(|_| handle_alloc_error(Layout::new::<T>()));
        match Layout::from_size_align(plain.size().next_multiple_of(HUGE), HUGE) {
            Ok(huge) if plain.size() >= HUGE => huge,
            _ => plain,
        }
    }
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `filled` wrote `len` values from `start` on, which live as long as the table.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and nobody else has the table.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for Table<T> {
    fn drop(&mut self) {
        if self.len > 0 && size_of::<T>() > 0 {
            // SAFETY: `filled` allocated it with this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
        }
    }
}

impl<T: Copy> Default for Table<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0 }
    }
}

impl<T: Copy> Clone for Table<T> {
    fn clone(&self) -> Self {
        let Some(&first) = self.first() else { return Self::default() };
        let mut copy = Self::filled(first, self.len);
        copy.copy_from_slice(self);
        copy
    }
}

// SAFETY: it owns its values, as a `Vec` does.
unsafe impl<T: Copy + Send> Send for Table<T> {}
// SAFETY: likewise; what is shared can only be read.
unsafe impl<T: Copy + Sync> Sync for Table<T> {}

/// Asks, before the memory is touched: the system then gives it, and clears it, a huge page at a time, if there are any.
pub fn ask_for_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        const MADV_HUGEPAGE: i32 = 14;
        extern "C" {
            fn madvise(memory: *mut u8, size: usize, advice: i32) -> i32;
        }
        let bytes = room.as_mut_ptr_range();
        let (start, end) = (bytes.start.addr().next_multiple_of(HUGE), bytes.end.addr() / HUGE * HUGE);
        if start < end {
            // SAFETY: the pages lie in `room`, which is borrowed mutably; the advice does not change what is in them.
            unsafe { madvise(bytes.start.with_addr(start).cast(), end - start, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = room;
}

/// Has memory read ahead.
#[inline]
pub fn prefetch<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(at) {
        // SAFETY: a hint; it reads nothing that the program sees.
        unsafe {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_what_was_put_there() {
        for len in [0, 1, 1000, HUGE / 8 - 1, HUGE / 8, HUGE / 8 + 1, HUGE] {
            let mut table = Table::filled(7u64, len);
            assert!(table.len() == len && table.iter().all(|&value| value == 7));
            (0..len).step_by(61).for_each(|at| table[at] = at as u64);
            let copy = table.clone();
            drop(table);
            assert!(copy.len() == len && (0..len).all(|at| copy[at] == if at % 61 == 0 { at as u64 } else { 7 }));
        }
        assert!(Table::<u32>::default().is_empty());
        assert_eq!(Table::filled((), 3).len(), 3);
    }
}
