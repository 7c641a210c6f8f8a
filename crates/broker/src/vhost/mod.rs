//! A virtual host: the sequential core that everything of it goes through.
//!
//! `apply` takes one command of a client at a given moment and leaves effects; `tick` makes happen
//! what is due by then; `durable` says how far the log is. There is no clock, no socket, no file, no
//! lock and no randomness in here but what was handed in. Between calls these hold:
//!
//! - no message waits in a queue for which a consumer has room, unless what is in front of it has
//!   expired and is being removed in slices;
//! - no message that died is left over: it became dead letters, was kept, or was counted as dropped,
//!   unless more died at once than one call may move and the timer goes on with it, or an alarm is on;
//! - `next_wake` is not later than the next thing that happens by itself.
//!
//! The commands stand in files by AMQP's classes, the life of a message in `publish`, `deliver`,
//! `settle` and `death`.

mod commands;
mod lifecycle;
mod log;
mod views;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use slotmap::SlotMap;

use crate::access::{Access, INTERNAL_USER, Permission};
use crate::channel::{Channel, LastRoute};
use crate::command::{Command, Request};
use crate::dead_letter::LastDeath;
use crate::effect::{Effect, Event, Outgoing};
use crate::exchange::{Binding, Exchange};
use crate::ids::{ChannelNumber, ConnectionId, ExchangeId, Lsn, PageId, QueueId, QueueNumber};
use crate::limits::{EFFECTS_KEPT_MAX, GONE_DEADLINES_SLICE};
use crate::lookup::Lookup;
use crate::message::Name;
use crate::page::Paging;
use crate::policy::{Policies, PolicyKind};
use crate::queue::meter::Meter;
use crate::queue::{Queue, QueueArguments, QueueDefaults, QueueType};
use crate::refusal::{Refusal, Resource, ResourceKind};
use crate::route::At;
use crate::statistics::VhostCounters;
use crate::time::{Now, Time};
use crate::timers::Timers;
pub use log::replay::{Recovered, Replay, ReplayProblem};
pub use log::undeclared::RecoveredQueue;
pub use views::dead_letter_map::DeadLetterMapTaking;
pub use views::dry_run::{DryRun, ExchangeDryRun, Fate, PolicyChange, QueueDryRun, SettingChange};

use lifecycle::alarm::Alarm;
use lifecycle::death::Dying;
use lifecycle::firehose::Firehose;
use lifecycle::policies::PolicyChanged;
use lifecycle::unacked::UnackedMemory;

/// What a node grants to its vhosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VhostOptions {
    /// For queues that say nothing themselves.
    pub queue_defaults: QueueDefaults,
    /// `deprecated_features.permit.global_qos`: whether `basic.qos` with `global` counts for the whole
    /// channel; otherwise it counts per consumer, as in RabbitMQ 4.3.
    pub permits_global_qos: bool,
    /// `consumer_max_per_channel`; none is unlimited.
    pub consumers_per_channel_max: Option<u32>,
    /// How much of the queues stays in memory.
    pub paging: Paging,
    /// `default_queue_type`: the type of queues that could have any and say none.
    pub default_queue_type: QueueType,
    /// `max-queues`; none is unlimited.
    pub queues_max: Option<u64>,
    /// Memory that unacknowledged deliveries may take before channels that have much of it wait, in bytes.
    pub unacked_bytes_max: u64,
}

impl Default for VhostOptions {
    fn default() -> Self {
        Self {
            queue_defaults: QueueDefaults::default(),
            permits_global_qos: true,
            consumers_per_channel_max: None,
            paging: Paging::default(),
            default_queue_type: QueueType::default(),
            queues_max: None,
            unacked_bytes_max: u64::MAX,
        }
    }
}

