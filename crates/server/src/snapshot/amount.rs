//! A number of messages and their bytes.

/// A number of messages and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Amount {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Amount {
    /// The messages of this amount that are not in the other one.
    pub fn without(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}
