//! The commands of clients, in files by AMQP's classes.

mod bindings;
mod channels;
mod consume;
mod exchanges;
mod get;
mod publish;
mod queue_removal;
mod queues;
pub(super) mod schedule;
mod settle;
mod told_schedules;
mod transaction;
