//! The commands of clients, in files by AMQP's classes.

mod annotate;
pub(super) mod bindings;
mod channels;
mod consume;
mod exchanges;
mod get;
mod publish;
mod queue_removal;
mod queues;
mod schedule;
mod scheduled_places;
pub(in crate::vhost) mod settle;
mod transaction;
