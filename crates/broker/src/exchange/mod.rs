//! Exchanges: their types, their bindings, and the destinations that one exchange finds for a message.
//!
//! Each type has a file of its own that answers one question: to which destinations does this key (with these
//! headers) go? `route` walks from exchange to exchange and handles alternate exchanges and the default
//! exchange; the vhost handles names, permissions and equivalence.

mod binding;
mod consistent_hash;
pub(crate) mod control;
mod counters;
pub(crate) mod delayed;
mod destinations;
mod direct;
mod fanout;
pub(crate) mod federation_upstream;
mod headers;
mod keys;
mod kind;
mod local_random;
mod modulus_hash;
mod reach;
mod routable;
mod topic;
mod topic_trie;

use amqp::table::{Table, TableRef};
use rand_chacha::ChaCha12Rng;

use crate::collections::SmallSet;
use crate::entry::meter::{Meter, MeterShare};
use crate::ids::{ExchangeId, Lsn};
use crate::limits::EXCHANGE_MEMORY_BYTES;
use crate::message::Name;
use crate::policy::EffectivePolicies;
use crate::queue_type::QueueType;
use crate::record::ExchangeRecord;
use crate::refusal::Refusal;
use crate::time::Time;
pub use binding::{Binding, BindingArguments, Destination};
use consistent_hash::ConsistentHash;
pub use counters::{ExchangeCounters, UnroutablePublish};
use delayed::{HeldMessages, HeldStore};
use direct::Direct;
use fanout::Fanout;
use federation_upstream::FederationUpstream;
use headers::Headers;
pub(crate) use keys::Keys;
pub use kind::ExchangeType;
use local_random::LocalRandom;
use modulus_hash::ModulusHash;
pub(crate) use reach::Certainty;
pub(crate) use routable::Routable;
use topic::Topic;

/// An exchange.
#[derive(Debug)]
pub struct Exchange {
    /// The name; empty for the default exchange.
    pub name: Name,
    /// The exchange type.
    pub kind: ExchangeType,
    /// The type by which the exchange routes: another one than `kind` for a delayed exchange.
    pub routing_type: ExchangeType,
    /// True if the exchange survives a restart.
    pub durable: bool,
    /// Position of the record that declared the exchange; 0 if the exchange is transient or predeclared.
    pub(crate) lsn: Lsn,
    /// True if the exchange is deleted with its last binding.
    pub auto_delete: bool,
    /// True if clients may not publish to the exchange.
    pub internal: bool,
    /// The arguments as declared.
    pub arguments: Table,
    /// The user who declared the exchange.
    pub declared_by: Name,
    /// The exchange for messages that match no binding.
    pub alternate: Alternate,
    /// The policies that apply to the exchange.
    pub(crate) policies: EffectivePolicies,
    /// Memory of the exchange and its bindings.
    pub(crate) memory: MeterShare,
    /// The bindings of which this exchange is the destination.
    pub(crate) bound_from: SmallSet<(ExchangeId, Binding)>,
    bindings: SmallSet<Binding>,
    /// Counters of routed messages.
    pub counters: ExchangeCounters,
    /// The last publish that reached no queue and was dropped.
    pub last_unroutable: Option<UnroutablePublish>,
    /// The messages that wait here, if this is a delayed exchange.
    pub(crate) held: Option<Box<HeldMessages>>,
    router: Router,
}

/// An alternate exchange.
#[derive(Debug)]
pub struct Alternate {
    /// `alternate-exchange` of the arguments; overrides the policy.
    pub(crate) argument: Option<Name>,
    /// The exchange in force, from the arguments or the policy.
    pub in_force: Option<Name>,
}

#[derive(Debug)]
enum Router {
    Direct(Direct),
    Fanout(Fanout),
    Topic(Topic),
    Headers(Headers),
    ConsistentHash(Box<ConsistentHash>),
    ModulusHash(ModulusHash),
    LocalRandom(LocalRandom),
    FederationUpstream(Box<FederationUpstream>),
}

