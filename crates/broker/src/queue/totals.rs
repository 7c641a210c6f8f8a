//! What the messages in one part of a queue add up to.

use crate::ids::Lsn;
use crate::message::Message;

/// What of a message counts as its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CountedBytes {
    /// The body alone.
    Body,
    /// The body and the encoded properties.
    BodyAndProperties,
}

impl CountedBytes {
    pub(crate) fn of(self, message: &Message) -> u64 {
        let properties = match self {
            Self::Body => 0,
            Self::BodyAndProperties => message.properties().len(),
        };
        (message.body().len() + properties) as u64
    }
}

/// Messages of a queue that outlive a restart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PersistentMessages {
    /// How many.
    pub messages: u64,
    /// Their bytes, counted as the queue type counts them.
    pub bytes: u64,
}

impl std::ops::Add for PersistentMessages {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }
}

/// The bytes of the messages in one part of a queue, and how much of that outlives a restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    counted: CountedBytes,
    bytes: u64,
    persistent: PersistentMessages,
}

impl Totals {
    pub(crate) fn new(counted: CountedBytes) -> Self {
        Self { counted, bytes: 0, persistent: PersistentMessages::default() }
    }

    /// What of a message counts.
    pub(crate) fn counted(&self) -> CountedBytes {
        self.counted
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.persistent
    }

    /// A message is there; `lsn` is of the record that brought it, or 0.
    pub(crate) fn add(&mut self, message: &Message, lsn: Lsn) {
        let bytes = self.counted.of(message);
        self.bytes += bytes;
        if lsn != Lsn(0) {
            self.persistent.messages += 1;
            self.persistent.bytes += bytes;
        }
    }

    /// A message is there no more.
    pub(crate) fn subtract(&mut self, message: &Message, lsn: Lsn) {
        self.subtract_bytes(self.counted.of(message), lsn);
    }

    /// A message of so many bytes is there no more.
    pub(crate) fn subtract_bytes(&mut self, bytes: u64, lsn: Lsn) {
        self.bytes -= bytes;
        if lsn != Lsn(0) {
            self.persistent.messages -= 1;
            self.persistent.bytes -= bytes;
        }
    }

    /// A message that outlives a restart is there no more; its bytes are not known yet and count until
    /// [`Self::replace_persistent_bytes`].
    pub(crate) fn subtract_persistent_of_unknown_size(&mut self) {
        self.persistent.messages -= 1;
    }

    /// Some messages, which all outlive a restart, have `after` bytes and were counted with `before`.
    pub(crate) fn replace_persistent_bytes(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes + after - before;
        self.persistent.bytes = self.persistent.bytes + after - before;
    }

    /// Nothing is there any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.counted);
    }
}
