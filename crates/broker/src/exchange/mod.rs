//! Exchanges: what they are, what is bound to them, and where one of them sends a routing key.
//!
//! Each type has a file of its own and answers one question: to which destinations does this key
//! (and these headers) go? Walking from exchange to exchange, alternate exchanges and the default
//! exchange are `route`'s business; names, permissions and equivalence are the vhost's.

mod consistent_hash;
mod direct;
mod fanout;
mod headers;
mod keys;
mod local_random;
mod modulus_hash;
mod reach;
mod topic;

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::{Table, TableRef};
use rand_chacha::ChaCha12Rng;
use smallvec::SmallVec;

use crate::ids::{ExchangeId, Lsn, QueueId};
use crate::limits::{BINDING_MEMORY_BYTES, EXCHANGE_MEMORY_BYTES};
use crate::message::Name;
use crate::policy::InForce;
use crate::queue::QueueType;
use crate::queue::meter::{Meter, MeterShare};
use crate::refusal::Refusal;
use crate::statistics::ExchangeCounters;
use consistent_hash::ConsistentHash;
use direct::Direct;
use fanout::Fanout;
use headers::Headers;
pub(crate) use keys::Keys;
use local_random::LocalRandom;
use modulus_hash::ModulusHash;
pub(crate) use reach::Chance;
use topic::Topic;

/// The types of exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExchangeType {
    /// The binding key equals the routing key.
    Direct,
    /// Every binding matches.
    Fanout,
    /// The binding key is a pattern of words with `*` and `#`.
    Topic,
    /// The binding's arguments match the message's headers.
    Headers,
    /// `x-consistent-hash`: one destination by hash, in proportion to the binding keys.
    ConsistentHash,
    /// `x-modulus-hash`: one destination by hash of the routing key.
    ModulusHash,
    /// `x-local-random`: one destination at random.
    LocalRandom,
}

impl ExchangeType {
    /// All types, in the order listings show them.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::Fanout,
        Self::Headers,
        Self::Topic,
        Self::ConsistentHash,
        Self::LocalRandom,
        Self::ModulusHash,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
            Self::ConsistentHash => "x-consistent-hash",
            Self::ModulusHash => "x-modulus-hash",
            Self::LocalRandom => "x-local-random",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether where a message goes depends on its routing key alone, so that a route may be
    /// remembered.
    pub(crate) const fn routes_by_key_alone(self) -> bool {
        matches!(self, Self::Direct | Self::Fanout | Self::Topic)
    }
}

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

/// What an exchange sees of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routable<'a> {
    pub(crate) routing_key: &'a [u8],
    /// The message's encoded properties; only some types look into them.
    pub(crate) properties: &'a [u8],
}

impl<'a> Routable<'a> {
    /// The decoded properties; they were validated when the message was published.
    fn decoded(self) -> Properties<'a> {
        Properties::parse(self.properties).unwrap_or_default()
    }

    fn headers(self) -> TableRef<'a> {
        self.decoded().headers.unwrap_or(TableRef::EMPTY)
    }
}

/// An exchange.
#[derive(Debug)]
pub struct Exchange {
    /// Its name; empty for the default exchange.
    pub name: Name,
    /// Its type.
    pub kind: ExchangeType,
    /// Whether it survives a restart.
    pub durable: bool,
    /// The record that declared it; 0 if it does not survive one, or is predeclared.
    pub(crate) lsn: Lsn,
    /// Whether it goes with its last binding.
    pub auto_delete: bool,
    /// Whether clients may not publish to it.
    pub internal: bool,
    /// Its arguments as declared.
    pub arguments: Table,
    /// The user who has declared it.
    pub declared_by: Name,
    /// `alternate-exchange` from the arguments; wins over the policy's.
    pub alternate_argument: Option<Name>,
    /// Where messages go that nothing here matches: the argument or the policy's.
    pub alternate: Option<Name>,
    /// The policies on it.
    pub(crate) policies: InForce,
    /// Memory that it takes with its bindings.
    pub(crate) memory: MeterShare,
    /// The bindings that lead here.
    pub(crate) bound_from: BTreeSet<(ExchangeId, Binding)>,
    bindings: BTreeSet<Binding>,
    /// What it has routed.
    pub counters: ExchangeCounters,
    router: Router,
}

#[derive(Debug)]
enum Router {
    Direct(Direct),
    Fanout(Fanout),
    Topic(Topic),
    Headers(Headers),
    ConsistentHash(ConsistentHash),
    ModulusHash(ModulusHash),
    LocalRandom(LocalRandom),
}

/// What a client says when it declares an exchange.
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
}

impl Exchange {
    /// A new exchange without bindings; `seed` seeds the hashes of its tables.
    ///
    /// # Errors
    /// 406 when an argument of its type is not what it must be.
    pub(crate) fn new(
        declaration: ExchangeDeclaration,
        seed: u64,
        topology: &Meter,
    ) -> Result<Self, Refusal> {
        let arguments = declaration.arguments.as_ref();
        let said = declaration.name.len() + arguments.as_bytes().len();
        let memory = topology.share(EXCHANGE_MEMORY_BYTES + said as u64);
        let router = match declaration.kind {
            ExchangeType::Direct => Router::Direct(Direct::new(seed)),
            ExchangeType::Fanout => Router::Fanout(Fanout::default()),
            ExchangeType::Topic => Router::Topic(Topic::default()),
            ExchangeType::Headers => Router::Headers(Headers::default()),
            ExchangeType::ConsistentHash => Router::ConsistentHash(ConsistentHash::new(arguments)?),
            ExchangeType::ModulusHash => Router::ModulusHash(ModulusHash::default()),
            ExchangeType::LocalRandom => Router::LocalRandom(LocalRandom::default()),
        };
        Ok(Self {
            name: declaration.name,
            kind: declaration.kind,
            durable: declaration.durable,
            lsn: Lsn(0),
            auto_delete: declaration.auto_delete,
            internal: declaration.internal,
            arguments: declaration.arguments,
            declared_by: declaration.declared_by,
            alternate: declaration.alternate.clone(),
            alternate_argument: declaration.alternate,
            policies: InForce::default(),
            memory,
            bound_from: BTreeSet::new(),
            bindings: BTreeSet::new(),
            counters: ExchangeCounters::default(),
            router,
        })
    }

