//! The parts of a vhost. Each owns its fields and takes everything else as arguments; none knows the
//! [`Vhost`](crate::Vhost).

pub(super) mod alarm;
pub(super) mod connections;
pub(super) mod dead_lettering;
pub(super) mod death_fate;
pub(super) mod death_ledger;
pub(super) mod durable_sums;
pub(super) mod effects;
pub(super) mod enqueue_plan;
pub(super) mod firehose;
pub(super) mod given_reasons;
pub(super) mod hand_over;
pub(super) mod holder;
pub(super) mod log_state;
pub(super) mod paging;
pub(super) mod pending_death;
pub(super) mod policy_book;
pub(super) mod recorded_death;
pub(super) mod redrive_book;
pub(super) mod topology;
pub(super) mod unacked_memory;
