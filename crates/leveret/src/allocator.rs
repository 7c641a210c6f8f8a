//! Settings that make the allocator take little memory, and return unused memory.
//!
//! The allocator is mimalloc. It keeps freed memory for a second, in case it is needed again, and returns it
//! to the operating system when a thread frees a page after that second. An idle broker frees no pages after
//! a flood and would keep the memory of the flood: the memory alarm would stay in effect, and publishers
//! blocked. A task therefore frees a page at intervals.
//!
//! Every thread has its own pages of every size. With huge pages, each touched page becomes 2 MiB: an idle
//! broker takes eight times the memory, and message rates do not improve. mimalloc is built not to ask for
//! huge pages (`no_thp`), and the process declines those that the operating system gives unasked.

use std::hint::black_box;

use crate::limits::{GIVE_BACK_BYTES, GIVE_BACK_INTERVAL};

/// Declines huge pages for the whole process, and for the program that it becomes by `exec`. Call this first:
/// memory touched before stays as it is.
#[cfg(target_os = "linux")]
pub(crate) fn decline_huge_pages() {
    // An error means that there are no huge pages, or that the process takes more memory; neither prevents a
    // start.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Other operating systems do not use huge pages unasked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn decline_huge_pages() {}

/// Makes the allocator return memory, at intervals, forever.
pub(crate) async fn give_back() {
    loop {
        // The memory is never touched, so it costs only address space; it is large enough to be a page of its
        // own.
        drop(black_box(Vec::<u8>::with_capacity(GIVE_BACK_BYTES)));
        tokio::time::sleep(GIVE_BACK_INTERVAL).await;
    }
}
