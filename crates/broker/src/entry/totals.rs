//! Totals over the messages in one part of a queue.

use crate::ids::Lsn;
use crate::message::{Message, MessageSizes};

/// The part of a message that counts as its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum CountedBytes {
    /// The body alone.
    #[default]
    Body,
    /// The body and the encoded properties.
    BodyAndProperties,
}

impl CountedBytes {
    pub(crate) fn of(self, message: &Message) -> u64 {
        self.of_sizes(message.sizes())
    }

    pub(crate) fn of_sizes(self, sizes: MessageSizes) -> u64 {
        let properties = match self {
            Self::Body => 0,
            Self::BodyAndProperties => u64::from(sizes.properties),
        };
        u64::from(sizes.body) + properties
    }
}

/// Messages of a queue that survive a restart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PersistentMessages {
    /// The number of messages.
    pub messages: u64,
    /// The bytes of the messages, counted as the queue type counts them.
    pub bytes: u64,
}

impl std::ops::Add for PersistentMessages {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }
}

/// The bytes of the messages in one part of a queue, and the share that survives a restart.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    counted: CountedBytes,
    bytes: u64,
    persistent: PersistentMessages,
}

impl Totals {
    pub(crate) const fn new(counted: CountedBytes) -> Self {
        let persistent = PersistentMessages { messages: 0, bytes: 0 };
        Self { counted, bytes: 0, persistent }
    }

    /// The part of a message that counts.
    pub(crate) fn counted(&self) -> CountedBytes {
        self.counted
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.persistent
    }

    /// Adds a message; `lsn` is the position of its record, or 0.
    pub(crate) fn add(&mut self, message: &Message, lsn: Lsn) {
        self.add_sizes(message.sizes(), lsn);
    }

    /// Adds a message of these sizes.
    pub(crate) fn add_sizes(&mut self, sizes: MessageSizes, lsn: Lsn) {
        let bytes = self.counted.of_sizes(sizes);
        self.bytes += bytes;
        if lsn != Lsn(0) {
            self.persistent.messages += 1;
            self.persistent.bytes += bytes;
        }
    }

    /// Subtracts a message.
    pub(crate) fn subtract(&mut self, message: &Message, lsn: Lsn) {
        self.subtract_bytes(self.counted.of(message), lsn);
    }

    /// Subtracts a message of `bytes` bytes.
    pub(crate) fn subtract_bytes(&mut self, bytes: u64, lsn: Lsn) {
        self.bytes -= bytes;
        if lsn != Lsn(0) {
            self.persistent.messages -= 1;
            self.persistent.bytes -= bytes;
        }
    }

    /// Subtracts a persistent message whose size is not known yet; its bytes count until
    /// [`Self::replace_persistent_bytes`].
    pub(crate) fn subtract_persistent_of_unknown_size(&mut self) {
        self.persistent.messages -= 1;
    }

    /// Replaces the bytes of some persistent messages, counted as `before` until now, by `after`.
    pub(crate) fn replace_persistent_bytes(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes + after - before;
        self.persistent.bytes = self.persistent.bytes + after - before;
    }

    /// Resets all totals to zero.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.counted);
    }
}
