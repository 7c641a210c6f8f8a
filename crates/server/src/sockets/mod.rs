//! Sockets of clients and nodes: accepted, counted, written, and refused when there are too many.

pub(crate) mod admission;
pub(crate) mod amqp_listeners;
pub(crate) mod counters;
pub(crate) mod descriptors;
pub(crate) mod listener;
pub(crate) mod read_scheduler;
pub(crate) mod refusals;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod socket_writer;
