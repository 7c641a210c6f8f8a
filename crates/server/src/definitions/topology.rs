//! Queues, exchanges and bindings as definitions have them.

use amqp::table::Table;
use broker::{Bind, Command, DeclareExchange, DeclareQueue, Destination, Exchange, Queue, Vhost};

/// An exchange.
#[derive(Debug)]
pub(super) struct ExchangeDefinition {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    pub(super) arguments: Table,
}

/// A queue.
#[derive(Debug)]
pub(super) struct QueueDefinition {
    pub(super) name: String,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) arguments: Table,
}

/// A binding.
#[derive(Debug)]
pub(super) struct BindingDefinition {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) to_queue: bool,
    pub(super) routing_key: String,
    pub(super) arguments: Table,
}

/// Names that clients cannot declare are left out, in both directions.
pub(super) fn is_reserved(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

impl ExchangeDefinition {
    /// What is to be told of an exchange.
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

    /// What makes it.
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
    /// What is to be told of a queue.
    pub(super) fn of(queue: &Queue) -> Self {
        Self {
            name: queue.name.to_string(),
            durable: queue.durable,
            auto_delete: queue.auto_delete,
            arguments: queue.arguments.table.clone(),
        }
    }

    /// What makes it.
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
    /// The bindings that lead away from an exchange to something that definitions have.
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

    /// Whether it leads to a queue that was left out, because only the broker can name it so.
    pub(super) fn is_in_vain(&self, vhost: &Vhost) -> bool {
        self.to_queue && is_reserved(&self.destination) && vhost.queue(&self.destination).is_none()
    }

    /// What makes it, with this queue or exchange as destination.
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

/// Whether definitions have this queue: it is nobody's own, and can be declared again.
pub(super) fn is_defined(queue: &Queue) -> bool {
    queue.exclusive_owner.is_none() && !is_reserved(&queue.name)
}
