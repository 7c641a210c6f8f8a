//! A cancellation of many messages that wait, in slices, as a user of HTTP asks for it.

use broker::{Lsn, ScheduledCursor, ScheduledFilter};

/// A cancellation that is not answered.
#[derive(Debug)]
pub(crate) struct Cancellation {
    pub(crate) request: u64,
    pub(crate) filter: ScheduledFilter,
    /// The position behind the last slice.
    pub(crate) behind: Option<ScheduledCursor>,
    pub(crate) is_found: bool,
    /// The position that the answer waits for, once all is cancelled.
    pub(crate) waits_for: Option<Lsn>,
}

impl Cancellation {
    pub(crate) fn new(request: u64, filter: ScheduledFilter) -> Self {
        Self { request, filter, behind: None, is_found: false, waits_for: None }
    }
}
