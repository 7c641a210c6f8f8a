//! A virtual host: the sequential core that all its clients share.
//!
//! `apply` performs one command of a client at a given time and leaves effects; `tick` does what is due by then;
//! `durable` reports how much of the log is durable. There is no clock, socket, file, lock or source of randomness in
//! here: time and seed are arguments. Between calls these hold:
//!
//! - no message waits in a queue for which a consumer has room, unless expired messages in front of it are being
//!   removed in slices;
//! - every message that died was dead-lettered, kept, or counted as dropped, unless more died at once than one
//!   call may move and the timer continues with them, or an alarm is on;
//! - `next_wake` is not later than the next deadline.
//!
//! `state` has the nouns that a vhost is made of, `commands` the commands by AMQP's classes, `lifecycle` the life of
//! a message, `log` the boundary to the log, and `views` read access. Ids are looked up as `state::topology`
//! explains: an id of this call is known to exist, any other may be stale.

mod commands;
mod lifecycle;
mod log;
mod state;
mod views;

use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::access::{INTERNAL_USER, Permission};
use crate::channel_key::ChannelKey;
use crate::command::{Command, Request};
use crate::effect::{Effect, Outgoing};
use crate::exchange::Exchange;
use crate::ids::{ChannelNumber, ConnectionId, ExchangeId, Lsn, QueueId};
use crate::message::Name;
use crate::page::Paging;
use crate::policy::Policies;
use crate::queue::{Queue, QueueDefaults, QueueType};
use crate::refusal::{Refusal, Resource, ResourceKind};
use crate::schedule::ScheduledPlace;
use crate::statistics::VhostCounters;
use crate::time::{Now, Time};
use crate::timers::Timers;
pub use log::divergence::Divergence;
pub use log::replay::{Recovered, Replay, ReplayProblem};
pub use log::undeclared::RecoveredQueue;
use state::alarm::Alarm;
pub use state::connections::Connection;
use state::connections::Connections;
use state::dead_lettering::DeadLettering;
use state::death_ledger::DeathLedger;
use state::durable_sums::DurableSums;
use state::effects::Effects;
use state::firehose::Firehose;
pub use state::given_reasons::{GIVEN_REASON_HEADER, GivenReasons, OTHER_REASONS};
use state::hand_over::HandOverState;
use state::log_state::LogState;
use state::paging::VhostPaging;
use state::policy_book::PolicyBook;
pub use state::recorded_death::{
    CircumstancesIds, DeadLetterHistoryLimits, DeathCircumstances, DeathOutcome, RecordedDeath,
    RecordedDeaths, RestoredDeath, SettledBy,
};
use state::redrive_book::RedriveBook;
use state::topology::Topology;
use state::unacked_memory::UnackedMemory;
pub use views::dead_letter_map::DeadLetterMapBuilder;
pub use views::dry_run::{DryRun, ExchangeDryRun, Fate, PolicyChange, QueueDryRun, SettingChange};

/// Limits and defaults that a node gives its vhosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VhostOptions {
    /// Defaults for queues that do not set these options themselves.
    pub queue_defaults: QueueDefaults,
    /// `deprecated_features.permit.global_qos`: if true, `basic.qos` with `global` applies to the whole
    /// channel; otherwise to each consumer, as in RabbitMQ 4.3.
    pub permits_global_qos: bool,
    /// `consumer_max_per_channel`; none is unlimited.
    pub consumers_per_channel_max: Option<u32>,
    /// Limits of the memory that long queues take.
    pub paging: Paging,
    /// `default_queue_type`: the type of queues that may have any type and do not set one.
    pub default_queue_type: QueueType,
    /// `max-queues`; none is unlimited.
    pub queues_max: Option<u64>,
    /// Memory of unacknowledged deliveries above which channels that hold much of it wait, in bytes.
    pub unacked_bytes_max: u64,
    /// Limits of the history of dead letters.
    pub dead_letter_history: DeadLetterHistoryLimits,
    /// True in a replicated vhost: deliveries of quorum queues, and redeliveries, wait until the log is durable
    /// ([`Effect::Hold`]), and the vhost keeps the sums that its digests tell
    /// ([`Vhost::log_digest`]).
    pub delivers_after_commit: bool,
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
            dead_letter_history: DeadLetterHistoryLimits::default(),
            delivers_after_commit: false,
        }
    }
}

