//! The checks of a run: `book` for what clients see, `ledger` for what is committed, `metadata_log` for the
//! metadata.

pub(crate) mod book;
pub(crate) mod hash;
pub(crate) mod ledger;
pub(crate) mod message_id;
pub(crate) mod metadata_log;
pub(crate) mod schedules;
pub(crate) mod waits;