/// A client connection in the vhost.
#[derive(Debug)]
pub struct Connection {
    /// Who is on it.
    pub access: Arc<Access>,
    /// What people call it; empty until it is named.
    pub name: Name,
    /// It wants `basic.cancel` when a consumer is gone (capability `consumer_cancel_notify`).
    pub cancel_notify: bool,
    /// Boxed: a map has room for eleven even if there is one.
    pub(crate) channels: BTreeMap<ChannelNumber, Box<Channel>>,
    pub(crate) exclusive_queues: BTreeSet<QueueId>,
    pub(crate) backlog: Backlog,
    /// The newest record of what it did.
    pub(crate) logged: Lsn,
    /// Closed by the broker; what it still says is ignored.
    pub(crate) closing: bool,
}

impl Connection {
    /// Its channels by number.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels.iter().map(|(number, channel)| (*number, &**channel))
    }

    /// Those of them that the broker has not closed.
    pub fn open_channels(&self) -> impl Iterator<Item = (ChannelNumber, &Channel)> {
        self.channels().filter(|(_, channel)| channel.is_open())
    }
}

/// What waits for a connection's socket, as far as the core knows.
#[derive(Default, Debug)]
pub(crate) struct Backlog {
    pub(crate) bytes: u64,
    /// Something waits for that to shrink.
    pub(crate) stalled: bool,
    /// The channel whose consumers were asked first when it last did.
    pub(crate) served_first: ChannelNumber,
    /// The shell was asked how much it is.
    pub(crate) asked: bool,
}

/// A virtual host.
#[derive(Debug)]
pub struct Vhost {
    name: Name,
    options: VhostOptions,
    now: Now,
    seed: u64,
    random: ChaCha12Rng,
    exchanges: SlotMap<ExchangeId, Exchange>,
    exchange_names: Lookup<Name, ExchangeId>,
    default_exchange: ExchangeId,
    /// Each in a place of its own: what a slot map has no use for yet, and what it leaves behind when it grows,
    /// is large where slots are.
    queues: SlotMap<QueueId, Box<Queue>>,
    /// Those of the queue that was declared last.
    last_arguments: Arc<QueueArguments>,
    queue_names: Lookup<Name, QueueId>,
    connections: SlotMap<ConnectionId, Connection>,
    /// Who consumes direct replies under which address.
    reply_addresses: Lookup<Name, At>,
    policies: Policies,
    /// Changes of policies that are not in force for everything yet, the earliest first.
    policy_changes: VecDeque<PolicyChanged>,
    /// The wake-up that the timers hold for these.
    policies_armed: Option<Time>,
    /// The records of bindings between things that outlive a restart.
    durable_bindings: BTreeMap<(ExchangeId, Binding), Lsn>,
    /// The records of policies.
    policy_lsns: BTreeMap<(PolicyKind, Name), Lsn>,
    timers: Timers,
    /// Changes with everything that a route or a permission depends on.
    topology: u64,
    /// Messages that died and have not been moved yet; none between calls but after a great dying.
    dying: VecDeque<Dying>,
    alarm: Alarm,
    /// Bytes of dead letters made since the vhost was last given back.
    death_bytes: u64,
    /// Queues in which messages expired in front of others, since consumers were last asked.
    to_dispatch: Vec<QueueId>,
    /// The wake-up that the timers hold for dead messages that are left.
    deaths_armed: Option<Time>,
    /// The last death, whose dead letter the next one may be like.
    last_death: Option<LastDeath>,
    /// Where the last dead letter went.
    last_dead_letter_route: Option<LastRoute>,
    /// Circles of dead letters that were told once and are not told again.
    told_cycles: BTreeSet<Vec<Name>>,
    /// Queues with dead letters that wait for somewhere to go.
    pending_sources: BTreeSet<QueueId>,
    /// Something changed that may give them somewhere to go.
    retry_pending: bool,
    /// Queues of which messages were handed out in this batch that had not been before.
    delivered: Vec<QueueId>,
    /// Channels that have confirms to tell.
    to_flush: Vec<At>,
    /// Channels that wait for the log, by position.
    awaiting_durable: BTreeSet<(Lsn, At)>,
    last_lsn: Lsn,
    /// The newest record before the command that is being performed.
    command_began: Lsn,
    durable_lsn: Lsn,
    last_queue_number: u64,
    last_page: PageId,
    firehose: Firehose,
    /// Memory of what waits in the queues.
    resident: Meter,
    /// What queues, exchanges and bindings take.
    topology_memory: Meter,
    /// How much that may be, while memory is short.
    topology_bytes_max: Option<u64>,
    /// What unacknowledged deliveries take.
    unacked_memory: UnackedMemory,
    /// Channels whose deliveries wait until that is less.
    channels_without_memory: BTreeSet<At>,
    /// Those of them that were found in this call.
    found_without_memory: Vec<At>,
    effects: Vec<Effect>,
    counters: VhostCounters,
}

