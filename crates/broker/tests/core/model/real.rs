//! The core in the vhost of a node, driven by the steps of a history, with its effects as plain sentences.

use std::cell::RefCell;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::page::PageTask;
use broker::redrive::{Redrive, RedriveTo, Redriven};
use broker::time::{Now, Time};
use broker::{
    BrowsedMessage, ChannelNumber, Command, ConnectionId, Consume, Content, DeclareQueue, Delivery,
    DeliveryTag, Effect, Entry, Message, MessageState, Outcome, Outgoing, PolicyKind, Publish,
    QueueType, Request, ScheduleMode, Vhost, VhostOptions,
};
use replica::{ClientEnd, HandOverTask, JobProgress, LocalVhost, PageJob, Surroundings};
use session::Outbox;
use storage::WriteBatch;

use super::steps::{Counts, Operation, Overflow, QueueSpec, Settlement, Step};
use crate::commands::queue_policy;
use crate::disk::driven::{Log, Paged, local, write_batch};
use crate::disk::look::{self, browse_all};
use crate::disk::{Disk, Follower, PageStore, Replay, log};

/// So often the timer may be asked for in one step.
const WAKES_MAX: usize = 100_000;

const NAMES: [&str; 3] = ["q0", "q1", "q2"];

/// A client that the node itself is, so that it gets methods and not bytes.
#[derive(Debug)]
enum NoClient {}

impl ClientEnd for NoClient {
    fn frame_max(&self) -> u32 {
        match *self {}
    }

    fn append<T>(&mut self, _: impl FnOnce(&mut Outbox) -> T) -> T {
        match *self {}
    }

    fn set_closing(&mut self) {
        match *self {}
    }

    fn is_closing(&self) -> bool {
        match *self {}
    }

    fn set_stalled(&mut self) {
        match *self {}
    }

    fn unsent(&self) -> u64 {
        match *self {}
    }
}

/// The vhost of a node, as the server and the simulator have it.
type Local = LocalVhost<NoClient, PageStore>;

/// The surroundings of the vhost.
struct Node<'a> {
    now: Now,
    log: RefCell<&'a mut Log>,
    /// The replica of a replicated vhost.
    follower: RefCell<&'a mut Option<Follower>>,
    /// The methods for the client.
    outgoing: Vec<Outgoing>,
}

impl Surroundings for Node<'_> {
    type Effects<'v> = std::vec::IntoIter<Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        let effects: Vec<Effect> = vhost.drain_effects().collect();
        self.log.borrow_mut().note(&effects);
        if let Some(follower) = &mut **self.follower.borrow_mut() {
            let logged = effects.iter().filter(|effect| matches!(effect, Effect::Log { .. }));
            logged.for_each(|effect| follower.write(effect));
        }
        effects.into_iter()
    }

    fn send_internal(&mut self, _: ConnectionId, outgoing: Outgoing) {
        self.outgoing.push(outgoing);
    }

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        self.now
    }
}

/// The core with one client on one channel.
pub(crate) struct Broker {
    local: Local,
    connection: ConnectionId,
    now_ms: u64,
    published: u64,
    /// Tags of deliveries that are not settled.
    outstanding: Vec<u64>,
    /// The queues that refuse `basic.get`.
    refusing_get: Vec<bool>,
    /// The consumer of each queue, and whether it needs no acknowledgement.
    consuming: [Option<bool>; 3],
    /// The last `basic.get` needed no acknowledgement.
    getting_no_ack: bool,
    /// The replica of a replicated vhost.
    follower: Option<Follower>,
    log: Log,
    /// Records of the batch that the log has taken.
    records: WriteBatch,
    page_store: PageStore,
    said: Vec<String>,
}

impl Broker {
    pub(crate) fn new(queues: &[QueueSpec], options: VhostOptions) -> Self {
        let mut broker = Self {
            local: local(Vhost::new("/", [1; 32], options)),
            connection: ConnectionId::default(),
            now_ms: 0,
            published: 0,
            outstanding: Vec::new(),
            refusing_get: queues.iter().map(QueueSpec::refuses_get).collect(),
            consuming: [None; 3],
            getting_no_ack: false,
            follower: options.delivers_after_commit.then(|| Follower::new(options)),
            log: Log { replay: Replay::default(), disk: Disk::of(&options) },
            records: WriteBatch::default(),
            page_store: PageStore::default(),
            said: Vec::new(),
        };
        broker.connect();
        broker.apply(Command::OpenChannel);
        broker.apply(Command::ConfirmSelect { nowait: true });
        for (queue, spec) in NAMES.iter().zip(queues) {
            let arguments = arguments(spec);
            broker.apply(Command::DeclareQueue(DeclareQueue {
                queue,
                passive: false,
                durable: true,
                exclusive: false,
                auto_delete: false,
                nowait: true,
                arguments: arguments.as_ref(),
            }));
        }
        broker.take_said();
        broker
    }

