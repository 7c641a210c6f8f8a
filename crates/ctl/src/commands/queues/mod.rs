//! Commands about queues and their messages.

pub(super) mod death_history;
pub(super) mod delays;
pub(super) mod dlq;
pub(super) mod given_reasons;
pub(super) mod listed_queues;
pub(super) mod peek;
pub(super) mod redrives;
pub(super) mod schedules;
