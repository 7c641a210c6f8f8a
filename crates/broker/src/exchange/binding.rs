//! Bindings: a destination, a binding key and arguments.

use std::sync::Arc;

use amqp::table::{Table, TableRef};

use crate::ids::{ExchangeId, QueueId};
use crate::limits::BINDING_MEMORY_BYTES;
use crate::message::Name;

/// What a binding leads to.
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
    /// What it leads to.
    pub destination: Destination,
    /// The binding key.
    pub routing_key: Name,
    /// Its arguments, sorted by key.
    pub arguments: BindingArguments,
}

/// Arguments of a binding; two bindings that differ in them are two bindings. Both ends and the log know
/// of a binding: copies share the table.
#[derive(Clone, Default, Debug)]
pub struct BindingArguments(Option<Arc<Table>>);

impl BindingArguments {
    /// Takes the arguments as they came.
    pub fn new(arguments: TableRef<'_>) -> Self {
        Self((!arguments.is_empty()).then(|| Arc::new(arguments.normalised())))
    }

    /// The table.
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
    /// Memory that it takes at both ends, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        BINDING_MEMORY_BYTES + (self.routing_key.len() + self.arguments.bytes().len()) as u64
    }
}