    pub(crate) fn run(&mut self, step: &Step) -> Vec<String> {
        match *step {
            Step::Publish { .. } => self.publish(step),
            Step::Operate { queue, name, operation } => self.operate(queue, name, operation),
            Step::Consume { queue, prefetch, no_ack } => self.consume(queue, prefetch, no_ack),
            Step::Cancel { queue } => {
                self.consuming[queue] = None;
                let consumer_tag = NAMES[queue];
                self.apply(Command::Cancel { consumer_tag, nowait: true });
            }
            Step::Get { queue, .. } if self.refusing_get[queue] => {}
            Step::Get { queue, no_ack } => {
                self.getting_no_ack = no_ack;
                self.apply(Command::Get { queue: NAMES[queue], no_ack });
            }
            Step::Ack { which } => self.settle(which, false, Outcome::Ack),
            Step::AckMultiple { which } => self.settle(which, true, Outcome::Ack),
            Step::Nack { which, requeue: true } => {
                self.settle(which, false, Outcome::Requeue { failed: false });
            }
            Step::Reject { which, requeue: true } => {
                self.settle(which, false, Outcome::Requeue { failed: true });
            }
            Step::Nack { which, requeue: false } | Step::Reject { which, requeue: false } => {
                self.settle(which, false, Outcome::Reject);
            }
            Step::Annotate { which, reason, delay_ms, settlement } => {
                self.annotate(which, (reason, delay_ms), settlement);
            }
            Step::Recover => {
                self.outstanding.clear();
                self.apply(Command::Recover { answer: false });
            }
            Step::Purge { queue } => {
                self.apply(Command::PurgeQueue { queue: NAMES[queue], nowait: false });
            }
            Step::Redrive { queue, to } => self.redrive(NAMES[queue], to),
            Step::CloseChannel => {
                self.outstanding.clear();
                self.consuming = [None; 3];
                self.apply(Command::CloseChannel);
                self.apply(Command::OpenChannel);
                self.apply(Command::ConfirmSelect { nowait: true });
            }
            Step::Sleep { millis } => self.sleep(millis),
            Step::Policy { ttl_ms } => self.policy(ttl_ms),
            Step::FailOver { is_planned } => self.fail_over(is_planned),
        }
        // The timer looks at what has become due by the step itself.
        self.sleep(0);
        self.take_said()
    }

    /// The client connects.
    fn connect(&mut self) {
        let access = Arc::new(access());
        self.connection = self.local.open(self.now(), "client", access, true, None);
    }

