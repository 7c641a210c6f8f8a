//! A cancellation of many messages that wait, in slices, as a user of HTTP asks for it.

use broker::{Lsn, ScheduledCursor, ScheduledFilter};

/// A cancellation that is not answered.
#[derive(Debug)]
pub(super) struct Cancellation {
    pub(super) request: u64,
    pub(super) filter: ScheduledFilter,
    /// The position behind the last slice.
    pub(super) behind: Option<ScheduledCursor>,
    pub(super) is_found: bool,
    /// The position that the answer waits for, once all is cancelled.
    pub(super) waits_for: Option<Lsn>,
}

impl Cancellation {
    pub(super) fn new(request: u64, filter: ScheduledFilter) -> Self {
        Self { request, filter, behind: None, is_found: false, waits_for: None }
    }
}
