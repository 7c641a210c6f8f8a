//! Exchanges, queues and the bindings between them, by id and by name.
//!
//! An id from outside the current call (from a client, a timer, a page or the log) may be stale:
//! [`Topology::queue`] and [`Topology::exchange`] return an option. An id that was looked up or routed to in
//! this call, with nothing removed since, cannot be stale: [`Topology::known_queue`] and
//! [`Topology::known_exchange`] panic.

use std::collections::BTreeMap;
use std::sync::Arc;

use slotmap::SlotMap;

use crate::collections::Lookup;
use crate::entry::meter::Meter;
use crate::exchange::{Binding, Destination, Exchange};
use crate::ids::{ExchangeId, Lsn, QueueId, QueueNumber};
use crate::message::Name;
use crate::queue::{Queue, QueueArguments};

/// The exchanges, queues and bindings of a vhost.
#[derive(Debug)]
pub(crate) struct Topology {
    /// Seed that makes the hashes of exchanges unpredictable.
    seed: u64,
    /// Boxed, as queues are, so that unused slots of the map stay small.
    exchanges: SlotMap<ExchangeId, Box<Exchange>>,
    exchange_names: Lookup<Name, ExchangeId>,
    queues: SlotMap<QueueId, Box<Queue>>,
    queue_names: Lookup<Name, QueueId>,
    /// Arguments of the last declared queue, shared by identical declarations.
    last_arguments: Arc<QueueArguments>,
    last_queue_number: u64,
    /// Records of the bindings between durable exchanges and queues.
    durable_bindings: BTreeMap<(ExchangeId, Binding), Lsn>,
    /// Increases with every change that a remembered route or permission depends on.
    version: u64,
    /// Memory of queues (without messages), exchanges and bindings.
    memory: Meter,
    /// Bound of `memory` while the memory alarm is on.
    memory_bytes_max: Option<u64>,
}