impl Vhost {
    /// A vhost with RabbitMQ's predeclared exchanges. `seed` makes the names it gives unguessable and
    /// its hashes unpredictable; the same seed gives the same vhost.
    pub fn new(name: &str, seed: [u8; 32], options: VhostOptions) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let hash_seed = random.next_u64();
        let mut vhost = Self {
            name: name.into(),
            options,
            now: Now::default(),
            seed: hash_seed,
            random,
            exchanges: SlotMap::with_key(),
            exchange_names: Lookup::new(hash_seed),
            default_exchange: ExchangeId::default(),
            queues: SlotMap::with_key(),
            last_arguments: Arc::default(),
            queue_names: Lookup::new(hash_seed),
            connections: SlotMap::with_key(),
            reply_addresses: Lookup::new(hash_seed),
            policies: Policies::default(),
            policy_changes: VecDeque::new(),
            policies_armed: None,
            durable_bindings: BTreeMap::new(),
            policy_lsns: BTreeMap::new(),
            timers: Timers::default(),
            topology: 1,
            dying: VecDeque::new(),
            alarm: Alarm::default(),
            death_bytes: 0,
            to_dispatch: Vec::new(),
            deaths_armed: None,
            last_death: None,
            last_dead_letter_route: None,
            told_cycles: BTreeSet::new(),
            pending_sources: BTreeSet::new(),
            retry_pending: false,
            delivered: Vec::new(),
            to_flush: Vec::new(),
            awaiting_durable: BTreeSet::new(),
            last_lsn: Lsn(0),
            command_began: Lsn(0),
            durable_lsn: Lsn(0),
            last_queue_number: 0,
            last_page: PageId(0),
            firehose: Firehose::default(),
            resident: Meter::default(),
            topology_memory: Meter::default(),
            topology_bytes_max: None,
            unacked_memory: UnackedMemory::new(options.unacked_bytes_max),
            channels_without_memory: BTreeSet::new(),
            found_without_memory: Vec::new(),
            effects: Vec::new(),
            counters: VhostCounters::default(),
        };
        vhost.predeclare_exchanges();
        vhost
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Applies one command of a client.
    ///
    /// Commands of a connection that is gone or closing are ignored, as are those of a channel that
    /// the broker has closed until the client agrees.
    pub fn apply(&mut self, now: Now, connection: ConnectionId, request: Request<'_>) {
        self.advance(now);
        let at = At { connection, channel: request.channel };
        self.command_began = self.last_lsn;
        let accepted = self.accepts(at, &request.command);
        let result = match accepted {
            Ok(true) => self.perform(at, request.command),
            Ok(false) => Ok(()),
            Err(refusal) => Err(refusal),
        };
        match result {
            Ok(()) => {}
            Err(refusal) if refusal.code.is_connection_error() => {
                let outgoing = Outgoing::ConnectionClose { refusal, method: request.method };
                self.fail_connection(connection, outgoing);
            }
            Err(refusal) => {
                self.fail_channel(at, refusal, request.method);
            }
        }
        self.finish_deaths();
        if self.last_lsn > self.command_began
            && let Some(connection) = self.connections.get_mut(connection)
        {
            connection.logged = self.last_lsn;
        }
    }

