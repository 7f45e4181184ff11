//! How the process gets its memory.

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

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no safe door to its allocator's settings")]
fn set_thresholds() {
    // SAFETY: mallopt has no preconditions but that its arguments are integers. A refusal changes nothing that matters here.
    let _are_set = unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) + libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES)
    };
}