impl Topology {
    /// Creates an empty topology; `seed` makes its hashes unpredictable.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            exchanges: SlotMap::with_key(),
            exchange_names: Lookup::new(seed),
            queues: SlotMap::with_key(),
            queue_names: Lookup::new(seed),
            last_arguments: Arc::default(),
            last_queue_number: 0,
            durable_bindings: BTreeMap::new(),
            version: 1,
            memory: Meter::default(),
            memory_bytes_max: None,
        }
    }

    #[inline]
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The version that remembered routes are compared with.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Makes remembered routes stale.
    #[inline]
    pub(crate) fn changed(&mut self) {
        self.version += 1;
    }

    // ---- queues ----

    /// The queue with this id; none if it was deleted.
    #[inline]
    pub(crate) fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id).map(Box::as_ref)
    }

    /// True for a queue that is there and has one active consumer at a time.
    pub(crate) fn has_single_active_consumer(&self, id: QueueId) -> bool {
        self.queue(id).is_some_and(|queue| queue.consumers.is_single_active())
    }

    /// Mutable access to the queue with this id; none if it was deleted.
    #[inline]
    pub(crate) fn queue_mut(&mut self, id: QueueId) -> Option<&mut Queue> {
        self.queues.get_mut(id).map(Box::as_mut)
    }

    /// A queue that was found in this call.
    ///
    /// # Panics
    /// If it was deleted.
    #[inline]
    pub(crate) fn known_queue(&self, id: QueueId) -> &Queue {
        self.queues.get(id).expect("the queue was found in this call")
    }

    /// Mutable access to a queue that was found in this call.
    ///
    /// # Panics
    /// If it was deleted.
    #[inline]
    pub(crate) fn known_queue_mut(&mut self, id: QueueId) -> &mut Queue {
        self.queues.get_mut(id).expect("the queue was found in this call")
    }

    #[inline]
    pub(crate) fn queue_id(&self, name: &str) -> Option<QueueId> {
        self.queue_names.get(name).copied()
    }

    #[inline]
    pub(crate) fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// All queues, in a stable order.
    #[inline]
    pub(crate) fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter().map(|(id, queue)| (id, &**queue))
    }

    /// Mutable access to all queues, in a stable order.
    #[inline]
    pub(crate) fn queues_mut(&mut self) -> impl Iterator<Item = (QueueId, &mut Queue)> {
        self.queues.iter_mut().map(|(id, queue)| (id, &mut **queue))
    }

    /// Ids of all queues, in a stable order.
    #[inline]
    pub(crate) fn queue_ids(&self) -> Vec<QueueId> {
        self.queues.keys().collect()
    }

    /// Adds a queue under its name.
    #[inline]
    pub(crate) fn insert_queue(&mut self, queue: Queue) -> QueueId {
        let name = Arc::clone(&queue.name);
        let id = self.insert_unnamed_queue(queue);
        self.queue_names.insert(name, id);
        id
    }

    /// Adds a queue whose name is not known yet; either [`Topology::name_queue`] follows, or the queue is
    /// removed.
    #[inline]
    pub(crate) fn insert_unnamed_queue(&mut self, mut queue: Queue) -> QueueId {
        queue.count_memory(&self.memory);
        self.last_queue_number = self.last_queue_number.max(queue.number.0);
        self.queues.insert(Box::new(queue))
    }

    /// Gives a queue its name.
    ///
    /// # Panics
    /// If there is no queue with this id.
    #[inline]
    pub(crate) fn name_queue(&mut self, id: QueueId, name: Name) -> &mut Queue {
        self.queue_names.insert(Arc::clone(&name), id);
        let queue = self.known_queue_mut(id);
        queue.name = name;
        queue
    }

    /// Removes a queue, and its name if that refers to the queue.
    pub(crate) fn remove_queue(&mut self, id: QueueId) -> Option<Box<Queue>> {
        let queue = self.queues.remove(id)?;
        if self.queue_id(&queue.name) == Some(id) {
            self.queue_names.remove(&*queue.name);
        }
        Some(queue)
    }

    /// The number of the next declared queue or delayed exchange, which identifies its messages in the log.
    #[inline]
    pub(crate) fn next_queue_number(&self) -> QueueNumber {
        QueueNumber(self.last_queue_number + 1)
    }

    /// The arguments in one allocation for all queues that are declared with the same ones one after another.
    pub(crate) fn shared_arguments(&mut self, arguments: QueueArguments) -> Arc<QueueArguments> {
        // The parsed fields follow from the table.
        if self.last_arguments.table != arguments.table {
            self.last_arguments = Arc::new(arguments);
        }
        Arc::clone(&self.last_arguments)
    }

    // ---- exchanges ----

    /// The exchange with this id; none if it was deleted.
    #[inline]
    pub(crate) fn exchange(&self, id: ExchangeId) -> Option<&Exchange> {
        self.exchanges.get(id).map(Box::as_ref)
    }

    /// Mutable access to the exchange with this id; none if it was deleted.
    #[inline]
    pub(crate) fn exchange_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.exchanges.get_mut(id).map(Box::as_mut)
    }

    /// An exchange that was found in this call.
    ///
    /// # Panics
    /// If it was deleted.
    #[inline]
    pub(crate) fn known_exchange(&self, id: ExchangeId) -> &Exchange {
        self.exchanges.get(id).expect("the exchange was found in this call")
    }

    /// Mutable access to an exchange that was found in this call.
    ///
    /// # Panics
    /// If it was deleted.
    #[inline]
    pub(crate) fn known_exchange_mut(&mut self, id: ExchangeId) -> &mut Exchange {
        self.exchanges.get_mut(id).expect("the exchange was found in this call")
    }

    #[inline]
    pub(crate) fn exchange_id(&self, name: &str) -> Option<ExchangeId> {
        self.exchange_names.get(name).copied()
    }

    /// All exchanges, in a stable order.
    #[inline]
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (ExchangeId, &Exchange)> {
        self.exchanges.iter().map(|(id, exchange)| (id, &**exchange))
    }

    /// Mutable access to all exchanges, in a stable order.
    #[inline]
    pub(crate) fn exchanges_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.exchanges.values_mut().map(Box::as_mut)
    }

    /// Ids of all exchanges, in a stable order.
    #[inline]
    pub(crate) fn exchange_ids(&self) -> Vec<ExchangeId> {
        self.exchanges.keys().collect()
    }

    /// Adds an exchange under its name.
    #[inline]
    pub(crate) fn insert_exchange(&mut self, exchange: Exchange) -> ExchangeId {
        let name = Arc::clone(&exchange.name);
        let store = exchange.held.as_ref().map_or(0, |held| held.number.0);
        self.last_queue_number = self.last_queue_number.max(store);
        let id = self.exchanges.insert(Box::new(exchange));
        self.exchange_names.insert(name, id);
        id
    }

    /// Removes an exchange, and its name if that refers to the exchange.
    pub(crate) fn remove_exchange(&mut self, id: ExchangeId) -> Option<Box<Exchange>> {
        let exchange = self.exchanges.remove(id)?;
        if self.exchange_id(&exchange.name) == Some(id) {
            self.exchange_names.remove(&*exchange.name);
        }
        Some(exchange)
    }

    // ---- bindings ----

    /// Adds a binding at both ends, which must exist; false if it exists already.
    pub(crate) fn add_binding(&mut self, source: ExchangeId, binding: &Binding) -> bool {
        if !self.known_exchange_mut(source).bind(binding.clone()) {
            return false;
        }
        let known = (source, binding.clone());
        let is_new = match binding.destination {
            Destination::Queue(queue) => {
                self.known_queue_mut(queue).registration.bindings.insert(known)
            }
            Destination::Exchange(exchange) => {
                self.known_exchange_mut(exchange).bound_from.insert(known)
            }
        };
        assert!(is_new, "a binding is known at both ends or at neither");
        true
    }

    /// Removes a binding at both ends, as far as they exist; false if the source does not have it.
    pub(crate) fn remove_binding(&mut self, source: ExchangeId, binding: &Binding) -> bool {
        let Some(exchange) = self.exchanges.get_mut(source) else {
            return false;
        };
        let was_there = exchange.unbind(binding);
        self.forget_binding(source, binding);
        was_there
    }

    /// Removes a binding at its destination, if that exists.
    pub(crate) fn forget_binding(&mut self, source: ExchangeId, binding: &Binding) {
        let known = (source, binding.clone());
        match binding.destination {
            Destination::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.registration.bindings.remove(&known);
                }
            }
            Destination::Exchange(exchange) => {
                if let Some(exchange) = self.exchanges.get_mut(exchange) {
                    exchange.bound_from.remove(&known);
                }
            }
        }
    }

    /// Remembers the record of a binding that survives a restart.
    #[inline]
    pub(crate) fn binding_logged(&mut self, source: ExchangeId, binding: Binding, lsn: Lsn) {
        self.durable_bindings.insert((source, binding), lsn);
    }

    /// Takes the record of a binding, if it has one.
    #[inline]
    pub(crate) fn take_binding_lsn(
        &mut self,
        source: ExchangeId,
        binding: &Binding,
    ) -> Option<Lsn> {
        self.durable_bindings.remove(&(source, binding.clone()))
    }

    /// The bindings that survive a restart, with the exchanges they lead from; for checks.
    pub(crate) fn durable_bindings(&self) -> impl Iterator<Item = &(ExchangeId, Binding)> {
        self.durable_bindings.keys()
    }

    #[inline]
    pub(crate) fn durable_binding_count(&self) -> usize {
        self.durable_bindings.len()
    }

    // ---- memory ----

    /// The meter of queues (without messages), exchanges and bindings.
    #[inline]
    pub(crate) fn memory(&self) -> &Meter {
        &self.memory
    }

    #[inline]
    pub(crate) fn set_memory_bytes_max(&mut self, bytes_max: Option<u64>) {
        self.memory_bytes_max = bytes_max;
    }

    /// The limit that a new object of `bytes` bytes would exceed, if any.
    #[inline]
    pub(crate) fn exceeded_by(&self, bytes: u64) -> Option<u64> {
        self.memory_bytes_max.filter(|max| self.memory.bytes() + bytes > *max)
    }
}