    /// Performs a command on behalf of the node itself: it may do everything and is answered by the
    /// result alone. What needs a channel or a connection (consuming, exclusive queues, transactions)
    /// does nothing.
    ///
    /// # Errors
    /// What a client would be refused with.
    pub fn execute(&mut self, now: Now, command: Command<'_>) -> Result<(), Refusal> {
        self.advance(now);
        let nobody = At { connection: ConnectionId::default(), channel: ChannelNumber(0) };
        let result = self.perform(nobody, command);
        self.finish_deaths();
        result
    }

    fn perform(&mut self, at: At, command: Command<'_>) -> Result<(), Refusal> {
        match command {
            Command::Refused(refusal) => Err(refusal),
            Command::OpenChannel => self.open_channel(at),
            Command::CloseChannel => self.close_channel(at),
            Command::ChannelCloseOk => self.channel_close_ok(at),
            Command::Flow => {
                self.send(at, Outgoing::ChannelFlowOk);
                Ok(())
            }
            Command::AccessRequest => {
                self.send(at, Outgoing::AccessRequestOk);
                Ok(())
            }
            Command::DeclareExchange(declare) => self.declare_exchange(at, declare),
            Command::DeleteExchange { exchange, if_unused, nowait } => {
                self.delete_exchange(at, exchange, if_unused, nowait)
            }
            Command::BindExchange(bind) => self.bind_exchange(at, bind),
            Command::UnbindExchange(bind) => self.unbind_exchange(at, bind),
            Command::DeclareQueue(declare) => self.declare_queue(at, declare),
            Command::BindQueue(bind) => self.bind_queue(at, bind),
            Command::UnbindQueue(bind) => self.unbind_queue(at, bind),
            Command::PurgeQueue { queue, nowait } => self.purge_queue(at, queue, nowait),
            Command::DeleteQueue(delete) => self.delete_queue(at, delete),
            Command::Qos { prefetch_count, global } => self.qos(at, prefetch_count, global),
            Command::Consume(consume) => self.consume(at, consume),
            Command::Cancel { consumer_tag, nowait } => self.cancel(at, consumer_tag, nowait),
            Command::Publish(publish) => self.publish(at, publish),
            Command::Get { queue, no_ack } => self.get(at, queue, no_ack),
            Command::Settle { tag, multiple, outcome } => self.settle(at, tag, multiple, outcome),
            Command::Recover { answer } => self.recover(at, answer),
            Command::ConfirmSelect { nowait } => self.confirm_select(at, nowait),
            Command::TxSelect => self.tx_select(at),
            Command::TxCommit => self.tx_commit(at),
            Command::TxRollback => self.tx_rollback(at),
        }
    }

    /// Time does not run backwards, even if two readings of the clock arrive in the wrong order.
    fn advance(&mut self, now: Now) {
        self.now.time = self.now.time.max(now.time);
        self.now.wall_ms = now.wall_ms;
        if self.effects.is_empty() && self.effects.capacity() > EFFECTS_KEPT_MAX {
            self.effects = Vec::new();
        }
    }

    /// The effects so far, in order; the caller takes them all.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// When something happens by itself the next time; call `tick` then.
    pub fn next_wake(&self) -> Option<Time> {
        self.timers.next()
    }

    // ---- looking in ----

    /// What its node grants it.
    pub fn options(&self) -> VhostOptions {
        self.options
    }

    /// Queues that are declared from now on without a type have this one, if it fits them.
    pub fn set_default_queue_type(&mut self, queue_type: QueueType) {
        self.options.default_queue_type = queue_type;
    }

    /// From now on there may be so many queues; those that are there stay.
    pub fn set_queues_max(&mut self, queues_max: Option<u64>) {
        self.options.queues_max = queues_max;
    }