/// A virtual host.
#[derive(Debug)]
pub struct Vhost {
    name: Name,
    options: VhostOptions,
    now: Now,
    random: ChaCha12Rng,
    topology: Topology,
    connections: Connections,
    policies: PolicyBook,
    redrives: RedriveBook,
    timers: Timers,
    log: LogState,
    dead_lettering: DeadLettering,
    death_ledger: DeathLedger,
    alarm: Alarm,
    paging: VhostPaging,
    unacked_memory: UnackedMemory,
    firehose: Firehose,
    /// True if deliveries are copied to the firehose, or those of quorum queues are held.
    watches_deliveries: bool,
    /// Sums over the durable state, in a replicated vhost.
    sums: Option<Box<DurableSums>>,
    effects: Effects,
    counters: VhostCounters,
    given_reasons: GivenReasons,
    /// The places in which a publish waits, if the caller of the command asked for them.
    scheduled_places: Option<Vec<ScheduledPlace>>,
    hand_over: HandOverState,
    /// Work of all commands so far, as [`Vhost::work_done`] counts it.
    work_done: u64,
}

impl Vhost {
    /// Creates a vhost with RabbitMQ's predeclared exchanges. `seed` makes generated names unguessable and
    /// hashes unpredictable; the same seed gives the same vhost.
    pub fn new(name: &str, seed: [u8; 32], options: VhostOptions) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let hash_seed = random.next_u64();
        let mut vhost = Self {
            name: name.into(),
            options,
            now: Now::default(),
            random,
            topology: Topology::new(hash_seed),
            connections: Connections::new(hash_seed),
            policies: PolicyBook::default(),
            redrives: RedriveBook::default(),
            timers: Timers::default(),
            log: LogState::default(),
            dead_lettering: DeadLettering::default(),
            death_ledger: DeathLedger::new(options.dead_letter_history),
            alarm: Alarm::default(),
            paging: VhostPaging::new(options.paging),
            unacked_memory: UnackedMemory::new(options.unacked_bytes_max),
            firehose: Firehose::default(),
            watches_deliveries: options.delivers_after_commit,
            sums: options.delivers_after_commit.then(|| Box::new(DurableSums::new(hash_seed))),
            effects: Effects::default(),
            counters: VhostCounters::default(),
            given_reasons: GivenReasons::default(),
            scheduled_places: None,
            hand_over: HandOverState::default(),
            work_done: 0,
        };
        vhost.predeclare_exchanges();
        vhost
    }

    /// The name of the vhost.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Applies one command of a client.
    ///
    /// Commands on a connection that is gone or closing are ignored, as are those on a channel that the
    /// broker has closed until the client confirms with `channel.close-ok`.
    pub fn apply(&mut self, now: Now, connection: ConnectionId, request: Request<'_>) {
        self.advance(now);
        let at = ChannelKey { connection, channel: request.channel };
        self.log.begin_command();
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
        if let Some(written) = self.log.written_by_command()
            && let Some(connection) = self.connections.get_mut(connection)
        {
            connection.logged = written;
        }
    }

    /// Work of all commands so far: one for each message that entered a queue, was settled or evicted, and
    /// [`SCHEDULE_CHANGE_WORK`](crate::limits::SCHEDULE_CHANGE_WORK) for each scheduled message that was changed. A caller that applies many commands lets others
    /// have the vhost when this has grown by much.
    pub fn work_done(&self) -> u64 {
        self.work_done
    }

    /// Performs a command on behalf of the node itself, with all permissions and without an answer. Commands
    /// that need a channel or a connection (consumers, exclusive queues, transactions) do nothing.
    ///
    /// # Errors
    /// The refusal that a client would get.
    pub fn execute(&mut self, now: Now, command: Command<'_>) -> Result<(), Refusal> {
        self.advance(now);
        let nobody = ChannelKey { connection: ConnectionId::default(), channel: ChannelNumber(0) };
        let result = self.perform(nobody, command);
        self.finish_deaths();
        result
    }

    fn perform(&mut self, at: ChannelKey, command: Command<'_>) -> Result<(), Refusal> {
        match command {
            Command::Refused(refusal) => Err(refusal),
            Command::OpenChannel => self.open_channel(at),
            Command::CloseChannel => self.close_channel(at),
            Command::ChannelCloseOk => self.channel_close_ok(at),
            Command::Flow => {
                self.effects.send(at, Outgoing::ChannelFlowOk);
                Ok(())
            }
            Command::AccessRequest => {
                self.effects.send(at, Outgoing::AccessRequestOk);
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

    /// Time never runs backwards, even if two readings of the clock arrive in the wrong order.
    fn advance(&mut self, now: Now) {
        let time = self.now.time.max(now.time);
        let wall_us = now.wall_us.saturating_add(time.micros_since(now.time));
        self.now = Now { time, wall_us };
        self.effects.shrink();
    }

    /// The effects so far, in order; the caller takes them all.
    pub fn drain_effects(&mut self) -> std::vec::Drain<'_, Effect> {
        if self.sums.is_some() {
            self.sum_records();
            self.effects.batch_taken();
        }
        self.effects.drain()
    }

    /// The time of the next deadline; call `tick` then.
    pub fn next_wake(&self) -> Option<Time> {
        self.timers.next()
    }

    // ---- read access ----

    /// The limits and defaults of the vhost.
    pub fn options(&self) -> VhostOptions {
        self.options
    }

    /// Sets the type of queues that are declared from now on without one, if the type fits them.
    pub fn set_default_queue_type(&mut self, queue_type: QueueType) {
        self.options.default_queue_type = queue_type;
    }

    /// Sets the limit for new queues; existing queues stay.
    pub fn set_queues_max(&mut self, queues_max: Option<u64>) {
        self.options.queues_max = queues_max;
    }

    /// All queues, in a stable order.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.topology.queues()
    }

    /// The queue with this name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.topology.queue(self.topology.queue_id(name)?)
    }

    /// The id of the queue with this name.
    pub fn queue_id(&self, name: &str) -> Option<QueueId> {
        self.topology.queue_id(name)
    }

    /// The queue with this id; none if it was deleted.
    pub fn queue_of(&self, id: QueueId) -> Option<&Queue> {
        self.topology.queue(id)
    }

    /// All exchanges, in a stable order.
    pub fn exchanges(&self) -> impl Iterator<Item = (ExchangeId, &Exchange)> {
        self.topology.exchanges()
    }

    /// The exchange with this name.
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.topology.exchange(self.topology.exchange_id(name)?)
    }

    /// The id of the exchange with this name.
    pub fn exchange_id(&self, name: &str) -> Option<ExchangeId> {
        self.topology.exchange_id(name)
    }

    /// The exchange with this id; none if it was deleted.
    pub fn exchange_of(&self, id: ExchangeId) -> Option<&Exchange> {
        self.topology.exchange(id)
    }

    /// All connections, in a stable order.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.connections.iter()
    }

    /// The connection with this id; none if it is closed.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id)
    }

    /// The policies as set; a recent change may not be applied to all queues and exchanges yet.
    pub fn policies(&self) -> &Policies {
        self.policies.policies()
    }

    /// Approximate memory of the messages that wait in queues, in bytes.
    pub fn waiting_bytes(&self) -> u64 {
        self.paging.resident_bytes()
    }

    /// Counters of the vhost since it was opened.
    pub fn counters(&self) -> &VhostCounters {
        &self.counters
    }

    /// Deaths since the vhost was opened by the reason that a consumer gave with its settlement: rejections, and
    /// returns above the delivery limit.
    pub fn given_reasons(&self) -> &GivenReasons {
        &self.given_reasons
    }

    // ---- for every command ----

    fn queue_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource { kind: ResourceKind::Queue, name, vhost: &self.name }
    }

    fn exchange_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource { kind: ResourceKind::Exchange, name, vhost: &self.name }
    }

    fn require(
        &self,
        at: ChannelKey,
        permission: Permission,
        resource: Resource<'_>,
    ) -> Result<(), Refusal> {
        match self.connections.get(at.connection) {
            Some(connection) => connection.access.require(permission, resource),
            None => Ok(()),
        }
    }

    /// The user who gave the command.
    fn user(&self, at: ChannelKey) -> Name {
        match self.connections.get(at.connection) {
            Some(connection) => Arc::clone(&connection.access.user),
            None => INTERNAL_USER.into(),
        }
    }

    /// Sends the answer of a command, unless the client wants none. The answer waits until everything that the connection
    /// has changed so far is durable, and every definition, whoever changed it, so that the client may rely on the answer.
    fn answer(&mut self, at: ChannelKey, nowait: bool, outgoing: Outgoing) {
        if !nowait {
            self.send_when_durable(self.needed_for_answer(at), at, outgoing);
        }
    }

    /// The log position that must be durable before the current command is answered.
    fn needed_for_answer(&self, at: ChannelKey) -> Lsn {
        self.log.written_by_command().unwrap_or_else(|| {
            let before = self.connections.get(at.connection).map(|connection| connection.logged);
            before.unwrap_or_default().max(self.log.last_definition())
        })
    }

    /// Sends a method once the log is durable up to `needed`. Methods that wait for the same position are
    /// sent in the order of these calls.
    fn send_when_durable(&mut self, needed: Lsn, at: ChannelKey, outgoing: Outgoing) {
        if self.log.is_durable(needed) {
            self.effects.send(at, outgoing);
        } else {
            self.effects.send_durable(needed, at, outgoing);
        }
    }

    /// Makes remembered routes stale, and requests a retry of dead letters without a target, which may have
    /// one now.
    fn topology_changed(&mut self) {
        self.topology.changed();
        self.dead_lettering.request_retry();
    }
}
