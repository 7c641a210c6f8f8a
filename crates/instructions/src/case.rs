//! A case: a name, a number of messages, and the code that handles them.

/// Handles so many messages.
pub(crate) type Run = Box<dyn FnMut(u64)>;

/// A case, of which instructions are counted.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Number of messages that are counted, after as many to warm up.
    pub(crate) messages: u64,
    /// Sets everything up.
    pub(crate) begin: fn() -> Run,
}

impl Case {
    /// A case with the number of messages of most cases.
    pub(crate) const fn new(name: &'static str, begin: fn() -> Run) -> Self {
        Self { name, messages: 4096, begin }
    }
}