    /// Whether this is the default exchange, which routes by queue name and has no bindings.
    pub fn is_default(&self) -> bool {
        self.name.is_empty()
    }

    /// Its bindings, in a stable order.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter()
    }

    /// The bindings that lead here, with the exchanges they lead from.
    pub fn bound_from(&self) -> impl Iterator<Item = &(ExchangeId, Binding)> {
        self.bound_from.iter()
    }

    /// Whether it has this binding.
    pub(crate) fn has(&self, binding: &Binding) -> bool {
        self.bindings.contains(binding)
    }

    /// Whether anything is bound to it.
    pub fn is_bound(&self) -> bool {
        !self.bindings.is_empty()
    }

    /// Whether this type can have that binding; `to_queue` is the type of the queue it leads to, if it
    /// leads to one.
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
            Router::Direct(_) | Router::Fanout(_) | Router::ModulusHash(_) => Ok(()),
        }
    }

    /// Adds a binding; false if it was there. Call `check_binding` first.
    pub(crate) fn bind(&mut self, binding: Binding) -> bool {
        if self.bindings.contains(&binding) {
            return false;
        }
        match &mut self.router {
            Router::Direct(r) => r.bind(&binding),
            Router::Fanout(r) => r.bind(&binding),
            Router::Topic(r) => r.bind(&binding),
            Router::Headers(r) => r.bind(&binding),
            Router::ConsistentHash(r) => r.bind(&binding),
            Router::ModulusHash(r) => r.bind(&binding),
            Router::LocalRandom(r) => r.bind(&binding),
        }
        self.memory.grow(binding.memory_bytes());
        self.bindings.insert(binding)
    }

    /// Removes a binding; false if there was none.
    pub(crate) fn unbind(&mut self, binding: &Binding) -> bool {
        if !self.bindings.remove(binding) {
            return false;
        }
        self.memory.shrink(binding.memory_bytes());
        match &mut self.router {
            Router::Direct(r) => r.unbind(binding),
            Router::Fanout(r) => r.unbind(binding),
            Router::Topic(r) => r.unbind(binding),
            Router::Headers(r) => r.unbind(binding),
            Router::ConsistentHash(r) => r.unbind(binding),
            Router::ModulusHash(r) => r.unbind(binding),
            Router::LocalRandom(r) => r.unbind(binding),
        }
        true
    }

    /// Hands every destination of the message to `found`, some perhaps more than once.
    pub(crate) fn route(
        &self,
        message: Routable<'_>,
        random: &mut ChaCha12Rng,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.router {
            Router::Direct(r) => r.route(message.routing_key, found),
            Router::Fanout(r) => r.route(found),
            Router::Topic(r) => r.route(message.routing_key, found),
            Router::Headers(r) => r.route(message.headers(), found),
            Router::ConsistentHash(r) => r.route(message, found),
            Router::ModulusHash(r) => r.route(message.routing_key, found),
            Router::LocalRandom(r) => r.route(random, found),
        }
    }

    /// Hands every destination of a message with several keys to `found`, some perhaps more than once. Of
    /// `CC` and `BCC` direct and topic exchanges take notice; the others do not look at keys, or choose
    /// one destination by the first.
    pub(crate) fn route_all(
        &self,
        keys: &mut Keys<'_>,
        properties: &[u8],
        random: &mut ChaCha12Rng,
        found: &mut dyn FnMut(Destination),
    ) {
        match &self.router {
            Router::Topic(r) => r.route_all(keys.words(), found),
            // As many look-ups as keys, or as bindings if these are fewer.
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
            | Router::LocalRandom(_) => {
                self.route(Routable { routing_key: keys.first(), properties }, random, found);
            }
        }
    }
}

/// Destinations with the number of bindings that lead to each: two bindings of one queue that differ
/// only in their arguments are one destination, until both are gone. Sorted.
#[derive(Clone, Default, Debug)]
struct Destinations(SmallVec<[(Destination, u32); 1]>);

impl Destinations {
    fn find(&self, destination: Destination) -> Result<usize, usize> {
        self.0.binary_search_by_key(&destination, |(destination, _)| *destination)
    }

    fn add(&mut self, destination: Destination) {
        match self.find(destination) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (destination, 1)),
        }
    }

    fn remove(&mut self, destination: Destination) {
        if let Ok(at) = self.find(destination) {
            let bindings = &mut self.0[at].1;
            *bindings -= 1;
            if *bindings == 0 {
                self.0.remove(at);
            }
        }
    }

    fn contains(&self, destination: Destination) -> bool {
        self.find(destination).is_ok()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn nth(&self, at: usize) -> Option<Destination> {
        self.0.get(at).map(|(destination, _)| *destination)
    }

    fn each(&self, found: &mut dyn FnMut(Destination)) {
        for (destination, _) in &self.0 {
            found(*destination);
        }
    }
}

/// A hash that stays the same over restarts and releases: FNV-1a with a final mix, so that near keys
/// land far apart.
fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