    /// The message counts of each queue.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let queues = NAMES.iter().map(|name| self.local.vhost().queue(name).unwrap());
        let counts = queues.map(|queue| Counts {
            ready: queue.ready_count(),
            delayed: queue.delayed_count(),
            unacked: queue.unacked_count(),
            kept: queue.pending_count(),
            persistent: queue.persistent().messages,
            persistent_bytes: (queue.kind() == QueueType::Classic)
                .then_some(queue.persistent().bytes),
        });
        counts.collect()
    }

    /// The result of browsing each queue in slices of `count`.
    pub(crate) fn browsed(&mut self, count: usize) -> Vec<(Vec<String>, Vec<String>)> {
        NAMES
            .map(|name| (self.browse_ready(name, count), self.browse_unacked(name, count)))
            .to_vec()
    }

    /// Asserts that the messages of each queue expire then; what is on disk is known between two ends.
    pub(crate) fn check_deadlines(&self, expected: &[Vec<Option<u64>>], count: usize) {
        let at_ms = |at: Time| at.as_micros() / 1000 - 1_000_000;
        for (name, expected) in NAMES.iter().zip(expected) {
            let told = look::expiry_of(self.local.vhost().queue(name).unwrap(), count);
            let never = expected.iter().filter(|deadline| deadline.is_none()).count();
            assert_eq!(told.never, never as u64, "{name}: {told:?} for {expected:?}");
            let mut left: Vec<u64> = expected.iter().filter_map(|deadline| *deadline).collect();
            for deadline in told.deadlines.iter().map(|at| at_ms(*at)) {
                let at = left.iter().position(|known| *known == deadline);
                left.remove(at.unwrap_or_else(|| panic!("{name}: nothing expires at {deadline}")));
            }
            let spans = told.spans.iter().map(|span| (at_ms(span.first), at_ms(span.last)));
            let on_disk: u64 = told.spans.iter().map(|span| span.messages).sum();
            assert_eq!(on_disk, left.len() as u64, "{name}: {told:?} for {expected:?}");
            let is_known =
                |at: &u64| spans.clone().any(|(first, last)| (first..=last).contains(at));
            assert!(left.iter().all(is_known), "{name}: {told:?} for {left:?}");
        }
    }

    fn browse_ready(&mut self, name: &str, count: usize) -> Vec<String> {
        let messages = browse_all(
            self.local.vhost(),
            &mut self.page_store,
            (name, MessageState::Ready),
            count,
        );
        let tell = |message: &BrowsedMessage| {
            let again = if message.is_redelivered() { " again" } else { "" };
            let Entry { message: content, delivery_count, .. } = &message.entry;
            let deadline = message.deadline.map(|at| at.as_micros() / 1000 - 1_000_000);
            format!("{} {delivery_count} {deadline:?}", told(content, again))
        };
        messages.iter().map(tell).collect()
    }

    fn browse_unacked(&mut self, name: &str, count: usize) -> Vec<String> {
        let state = MessageState::Unacknowledged;
        let messages = browse_all(self.local.vhost(), &mut self.page_store, (name, state), count);
        let body = |message: &BrowsedMessage| {
            assert_eq!(message.held_by.as_ref().unwrap().channel, ChannelNumber(1));
            String::from_utf8_lossy(message.entry.message.body()).into_owned()
        };
        let mut bodies: Vec<String> = messages.iter().map(body).collect();
        bodies.sort();
        bodies
    }

    /// Invariants hold and the log gives the same state.
    pub(crate) fn check(&self) {
        let (vhost, Log { replay, disk }) = (self.local.vhost(), &self.log);
        log::check(vhost, Some(&self.page_store), replay, disk, "the last step");
    }

    /// Checks that replaying the log restores the same durable messages. The client disconnects first,
    /// because its deliveries then count against the limits again, in both vhosts.
    pub(crate) fn check_restart(&mut self) {
        self.local.close(self.now(), self.connection);
        self.collect();
        self.check();
        if let Some(follower) = &self.follower {
            let mut turn = 0;
            let mut at_once = || {
                turn += 1;
                turn % 5
            };
            let own_log = follower.read_back(self.log.disk.references_left());
            for replica in [follower.again(&mut || 1), follower.again(&mut at_once), own_log] {
                self.page_store.assert_same(self.local.vhost(), &replica.promote(self.now(), true));
            }
        }
        // Once with everything there ever was, once with what a compaction leaves.
        for _ in 0..2 {
            let back = self.log.disk.restart(self.now(), self.local.vhost());
            self.page_store.assert_same(self.local.vhost(), &back);
            self.log.disk.compact();
        }
    }

    fn now(&self) -> Now {
        self.at(self.now_ms)
    }

    /// The moment at that time. That of a replicated vhost is the end of a millisecond of the axis, which the log stores
    /// exactly; the wall clock shows another time.
    fn at(&self, millis: u64) -> Now {
        match self.follower {
            None => Now::from_millis(1_000_000 + millis),
            Some(_) => Now {
                time: Time::from_micros((1_000_000 + millis) * 1000 + 999),
                wall_us: (77_000 + millis) * 1000,
            },
        }
    }

    /// The leader is gone, with its client, and the replica leads.
    fn fail_over(&mut self, is_planned: bool) {
        self.local.log_digest(self.now());
        self.collect();
        if is_planned {
            self.local.hand_over(self.now(), HandOverTask::Halt);
            self.collect();
        }
        let mut follower = self.follower.take().expect("the vhost is replicated");
        follower.begin_term();
        let next = follower.again(&mut || 1);
        self.follower = Some(next);
        let (vhost, page_store) = follower.take_over(self.now());
        (self.local, self.page_store) = (local(vhost), page_store);
        self.connect();
        self.outstanding.clear();
        self.consuming = [None; 3];
        self.apply(Command::OpenChannel);
        self.apply(Command::ConfirmSelect { nowait: true });
    }

    fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        let mut requests = std::iter::once(request);
        self.local.apply(self.now(), self.connection, &mut requests, u64::MAX / 2);
        self.collect();
    }

    fn publish(&mut self, step: &Step) {
        let Step::Publish { queue, expiration_ms, priority, persistent, delay_ms, schedule } =
            *step
        else {
            panic!("{step:?} is no publish");
        };
        self.published += 1;
        let mut headers = TableBuilder::new();
        if let Some(delay_ms) = delay_ms {
            let delay_ms = Value::I64(i64::try_from(delay_ms).unwrap());
            headers.insert("x-opt-delivery-delay", delay_ms);
        }
        if let Some((name, mode)) = schedule {
            headers.insert("x-schedule-id", Value::LongStr(&[b'0' + name]));
            let mode: &[u8] = match mode {
                ScheduleMode::Replace => b"replace",
                ScheduleMode::Keep => b"keep",
                ScheduleMode::Add => b"add",
            };
            headers.insert("x-schedule-mode", Value::LongStr(mode));
        }
        let headers = headers.finish();
        let expiration = expiration_ms.map(|millis| millis.to_string());
        let properties = Properties {
            expiration: expiration.as_deref().map(str::as_bytes),
            priority,
            delivery_mode: Some(if persistent { 2 } else { 1 }),
            headers: Some(headers.as_ref()),
            ..Properties::default()
        };
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        self.apply(Command::Publish(Publish {
            exchange: b"".into(),
            routing_key: NAMES[queue].as_bytes().into(),
            mandatory: false,
            content: Content::Assembled {
                properties: encoded.into(),
                body: format!("m{}", self.published).into_bytes().into(),
            },
        }));
    }

    fn operate(&mut self, queue: usize, name: u8, operation: Operation) {
        let target = format!("queue/{}", NAMES[queue]);
        let mut headers = TableBuilder::new();
        headers.insert("x-schedule-target", Value::LongStr(target.as_bytes()));
        headers.insert("x-schedule-id", Value::LongStr(&[b'0' + name]));
        let operation: &[u8] = match operation {
            Operation::Cancel => b"cancel",
            Operation::Deliver => b"deliver-now",
            Operation::Reschedule { delay_ms } => {
                let delay_ms = Value::I64(i64::try_from(delay_ms).unwrap());
                headers.insert("x-opt-delivery-delay", delay_ms);
                b"reschedule"
            }
        };
        headers.insert("x-schedule-op", Value::LongStr(operation));
        self.publish_operation("amq.schedule", &headers.finish());
    }

    fn annotate(
        &mut self,
        which: usize,
        (reason, delay_ms): (Option<u8>, Option<u64>),
        settlement: Option<Settlement>,
    ) {
        if self.outstanding.is_empty() {
            return;
        }
        let at = which % self.outstanding.len();
        let tag = self.outstanding[at];
        let mut headers = TableBuilder::new();
        headers.insert("x-delivery-tag", Value::I64(i64::try_from(tag).unwrap()));
        if let Some(reason) = reason {
            headers.insert("x-reason", Value::U8(reason));
        }
        if let Some(delay_ms) = delay_ms {
            let delay_ms = Value::I64(i64::try_from(delay_ms).unwrap());
            headers.insert("x-opt-delivery-delay", delay_ms);
        }
        if let Some(settlement) = settlement {
            self.outstanding.remove(at);
            let settlement: &[u8] = match settlement {
                Settlement::Requeue => b"requeue",
                Settlement::DeadLetter => b"dead-letter",
            };
            headers.insert("x-op", Value::LongStr(settlement));
        }
        self.publish_operation("amq.settle", &headers.finish());
    }

    /// Publishes to an exchange of operations.
    fn publish_operation(&mut self, exchange: &str, headers: &Table) {
        let mut encoded = Vec::new();
        let properties = Properties { headers: Some(headers.as_ref()), ..Properties::default() };
        properties.encode(&mut encoded);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: b"".into(),
            mandatory: true,
            content: Content::Assembled { properties: encoded.into(), body: "".into() },
        }));
    }

    fn redrive(&mut self, queue: &str, to: Option<usize>) {
        let state = MessageState::Ready;
        let waiting = browse_all(self.local.vhost(), &mut self.page_store, (queue, state), 3);
        let chosen: Vec<Entry> = waiting.into_iter().map(|message| message.entry).collect();
        let to = to.map_or(RedriveTo::Origin, |to| RedriveTo::Queue(NAMES[to].into()));
        let vhost = self.local.vhost();
        let access = Arc::clone(&vhost.connection(self.connection).unwrap().access);
        let queue = vhost.queue_id(queue).unwrap();
        let redrive = Redrive { queue, to: &to, access: &access, is_of_kept: false };
        let now = self.now();
        let redriven = self.local.serving_mut().redrive(now, redrive, &chosen).unwrap();
        let moved = redriven.iter().filter(|what| **what == Redriven::Moved).count();
        self.said.push(format!("{moved} redriven"));
        self.collect();
    }

    fn consume(&mut self, queue: usize, prefetch_count: u16, no_ack: bool) {
        if self.consuming[queue].is_some() {
            return;
        }
        self.consuming[queue] = Some(no_ack);
        self.apply(Command::Qos { prefetch_count, global: false });
        self.apply(Command::Consume(Consume {
            queue: NAMES[queue],
            consumer_tag: NAMES[queue],
            no_ack,
            exclusive: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    fn settle(&mut self, which: usize, multiple: bool, outcome: Outcome) {
        if self.outstanding.is_empty() {
            return;
        }
        let at = which % self.outstanding.len();
        let tag = self.outstanding[at];
        if multiple {
            self.outstanding.drain(..=at);
        } else {
            self.outstanding.remove(at);
        }
        self.apply(Command::Settle { tag: DeliveryTag(tag), multiple, outcome });
    }

    /// Lets time pass, looking whenever the core wants to be looked at.
    fn sleep(&mut self, millis: u64) {
        let end = self.now_ms + millis;
        let end_time = self.at(end).time;
        let mut wakes = 0;
        while let Some(wake) = self.local.vhost().next_wake().filter(|wake| *wake <= end_time) {
            wakes += 1;
            assert!(wakes < WAKES_MAX, "the timer is asked for again and again");
            self.now_ms = self.now_ms.max((wake.as_micros() / 1000).saturating_sub(1_000_000));
            self.local.tick(self.now(), false);
            self.collect();
        }
        self.now_ms = end;
    }

    fn policy(&mut self, ttl_ms: Option<u64>) {
        if let Some(ttl_ms) = ttl_ms {
            self.set_policy(ttl_ms);
        } else {
            // In one batch with a change, the log may leave the removal out.
            self.set_policy(1_000_000_000);
            let now = self.now();
            self.local.serving_mut().clear_policy(now, PolicyKind::User, "ttl");
        }
        self.collect();
    }

    fn set_policy(&mut self, ttl_ms: u64) {
        let ttl_ms = i64::try_from(ttl_ms).unwrap();
        let policy = queue_policy("ttl", ".*", "message-ttl", ttl_ms);
        let now = self.now();
        self.local.serving_mut().set_policy(now, PolicyKind::User, policy);
    }

    /// Ends a batch, lets the log have it, and does all page tasks.
    fn collect(&mut self) {
        let mut job = PageJob::default();
        loop {
            self.end_batch();
            self.sync();
            let now = self.now();
            let Self { local, page_store, log, .. } = self;
            let Ok(progress) = job.advance(&mut Paged { local, page_store, log, now });
            if progress == JobProgress::Done {
                return;
            }
            job.wake();
        }
    }

    /// The log has on disk what waits.
    fn sync(&mut self) {
        let mut has_more = true;
        while std::mem::take(&mut has_more) {
            has_more = write_batch(&mut self.local, &mut self.records);
            self.end_batch();
        }
    }

    /// Ends a batch, and hears what is said to the client.
    fn end_batch(&mut self) {
        let now = self.now();
        let (log, follower) = (RefCell::new(&mut self.log), RefCell::new(&mut self.follower));
        let mut node = Node { now, log, follower, outgoing: Vec::new() };
        self.local.end_batch(&mut node);
        for outgoing in node.outgoing {
            let needs_ack = match &outgoing {
                Outgoing::Deliver { consumer_tag, delivery } => {
                    let queue = NAMES.iter().position(|name| *name == &**consumer_tag);
                    let no_ack = queue.and_then(|queue| self.consuming[queue]);
                    (no_ack == Some(false)).then_some(delivery.tag.0)
                }
                Outgoing::GetOk { delivery, .. } => {
                    (!self.getting_no_ack).then_some(delivery.tag.0)
                }
                _ => None,
            };
            self.outstanding.extend(needs_ack);
            self.said.extend(sentence(&outgoing));
        }
        if let Some(follower) = &mut self.follower {
            follower.end_entry(now.time).unwrap();
        }
    }

    fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }
}

fn access() -> Access {
    Access::matching("guest".into(), ".*").unwrap()
}

fn sentence(outgoing: &Outgoing) -> Option<String> {
    Some(match outgoing {
        Outgoing::Deliver { consumer_tag, delivery } => {
            format!("{consumer_tag} delivers {}", described(delivery))
        }
        Outgoing::GetOk { delivery, message_count } => {
            format!("get-ok {} left {message_count}", described(delivery))
        }
        Outgoing::GetEmpty => "get-empty".to_owned(),
        Outgoing::QueuePurgeOk { message_count } => format!("purged {message_count}"),
        Outgoing::Return { .. } => "returned".to_owned(),
        Outgoing::Ack { .. } => "confirmed".to_owned(),
        Outgoing::Nack { .. } => "refused".to_owned(),
        Outgoing::ChannelClose { refusal, .. } | Outgoing::ConnectionClose { refusal, .. } => {
            panic!("{refusal}")
        }
        _ => return None,
    })
}

fn described(delivery: &Delivery) -> String {
    told(&delivery.message, if delivery.redelivered { " again" } else { "" })
}

fn told(message: &Message, again: &str) -> String {
    let body = String::from_utf8_lossy(message.body()).into_owned();
    let deaths: Vec<String> = message
        .deaths()
        .iter()
        .flat_map(|deaths| &deaths.entries)
        .map(|death| format!("{}:{}:{}", death.queue, death.reason, death.count))
        .collect();
    let properties = Properties::parse(message.properties()).unwrap();
    let reason = properties.headers.and_then(|headers| headers.get("x-reason"));
    let reason = reason.map(|reason| format!(" because {}", reason.as_integer().unwrap()));
    format!("{body}{again} [{}]{}", deaths.join(" "), reason.unwrap_or_default())
}

fn arguments(spec: &QueueSpec) -> Table {
    let mut table = TableBuilder::new();
    let number = |n: u64| Value::I64(i64::try_from(n).unwrap());
    if spec.quorum {
        table.insert("x-queue-type", Value::LongStr(b"quorum"));
        table.insert("x-delivery-limit", Value::I64(spec.delivery_limit));
    }
    if spec.keeps {
        table.insert("x-delivery-limit-action", Value::LongStr(b"keep"));
    }
    if let Some(ttl) = spec.ttl_ms {
        table.insert("x-message-ttl", number(ttl));
    }
    if let Some(max) = spec.max_length {
        table.insert("x-max-length", number(max));
        let overflow: &[u8] = match spec.overflow {
            Overflow::DropHead => b"drop-head",
            Overflow::Reject => b"reject-publish",
            Overflow::RejectDlx => b"reject-publish-dlx",
        };
        table.insert("x-overflow", Value::LongStr(overflow));
    }
    if let Some(priority) = spec.max_priority {
        table.insert("x-max-priority", Value::U8(priority));
    }
    if let Some(to) = spec.dead_letters_to {
        table.insert("x-dead-letter-exchange", Value::LongStr(b""));
        table.insert("x-dead-letter-routing-key", Value::LongStr(NAMES[to].as_bytes()));
    }
    if let Some(retry) = spec.retry {
        let kind: &[u8] = if retry.failed_only { b"failed" } else { b"all" };
        table.insert("x-delayed-retry-type", Value::LongStr(kind));
        table.insert("x-delayed-retry-min", number(retry.min_ms));
        table.insert("x-delayed-retry-max", number(retry.max_ms));
        if retry.is_strict {
            table.insert("x-single-active-consumer", Value::Bool(true));
            table.insert("x-delayed-retry-order", Value::LongStr(b"strict"));
        }
    }
    if spec.head_only {
        table.insert("x-expiry-order", Value::LongStr(b"head"));
    }
    table.finish()
}