    /// Its queues, in a stable order.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter().map(|(id, queue)| (id, &**queue))
    }

    /// The queue of that name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queue_of(*self.queue_names.get(name)?)
    }

    /// Makes sure that the first deadline of a queue is of a message that waits there, unless thousands
    /// have gone before their deadlines at once; call it before [`Queue::first_deadline`].
    pub fn forget_gone_deadlines(&mut self, queue: QueueId) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.forget_gone_deadlines(GONE_DEADLINES_SLICE);
        }
    }

    /// The queue of that id.
    pub fn queue_of(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id).map(Box::as_ref)
    }

    /// Its exchanges, in a stable order.
    pub fn exchanges(&self) -> impl Iterator<Item = (ExchangeId, &Exchange)> {
        self.exchanges.iter()
    }

    /// The exchange of that name.
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.get(*self.exchange_names.get(name)?)
    }

    /// The id of the exchange of that name.
    pub fn exchange_id(&self, name: &str) -> Option<ExchangeId> {
        self.exchange_names.get(name).copied()
    }

    /// The exchange of that id.
    pub fn exchange_of(&self, id: ExchangeId) -> Option<&Exchange> {
        self.exchanges.get(id)
    }

    /// Its connections, in a stable order.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter()
    }

    /// The connection of that id.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id)
    }

    /// Its policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Memory that the messages that wait in its queues take, about, in bytes.
    pub fn waiting_bytes(&self) -> u64 {
        self.resident.bytes()
    }

    /// What it has counted.
    pub fn counters(&self) -> &VhostCounters {
        &self.counters
    }

    // ---- small things every command needs ----

    fn queue_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource { kind: ResourceKind::Queue, name, vhost: &self.name }
    }

    fn exchange_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource { kind: ResourceKind::Exchange, name, vhost: &self.name }
    }

    fn require(
        &self,
        at: At,
        permission: Permission,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        match self.connections.get(at.connection) {
            Some(connection) => connection.access.require(permission, resource),
            None => Ok(()),
        }
    }

    /// Whose command it is.
    fn user(&self, at: At) -> Name {
        match self.connections.get(at.connection) {
            Some(connection) => Arc::clone(&connection.access.user),
            None => INTERNAL_USER.into(),
        }
    }

    fn channel(&mut self, at: At) -> Option<&mut Channel> {
        let channels = &mut self.connections.get_mut(at.connection)?.channels;
        channels.get_mut(&at.channel).map(|channel| &mut **channel)
    }

    fn send(&mut self, at: At, outgoing: Outgoing) {
        self.effects.push(Effect::Send {
            connection: at.connection,
            channel: at.channel,
            outgoing,
        });
    }

    /// Sends the answer of a command unless it asked for none. It comes when everything that the
    /// connection has changed so far is on disk, so that a client that has it may rely on that.
    fn answer(&mut self, at: At, nowait: bool, outgoing: Outgoing) {
        if !nowait {
            self.send_when_durable(self.needed_for_answer(at), at, outgoing);
        }
    }

    /// How far the log must be on disk before the command at hand is answered.
    fn needed_for_answer(&self, at: At) -> Lsn {
        if self.last_lsn > self.command_began {
            return self.last_lsn;
        }
        let before = self.connections.get(at.connection).map(|connection| connection.logged);
        before.unwrap_or_default()
    }

    /// Sends something once the log is on disk up to `needed`. What is sent for the same position comes
    /// in the order of these calls.
    fn send_when_durable(&mut self, needed: Lsn, at: At, outgoing: Outgoing) {
        if needed <= self.durable_lsn {
            self.send(at, outgoing);
            return;
        }
        let At { connection, channel } = at;
        self.effects.push(Effect::SendDurable { lsn: needed, connection, channel, outgoing });
    }

    fn event(&mut self, event: Event) {
        self.effects.push(Effect::Event(event));
    }

    /// Remembered routes and the like are no longer true; dead letters that had nowhere to go may
    /// have somewhere now.
    fn topology_changed(&mut self) {
        self.topology += 1;
        self.retry_pending = true;
    }

    fn next_queue_number(&mut self) -> QueueNumber {
        self.last_queue_number += 1;
        QueueNumber(self.last_queue_number)
    }
}
