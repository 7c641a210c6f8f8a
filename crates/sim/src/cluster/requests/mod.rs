//! Requests to a process that are answered later: barriers and files, redrives, cancellations, shipments.

pub(crate) mod cancellation;
pub(crate) mod redrive_job;
pub(crate) mod redrives;
pub(crate) mod transfer;
pub(crate) mod unanswered;
pub(crate) mod waiting;
