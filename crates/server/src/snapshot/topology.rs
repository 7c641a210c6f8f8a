//! Exchanges and bindings at one moment.

use amqp::table::Table;
use broker::{
    Binding, Destination, Exchange, ExchangeCounters, ExchangeId, ExchangeType, Name, Vhost,
};

/// An exchange with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct ExchangeSnapshot {
    /// Id in the vhost.
    pub id: ExchangeId,
    /// Name of the vhost.
    pub vhost: Name,
    /// The name.
    pub name: Name,
    /// The type.
    pub kind: ExchangeType,
    /// True if it survives a restart.
    pub durable: bool,
    /// True if it is deleted with its last user.
    pub auto_delete: bool,
    /// True if clients cannot publish to it.
    pub internal: bool,
    /// Arguments of the declaration.
    pub arguments: Table,
    /// Name of the policy in force.
    pub policy: Option<Name>,
    /// The user who declared it.
    pub declared_by: Name,
    /// Counts since the start.
    pub counters: ExchangeCounters,
    /// Messages that a delayed exchange holds.
    pub messages_delayed: Option<u64>,
}

/// A binding with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct BindingSnapshot {
    /// Name of the vhost.
    pub vhost: Name,
    /// Name of the source.
    pub source: Name,
    /// Name of the destination.
    pub destination: Name,
    /// True if the destination is a queue.
    pub to_queue: bool,
    /// The routing key.
    pub routing_key: Name,
    /// Arguments of the declaration.
    pub arguments: Table,
}

/// Selects bindings of a vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindingFilter<'a> {
    /// All bindings of the vhost.
    Vhost,
    /// Bindings to a queue.
    Queue(&'a str),
    /// Bindings from an exchange.
    Source(&'a str),
    /// Bindings to an exchange.
    Destination(&'a str),
}

impl ExchangeSnapshot {
    /// Copies all exchanges of `vhost`.
    pub fn all(vhost: &Vhost) -> Vec<Self> {
        vhost.exchanges().map(|(id, exchange)| Self::of(vhost, id, exchange)).collect()
    }

    /// Copies an exchange of `vhost`; none without such an exchange.
    pub fn one(vhost: &Vhost, name: &str) -> Option<Self> {
        let id = vhost.exchange_id(name)?;
        vhost.exchange_of(id).map(|exchange| Self::of(vhost, id, exchange))
    }

    fn of(vhost: &Vhost, id: ExchangeId, exchange: &Exchange) -> Self {
        let policy = vhost.policies().for_exchange(&exchange.name).user;
        Self {
            id,
            counters: exchange.counters,
            messages_delayed: exchange.delayed_count(),
            vhost: vhost.name().clone(),
            name: exchange.name.clone(),
            kind: exchange.kind,
            durable: exchange.durable,
            auto_delete: exchange.auto_delete,
            internal: exchange.internal,
            arguments: exchange.arguments.clone(),
            declared_by: exchange.declared_by.clone(),
            policy: policy.map(|policy| policy.name.clone()),
        }
    }
}

impl BindingSnapshot {
    /// Copies bindings of `vhost`. Every queue is bound to the default exchange by its name, although the
    /// broker stores no such binding. A missing queue or exchange has no bindings.
    pub fn of(vhost: &Vhost, which: BindingFilter<'_>) -> Vec<Self> {
        match which {
            BindingFilter::Vhost => {
                let exchanges = vhost.exchanges().map(|(_, exchange)| exchange);
                exchanges.flat_map(|exchange| Self::from(vhost, exchange)).collect()
            }
            BindingFilter::Source(name) => {
                vhost.exchange(name).map(|source| Self::from(vhost, source)).unwrap_or_default()
            }
            BindingFilter::Queue(name) => {
                // COMPAT: bindings of no queue: a missing queue has no bindings; RabbitMQ shows the one to
                // the default exchange.
                let Some(queue) = vhost.queue(name) else { return Vec::new() };
                let explicit = queue.bindings().filter_map(|(source, binding)| {
                    Self::explicit(vhost, vhost.exchange_of(*source)?, binding)
                });
                std::iter::once(Self::implicit(vhost, &queue.name)).chain(explicit).collect()
            }
            BindingFilter::Destination(name) => {
                let bound = vhost.exchange(name).into_iter().flat_map(Exchange::bound_from);
                let bindings = bound.filter_map(|(source, binding)| {
                    Self::explicit(vhost, vhost.exchange_of(*source)?, binding)
                });
                bindings.collect()
            }
        }
    }

    fn from(vhost: &Vhost, source: &Exchange) -> Vec<Self> {
        if source.is_default() {
            return vhost.queues().map(|(_, queue)| Self::implicit(vhost, &queue.name)).collect();
        }
        source.bindings().filter_map(|binding| Self::explicit(vhost, source, binding)).collect()
    }

    fn implicit(vhost: &Vhost, queue: &Name) -> Self {
        Self {
            vhost: vhost.name().clone(),
            source: Name::from(""),
            destination: queue.clone(),
            to_queue: true,
            routing_key: queue.clone(),
            arguments: Table::default(),
        }
    }

    fn explicit(vhost: &Vhost, source: &Exchange, binding: &Binding) -> Option<Self> {
        let (destination, to_queue) = match binding.destination {
            Destination::Queue(id) => (&vhost.queue_of(id)?.name, true),
            Destination::Exchange(id) => (&vhost.exchange_of(id)?.name, false),
        };
        Some(Self {
            vhost: vhost.name().clone(),
            source: source.name.clone(),
            destination: destination.clone(),
            to_queue,
            routing_key: binding.routing_key.clone(),
            arguments: binding.arguments.table().to_table(),
        })
    }

    /// Sort key in lists.
    pub fn place(&self) -> (&str, &str, bool, &str, &[u8]) {
        let arguments = self.arguments.as_ref().as_bytes();
        (&self.source, &self.destination, !self.to_queue, &self.routing_key, arguments)
    }
}
