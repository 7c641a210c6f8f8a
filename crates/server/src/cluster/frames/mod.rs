//! The frames of an open link: their content, their queues, and their chunks on the wire.

pub(crate) mod control;
pub(crate) mod send_queue;
pub(crate) mod wire;