/// The contents of an `exchange.declare`.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeDeclaration {
    pub(crate) name: Name,
    pub(crate) kind: ExchangeType,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) internal: bool,
    pub(crate) arguments: Table,
    pub(crate) alternate: Option<Name>,
    pub(crate) declared_by: Name,
    /// The place of the messages of a delayed exchange.
    pub(crate) store: Option<HeldStore>,
}

impl Exchange {
    /// The declaration as the log has it.
    pub(crate) fn record(&self) -> ExchangeRecord {
        ExchangeRecord {
            name: Name::clone(&self.name),
            kind: self.kind,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: self.arguments.clone(),
            declared_by: Name::clone(&self.declared_by),
            store: self.held.as_ref().map(|held| held.number),
        }
    }

    /// Creates an exchange without bindings; `seed` seeds the hashes of its tables.
    ///
    /// # Errors
    /// 406 if an argument of the exchange type is invalid.
    pub(crate) fn new(
        declaration: ExchangeDeclaration,
        seed: u64,
        topology: &Meter,
    ) -> Result<Self, Refusal> {
        let arguments = declaration.arguments.as_ref();
        let said = declaration.name.len() + arguments.as_bytes().len();
        let memory = topology.share(EXCHANGE_MEMORY_BYTES + said as u64);
        let is_delayed = declaration.kind == ExchangeType::Delayed;
        let routing_type =
            if is_delayed { delayed::routing_type(arguments)? } else { declaration.kind };
        let router = match routing_type {
            ExchangeType::Direct => Router::Direct(Direct::new(seed)),
            ExchangeType::Fanout => Router::Fanout(Fanout::default()),
            ExchangeType::Topic => Router::Topic(Topic::default()),
            ExchangeType::Headers => Router::Headers(Headers::default()),
            ExchangeType::ConsistentHash => {
                Router::ConsistentHash(Box::new(ConsistentHash::new(arguments)?))
            }
            ExchangeType::ModulusHash => Router::ModulusHash(ModulusHash::default()),
            ExchangeType::LocalRandom => Router::LocalRandom(LocalRandom::default()),
            ExchangeType::FederationUpstream => {
                Router::FederationUpstream(Box::new(FederationUpstream::new(arguments)?))
            }
            ExchangeType::Delayed => unreachable!("a delayed exchange routes by another type"),
        };
        Ok(Self {
            name: declaration.name,
            kind: declaration.kind,
            routing_type,
            durable: declaration.durable,
            lsn: Lsn(0),
            auto_delete: declaration.auto_delete,
            internal: declaration.internal,
            arguments: declaration.arguments,
            declared_by: declaration.declared_by,
            alternate: Alternate {
                in_force: declaration.alternate.clone(),
                argument: declaration.alternate,
            },
            policies: EffectivePolicies::default(),
            memory,
            bound_from: SmallSet::default(),
            bindings: SmallSet::default(),
            counters: ExchangeCounters::default(),
            last_unroutable: None,
            held: declaration.store.map(|store| Box::new(HeldMessages::new(store))),
            router,
        })
    }

    /// True for the default exchange, which routes by queue name and has no bindings.
    pub fn is_default(&self) -> bool {
        self.name.is_empty()
    }

