//! Queues, exchanges and bindings in definitions.

use amqp::table::Table;
use broker::{Bind, Command, DeclareExchange, DeclareQueue, Destination, Exchange, Queue, Vhost};

/// An exchange in definitions.
#[derive(Debug)]
pub(super) struct ExchangeDefinition {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    pub(super) arguments: Table,
}

/// A queue in definitions.
#[derive(Clone, Debug)]
pub(super) struct QueueDefinition {
    pub(super) name: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) arguments: Table,
}

/// A binding in definitions.
#[derive(Debug)]
pub(super) struct BindingDefinition {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) to_queue: bool,
    pub(super) routing_key: String,
    pub(super) arguments: Table,
}

/// True for names that clients cannot declare; they are skipped in both directions.
pub(super) fn is_reserved(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

impl ExchangeDefinition {
    /// The definition of an exchange.
    pub(super) fn of(exchange: &Exchange) -> Self {
        Self {
            name: exchange.name.to_string(),
            kind: exchange.kind.as_str().to_owned(),
            durable: exchange.durable,
            auto_delete: exchange.auto_delete,
            internal: exchange.internal,
            arguments: exchange.arguments.clone(),
        }
    }

    /// True if clients cannot declare this name.
    pub(super) fn is_reserved(&self) -> bool {
        is_reserved(&self.name)
    }

    /// The exchange of this name, which an import leaves as it is.
    pub(super) fn existing<'a>(&self, vhost: &'a Vhost) -> Option<&'a Exchange> {
        vhost.exchange(&self.name)
    }

    /// The command that declares the exchange.
    pub(super) fn command(&self) -> Command<'_> {
        Command::DeclareExchange(DeclareExchange {
            exchange: &self.name,
            kind: &self.kind,
            passive: false,
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            nowait: true,
            arguments: self.arguments.as_ref(),
        })
    }
}

impl QueueDefinition {
    /// The definition of a queue, or a copy of another definition if there is none.
    pub(super) fn of_or(queue: Option<&Queue>, other: &Self) -> Self {
        queue.map_or_else(|| other.clone(), Self::of)
    }

    /// The definition of a queue.
    pub(super) fn of(queue: &Queue) -> Self {
        Self {
            name: queue.name.to_string(),
            durable: queue.ownership.durable,
            auto_delete: queue.ownership.auto_delete,
            arguments: queue.arguments.table.clone(),
        }
    }

    /// True if clients cannot declare this name.
    pub(super) fn is_reserved(&self) -> bool {
        is_reserved(&self.name)
    }

    /// The queue of this name, which an import leaves as it is.
    pub(super) fn existing<'a>(&self, vhost: &'a Vhost) -> Option<&'a Queue> {
        vhost.queue(&self.name)
    }

    /// The command that declares the queue.
    pub(super) fn command(&self) -> Command<'_> {
        Command::DeclareQueue(DeclareQueue {
            queue: &self.name,
            passive: false,
            durable: self.durable,
            exclusive: false,
            auto_delete: self.auto_delete,
            nowait: true,
            arguments: self.arguments.as_ref(),
        })
    }
}

impl BindingDefinition {
    /// The bindings from an exchange to destinations that definitions contain.
    pub(super) fn from<'a>(
        vhost: &'a Vhost,
        source: &'a Exchange,
    ) -> impl Iterator<Item = Self> + 'a {
        source.bindings().filter_map(|binding| {
            let (destination, to_queue) = match binding.destination {
                Destination::Queue(id) => {
                    (&vhost.queue_of(id).filter(|queue| is_defined(queue))?.name, true)
                }
                Destination::Exchange(id) => (&vhost.exchange_of(id)?.name, false),
            };
            Some(Self {
                source: source.name.to_string(),
                destination: destination.to_string(),
                to_queue,
                routing_key: binding.routing_key.to_string(),
                arguments: binding.arguments.table().to_table(),
            })
        })
    }

    /// True if the destination is a queue that was left out, because clients cannot declare its name.
    pub(super) fn is_in_vain(&self, vhost: &Vhost) -> bool {
        self.to_queue && is_reserved(&self.destination) && vhost.queue(&self.destination).is_none()
    }

    /// The command that makes the binding, with this queue or exchange as destination.
    pub(super) fn command<'a>(&'a self, destination: &'a str) -> Command<'a> {
        let bind = Bind {
            destination,
            source: &self.source,
            routing_key: &self.routing_key,
            nowait: true,
            arguments: self.arguments.as_ref(),
        };
        if self.to_queue { Command::BindQueue(bind) } else { Command::BindExchange(bind) }
    }
}

/// True if definitions contain this queue: it is not exclusive, and clients can declare its name.
pub(super) fn is_defined(queue: &Queue) -> bool {
    queue.ownership.exclusive_owner.is_none() && !is_reserved(&queue.name)
}
