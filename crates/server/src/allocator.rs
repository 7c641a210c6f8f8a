//! How the program's allocator is brought to give back what nobody uses any more.
//!
//! It is mimalloc, which keeps freed memory for a second, in case it is wanted again, and returns it to the system when
//! after that some thread frees a page. A broker that is idle after a flood frees none, and would hold
//! the flood's memory for as long: the memory alarm would stay on, and publishers blocked. So somebody
//! frees a page now and then.

use std::hint::black_box;

use crate::limits::{GIVE_BACK_BYTES, GIVE_BACK_INTERVAL};

/// Has memory given back that is due, again and again.
pub(crate) async fn give_back() {
    loop {
        // Never touched, so that it costs addresses only; so large that it is a page of its own.
        drop(black_box(Vec::<u8>::with_capacity(GIVE_BACK_BYTES)));
        tokio::time::sleep(GIVE_BACK_INTERVAL).await;
    }
}
