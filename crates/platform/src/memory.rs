//! How the process gets its memory.

use std::sync::Mutex;

/// Blocks from this size on are taken from the system one by one, octets.
const MAPPED_FROM_BYTES: i32 = 4 << 20;

/// A heap keeps so many free octets at its end. By default these are 128 KiB, and a server that reads into buffers of 64 KiB, which it frees
/// when they are empty, has the system clear the same pages again and again.
const KEPT_BYTES: i32 = 1 << 20;

/// Makes the C library's allocator give large blocks back to the system when they are freed. Call it once, before there are threads.
///
/// glibc begins so too, but once a block of 19 MiB (the memory of one password hash) was freed it takes the next one from its heap; what
/// is allocated meanwhile comes to lie behind it, and the heap can neither shrink nor use the gap for the next hash. A server
/// that 200 users have logged in to had 3.7 GB resident. A threshold that is set stays where it is (mallopt(3), M_MMAP_THRESHOLD).
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    set_thresholds();
}

/// So many octets that became free are given back together.
const GIVEN_BACK_BYTES: usize = 4 << 20;

/// Octets that are free inside the heaps and not backed by pages, as far as is known: they were given back, and not used since.
static GIVEN_BACK: Mutex<usize> = Mutex::new(0);

/// Gives the system back what has become free inside the heaps since the last call, if that is some MiB; otherwise it costs some microseconds.
///
/// glibc gives back what is free at the end of a heap only: what a first opening of an mbox of hundreds of thousands of messages leaves free
/// between other things stays with the process until somebody asks for all that is free.
pub fn give_back_free() {
    // Whoever has it does it for all.
    let Ok(mut given_back) = GIVEN_BACK.try_lock() else { return };
    let free = free_bytes();
    *given_back = (*given_back).min(free);
    if free - *given_back >= GIVEN_BACK_BYTES {
        trim();
        *given_back = free_bytes();
    }
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no safe door to its allocator's figures")]
fn free_bytes() -> usize {
    // SAFETY: mallinfo2 has no preconditions; it only counts.
    unsafe { libc::mallinfo2() }.fordblks
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no safe door to its allocator")]
fn trim() {
    // SAFETY: malloc_trim has no preconditions; what is in use stays where it is.
    let _has_given_back = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn free_bytes() -> usize {
    0
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no safe door to its allocator's settings")]
fn set_thresholds() {
    // SAFETY: mallopt has no preconditions but that its arguments are integers. A refusal changes nothing that matters here.
    let _are_set = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) + libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES)
    };
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_becomes_free_between_other_things_is_given_back() {
        // Between these, every other one stays: no heap can shrink at its end.
        let mut blocks: Vec<Option<Vec<u8>>> = (0..20_000).map(|_| Some(vec![1; 4096])).collect();
        give_back_free();
        blocks.iter_mut().step_by(8).for_each(|block| drop(block.take()));
        for n in (0..blocks.len()).filter(|n| n % 8 != 7) {
            blocks[n] = None;
        }
        give_back_free();
        assert!(*GIVEN_BACK.lock().unwrap() >= 10_000 * 4096);
        assert_eq!(blocks.iter().flatten().count(), 2500);
    }
}