    /// Messages that wait in a delayed exchange; none if the exchange is of another type.
    pub fn delayed_count(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.len() as u64)
    }

    /// The time at which a delayed exchange routes its next message.
    pub fn next_delayed_at(&self) -> Option<Time> {
        self.held.as_ref()?.next_ready_at()
    }

    /// The bindings of this exchange, in a stable order.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter()
    }

    /// The bindings of which this exchange is the destination, each with its source exchange.
    pub fn bound_from(&self) -> impl Iterator<Item = &(ExchangeId, Binding)> {
        self.bound_from.iter()
    }

    /// True if the exchange has this binding.
    pub(crate) fn has(&self, binding: &Binding) -> bool {
        self.bindings.contains(binding)
    }

    /// True if the exchange has any binding.
    pub fn is_bound(&self) -> bool {
        !self.bindings.is_empty()
    }

    /// Checks that this exchange type accepts the binding; `to_queue` is the type of the destination queue,
    /// none if the destination is an exchange.
    ///
    /// # Errors
    /// 406 with RabbitMQ's text.
    pub(crate) fn check_binding(
        &self,
        key: &str,
        arguments: TableRef<'_>,
        to_queue: Option<QueueType>,
    ) -> Result<(), Refusal> {
        match &self.router {
            Router::Topic(_) => topic::check_binding(key),
            Router::Headers(_) => headers::check_binding(arguments),
            Router::ConsistentHash(_) => consistent_hash::check_binding(key),
            Router::LocalRandom(_) => local_random::check_binding(key, to_queue),
            Router::Direct(_)
            | Router::Fanout(_)
            | Router::ModulusHash(_)
            | Router::FederationUpstream(_) => Ok(()),
        }
    }

    /// Adds a binding; false if the exchange already has it. Call `check_binding` first.
    pub(crate) fn bind(&mut self, binding: Binding) -> bool {
        if self.bindings.contains(&binding) {
            return false;
        }
        match &mut self.router {
            Router::Direct(r) => r.bind(&binding),
            Router::Fanout(r) => r.bind(&binding),
            Router::Topic(r) => r.bind(&binding, &self.bindings),
            Router::Headers(r) => r.bind(&binding),
            Router::ConsistentHash(r) => r.bind(&binding),
            Router::ModulusHash(r) => r.bind(&binding),
            Router::LocalRandom(r) => r.bind(&binding),
            Router::FederationUpstream(r) => r.bind(&binding),
        }
        self.memory.grow(binding.memory_bytes());
        self.bindings.insert(binding)
    }

    /// Removes a binding; false if the exchange does not have it.
    pub(crate) fn unbind(&mut self, binding: &Binding) -> bool {
        if !self.bindings.remove(binding) {
            return false;
        }
        self.memory.shrink(binding.memory_bytes());
        match &mut self.router {
            Router::Direct(r) => r.unbind(binding),
            Router::Fanout(r) => r.unbind(binding),
            Router::Topic(r) => r.unbind(binding, &self.bindings),
            Router::Headers(r) => r.unbind(binding),
            Router::ConsistentHash(r) => r.unbind(binding),
            Router::ModulusHash(r) => r.unbind(binding),
            Router::LocalRandom(r) => r.unbind(binding),
            Router::FederationUpstream(r) => r.unbind(binding),
        }
        true
    }

    /// Calls `found` with every destination of the message. Some destinations may come more than once.
    pub(crate) fn route(
        &self,
        message: Routable<'_>,
        random: &mut ChaCha12Rng,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.router {
            Router::Direct(r) => r.route(message.routing_key, found),
            Router::Fanout(r) => r.route(found),
            Router::Topic(r) => r.route(message.routing_key, &self.bindings, found),
            Router::Headers(r) => r.route(message.headers(), found),
            Router::ConsistentHash(r) => r.route(message, found),
            Router::ModulusHash(r) => r.route(message.routing_key, found),
            Router::LocalRandom(r) => r.route(random, found),
            Router::FederationUpstream(r) => r.route(message.headers(), found),
        }
    }

    /// Calls `found` with every destination of a message with several keys. Some destinations may come more
    /// than once. Only direct and topic exchanges use the `CC` and `BCC` keys; the other types ignore keys or
    /// choose one destination by the routing key.
    pub(crate) fn route_all(
        &self,
        keys: &mut Keys<'_>,
        properties: &[u8],
        random: &mut ChaCha12Rng,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.router {
            Router::Topic(r) => r.route_all(keys, &self.bindings, found),
            // One look-up per key, or one per binding if there are fewer bindings.
            Router::Direct(r) if self.bindings.len() >= keys.list.len() => {
                keys.list.iter().for_each(|key| r.route(key, found));
            }
            Router::Direct(_) => {
                let is_asked = |binding: &&Binding| keys.contains(binding.routing_key.as_bytes());
                let matching = self.bindings.iter().filter(is_asked);
                matching.for_each(|binding| found(binding.destination));
            }
            Router::Fanout(_)
            | Router::Headers(_)
            | Router::ConsistentHash(_)
            | Router::ModulusHash(_)
            | Router::LocalRandom(_)
            | Router::FederationUpstream(_) => {
                self.route(Routable { routing_key: keys.first(), properties }, random, found);
            }
        }
    }
}
