//! How the program's allocator is brought to take little, and to give back what nobody uses any more.
//!
//! It is mimalloc, which keeps freed memory for a second, in case it is wanted again, and returns it to the system when
//! after that some thread frees a page. A broker that is idle after a flood frees none, and would hold
//! the flood's memory for as long: the memory alarm would stay on, and publishers blocked. So somebody
//! frees a page now and then.
//!
//! Every thread has its own pages of every size. A huge page makes 2 MiB of each that is touched, for an
//! idle broker eight times what it uses; messages come and go no faster for it. mimalloc is built so that it
//! does not ask for them (`no_thp`), and where the system gives them unasked, the process declines.

use std::hint::black_box;

use crate::limits::{GIVE_BACK_BYTES, GIVE_BACK_INTERVAL};

/// Declines huge pages for the whole process and what it becomes by `exec`. To be called first: what has
/// been touched before stays as large as it is.
#[cfg(target_os = "linux")]
pub(crate) fn decline_huge_pages() {
    // A system that cannot be told this has none, or the process takes more memory: no reason not to start.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Elsewhere no page becomes a huge one without being asked for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn decline_huge_pages() {}

/// Has memory given back that is due, again and again.
pub(crate) async fn give_back() {
    loop {
        // Never touched, so that it costs addresses only; so large that it is a page of its own.
        drop(black_box(Vec::<u8>::with_capacity(GIVE_BACK_BYTES)));
        tokio::time::sleep(GIVE_BACK_INTERVAL).await;
    }
}
