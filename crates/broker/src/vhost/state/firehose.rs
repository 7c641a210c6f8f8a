//! State of the firehose: on or off, and the copies to enqueue at the end of the call.

use crate::message::{Message, Name};

/// The firehose of a vhost.
#[derive(Default, Debug)]
pub(crate) struct Firehose {
    is_on: bool,
    /// The node name for the headers of copies.
    node: Name,
    copies: Vec<Message>,
}

impl Firehose {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline]
    pub(crate) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    #[inline]
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    #[inline]
    pub(crate) fn set_node(&mut self, name: &str) {
        self.node = name.into();
    }

    /// True if no copy is pending.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Adds a copy that enters its queues at the end of the call.
    #[inline]
    pub(crate) fn push(&mut self, copy: Message) {
        self.copies.push(copy);
    }

    /// Takes the pending copies.
    #[inline]
    pub(crate) fn take_copies(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.copies)
    }
}
