//! Bindings: a destination, a binding key and arguments.

use std::sync::Arc;

use amqp::table::{Table, TableRef};

use crate::ids::{ExchangeId, QueueId};
use crate::limits::BINDING_MEMORY_BYTES;
use crate::message::Name;

/// The destination of a binding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Destination {
    /// A queue.
    Queue(QueueId),
    /// Another exchange.
    Exchange(ExchangeId),
}

/// One binding of an exchange.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Binding {
    /// The queue or exchange that receives the messages.
    pub destination: Destination,
    /// The binding key.
    pub routing_key: Name,
    /// The arguments of the binding, sorted by key.
    pub arguments: BindingArguments,
}

/// Arguments of a binding; two bindings that differ only in their arguments are two bindings. The copies at
/// both ends and in the log share one table.
#[derive(Clone, Default, Debug)]
pub struct BindingArguments(Option<Arc<Table>>);

impl BindingArguments {
    /// Normalises the arguments: sorted by key, without duplicates.
    pub fn new(arguments: TableRef<'_>) -> Self {
        Self((!arguments.is_empty()).then(|| Arc::new(arguments.normalised())))
    }

    /// The arguments as a table.
    pub fn table(&self) -> TableRef<'_> {
        self.0.as_ref().map(|table| (**table).as_ref()).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        self.table().as_bytes()
    }
}

impl PartialEq for BindingArguments {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for BindingArguments {}

impl PartialOrd for BindingArguments {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BindingArguments {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Binding {
    /// Approximate memory that the binding takes at both ends, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        BINDING_MEMORY_BYTES + (self.routing_key.len() + self.arguments.bytes().len()) as u64
    }
}
