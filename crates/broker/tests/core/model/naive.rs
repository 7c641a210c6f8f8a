//! The naive model: plain lists, looked at as a whole for every question.

use std::collections::VecDeque;

use broker::ScheduleMode;

use super::steps::{Counts, Operation, Overflow, QueueSpec, Settlement, Step};

/// Deaths: queue, reason, count, and the expiration at the first of them.
type Death = (usize, &'static str, u64, Option<u64>);

#[derive(Clone, Debug)]
struct Message {
    body: String,
    expiration_ms: Option<u64>,
    priority: Option<u8>,
    persistent: bool,
    deaths: Vec<Death>,
    /// The reason that a consumer gave last.
    reason: Option<u8>,
    /// A client may have got the message, or its dead letter, before a failover.
    maybe_seen: bool,
}

/// A message in a queue.
#[derive(Clone, Debug)]
struct Entry {
    message: Message,
    arrived: u64,
    /// Order of arrival in the queue.
    seq: u64,
    /// Order of return, if it came back to a quorum queue.
    returned: Option<u64>,
    acquired: u32,
    failed: i64,
    /// The end of the delay of the last return.
    retry_at: Option<u64>,
}

impl Entry {
    fn new(message: Message, arrived: u64, seq: u64) -> Self {
        let acquired = u32::from(message.maybe_seen);
        Self { message, arrived, seq, returned: None, acquired, failed: 0, retry_at: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Consumer {
    prefetch: u16,
    no_ack: bool,
    unacked: u16,
}

/// A message before its delivery time, in milliseconds, with the name of its schedule.
#[derive(Debug)]
struct Scheduled {
    at: u64,
    name: Option<u8>,
    entry: Entry,
    /// A leader before may serve until then.
    by_old_leader: bool,
}

#[derive(Debug)]
struct Queue {
    spec: QueueSpec,
    ready: Vec<Entry>,
    /// Messages before their delivery time.
    scheduled: Vec<Scheduled>,
    /// Returned messages before their next delivery, with its time.
    delayed: Vec<(u64, Entry)>,
    /// Messages at the delivery limit, with their numbers.
    kept: Vec<(u64, Message)>,
    consumer: Option<Consumer>,
    seqs: u64,
    returns: u64,
    /// The last number of a message that outlives a failover.
    logged: u64,
    /// Such messages up to this number may have been delivered, as the log says.
    delivered: u64,
    /// The same at the last failover, and the number up to which messages may have left before it.
    delivered_before: u64,
    left_before: u64,
}

#[derive(Debug)]
struct Unacked {
    queue: usize,
    entry: Entry,
    by_consumer: bool,
    /// The reason for the return or the rejection.
    reason: Option<u8>,
    /// The delay of the return.
    delay_ms: Option<u64>,
}

/// A whole vhost with one client.
pub(crate) struct Model {
    queues: Vec<Queue>,
    policy_ttl_ms: Option<u64>,
    now: u64,
    published: u64,
    outstanding: Vec<Unacked>,
    /// Messages that died, with their numbers; none if they were refused.
    dying: VecDeque<(usize, Option<u64>, Message, &'static str)>,
    said: Vec<String>,
    /// A lost leader may deliver until then.
    cut_off_until: u64,
}

impl Queue {
    fn level(&self, message: &Message) -> u8 {
        if self.spec.quorum {
            return message.priority.unwrap_or(4);
        }
        self.spec.max_priority.map_or(0, |max| message.priority.unwrap_or(0).min(max))
    }

    /// Delivered first if smallest.
    fn place(&self, entry: &Entry) -> (u64, u8, u64) {
        match entry.returned {
            Some(order) => (0, 0, order),
            None => (1, u8::MAX - self.level(&entry.message), entry.seq),
        }
    }

    fn next(&self) -> Option<usize> {
        (0..self.ready.len()).min_by_key(|i| self.place(&self.ready[*i]))
    }

    /// Evicted first: the oldest of the lowest priority; a quorum queue's returned messages stand
    /// for their first one, which goes before others of the same priority.
    fn evicted(&self) -> Option<usize> {
        let all = 0..self.ready.len();
        let by_level = |i: &usize| (self.level(&self.ready[*i].message), self.ready[*i].seq);
        if !self.spec.quorum {
            return all.min_by_key(by_level);
        }
        let fresh = all.clone().filter(|i| self.ready[*i].returned.is_none()).min_by_key(by_level);
        let returned = all
            .filter(|i| self.ready[*i].returned.is_some())
            .min_by_key(|i| self.ready[*i].returned);
        match (fresh, returned) {
            (Some(fresh), Some(returned)) => {
                let level = |i: usize| self.level(&self.ready[i].message);
                Some(if level(returned) <= level(fresh) { returned } else { fresh })
            }
            (fresh, returned) => fresh.or(returned),
        }
    }

    fn has_room(&self) -> bool {
        self.consumer.is_some_and(|c| c.no_ack || c.prefetch == 0 || c.unacked < c.prefetch)
    }

    /// True if nothing is delivered, because a returned message waits.
    fn is_held(&self) -> bool {
        self.spec.is_strict() && !self.delayed.is_empty()
    }

    /// Messages that count against the limit.
    fn len(&self) -> usize {
        self.ready.len() + self.scheduled.len() + self.delayed.len() + self.kept.len()
    }

    /// The returned message that is ready first.
    fn next_delayed(&self) -> Option<(u64, usize)> {
        let times = self.delayed.iter().enumerate();
        let first = times.map(|(i, (at, entry))| (*at, entry.seq, i)).min();
        first.map(|(at, _, i)| (at, i))
    }

    /// The messages that may expire.
    fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.ready.iter().chain(self.delayed.iter().map(|(_, entry)| entry))
    }

    /// Takes a message that may expire, by its number.
    fn take(&mut self, seq: u64) -> Entry {
        match self.ready.iter().position(|entry| entry.seq == seq) {
            Some(i) => self.ready.remove(i),
            None => {
                let i = self.delayed.iter().position(|(_, entry)| entry.seq == seq);
                self.delayed.remove(i.unwrap()).1
            }
        }
    }

    /// Puts a returned message back to its place, or in front.
    fn give_back(&mut self, mut entry: Entry) {
        if self.spec.quorum && !self.spec.is_strict() {
            self.returns += 1;
            entry.returned = Some(self.returns);
        }
        self.ready.push(entry);
    }

    /// The message with the earliest delivery time.
    fn next_scheduled(&self) -> Option<(u64, usize)> {
        let times = self.scheduled.iter().enumerate();
        let first = times.map(|(i, scheduled)| (scheduled.at, scheduled.entry.seq, i)).min();
        first.map(|(at, _, i)| (at, i))
    }

    /// True if the message outlives a failover.
    fn is_durable(&self, message: &Message) -> bool {
        self.spec.quorum || message.persistent
    }

    /// The number of a message that arrives.
    fn number(&mut self, message: &Message) -> u64 {
        self.seqs += 1;
        if self.is_durable(message) {
            self.logged = self.seqs;
        }
        self.seqs
    }

    /// True if the message, or its dead letter, may have been delivered before a failover.
    fn may_have_left(&self, seq: u64) -> bool {
        seq <= self.delivered_before.max(self.left_before)
    }

    /// A replica has what the log has: no consumer, no transient message, and the last return of each message.
    fn fail_over(&mut self, now: u64, is_planned: bool, unacked: Vec<Entry>) {
        self.consumer = None;
        self.ready.extend(unacked);
        let (quorum, is_durable) =
            (self.spec.quorum, |m: &Message| self.spec.quorum || m.persistent);
        self.ready.retain(|entry| is_durable(&entry.message));
        self.scheduled.retain(|scheduled| is_durable(&scheduled.entry.message));
        self.delayed.retain(|(_, entry)| is_durable(&entry.message));
        self.kept.retain(|(_, message)| is_durable(message));
        let is_delayed = |entry: &mut Entry| entry.retry_at.is_some();
        let delayed: Vec<Entry> = self.ready.extract_if(.., is_delayed).collect();
        self.delayed.extend(delayed.into_iter().map(|entry| (entry.retry_at.unwrap(), entry)));
        self.seqs = self.logged;
        if !is_planned && !quorum {
            self.delivered = self.logged;
        }
        for scheduled in &mut self.scheduled {
            scheduled.by_old_leader = !is_planned && !quorum && scheduled.at <= now + 3_000;
        }
        self.left_before = if is_planned || !quorum { 0 } else { self.logged };
        self.delivered_before = self.delivered;
        for entry in self.ready.iter_mut().filter(|entry| entry.seq <= self.delivered_before) {
            entry.acquired = entry.acquired.max(1);
        }
    }

    fn is_full_with(&self, length: usize) -> bool {
        self.spec.max_length.is_some_and(|max| length as u64 > max)
    }
}

impl Model {
    pub(crate) fn new(specs: &[QueueSpec]) -> Self {
        let queue = |spec: &QueueSpec| Queue {
            spec: *spec,
            ready: Vec::new(),
            scheduled: Vec::new(),
            delayed: Vec::new(),
            kept: Vec::new(),
            consumer: None,
            seqs: 0,
            returns: 0,
            logged: 0,
            delivered: 0,
            delivered_before: 0,
            left_before: 0,
        };
        Self {
            queues: specs.iter().map(queue).collect(),
            policy_ttl_ms: None,
            now: 0,
            published: 0,
            outstanding: Vec::new(),
            dying: VecDeque::new(),
            said: Vec::new(),
            cut_off_until: 0,
        }
    }

    pub(crate) fn counts(&self) -> Vec<Counts> {
        let of_queue = |(q, queue): (usize, &Queue)| {
            let unacked: Vec<&Unacked> =
                self.outstanding.iter().filter(|unacked| unacked.queue == q).collect();
            let scheduled = queue.scheduled.iter().map(|scheduled| &scheduled.entry);
            let waiting = queue.waiting().chain(scheduled);
            let all = waiting.chain(unacked.iter().map(|unacked| &unacked.entry));
            let kept = queue.kept.iter().map(|(_, message)| message);
            let all = all.map(|entry| &entry.message).chain(kept);
            let (mut messages, mut bytes) = (0, 0);
            for message in all.filter(|message| queue.is_durable(message)) {
                messages += 1;
                bytes += message.body.len() as u64;
            }
            Counts {
                ready: queue.ready.len() as u64,
                delayed: (queue.scheduled.len() + queue.delayed.len()) as u64,
                unacked: unacked.len() as u64,
                kept: queue.kept.len() as u64,
                persistent: messages,
                // Those of a quorum queue depend on encoded properties.
                persistent_bytes: (!queue.spec.quorum).then_some(bytes),
            }
        };
        self.queues.iter().enumerate().map(of_queue).collect()
    }

    /// The ready messages of each queue in the order of delivery, and the unacknowledged ones.
    pub(crate) fn waiting(&self) -> Vec<(Vec<String>, Vec<String>)> {
        let waiting = |(q, queue): (usize, &Queue)| {
            let mut ready: Vec<&Entry> = queue.ready.iter().collect();
            ready.sort_by_key(|entry| queue.place(entry));
            let unacked = self.outstanding.iter().filter(|unacked| unacked.queue == q);
            let mut unacked: Vec<String> =
                unacked.map(|unacked| unacked.entry.message.body.clone()).collect();
            unacked.sort();
            let told = |entry: &Entry| {
                let deadline = self.deadline(q, entry);
                format!("{} {} {deadline:?}", described(entry), entry.failed)
            };
            (ready.into_iter().map(told).collect(), unacked)
        };
        self.queues.iter().enumerate().map(waiting).collect()
    }

    /// The deadlines of the ready and returned messages of each queue, ascending; messages without a deadline come first.
    pub(crate) fn deadlines(&self) -> Vec<Vec<Option<u64>>> {
        let of_queue = |(q, queue): (usize, &Queue)| {
            let deadlines = queue.waiting().map(|entry| self.deadline(q, entry));
            let mut deadlines: Vec<Option<u64>> = deadlines.collect();
            deadlines.sort();
            deadlines
        };
        self.queues.iter().enumerate().map(of_queue).collect()
    }

    #[expect(clippy::too_many_lines, reason = "one short arm for each kind of step")]
    pub(crate) fn run(&mut self, step: &Step) -> Vec<String> {
        match *step {
            Step::Publish { queue, expiration_ms, priority, persistent, delay_ms, schedule } => {
                self.published += 1;
                let body = format!("m{}", self.published);
                let deaths = Vec::new();
                let reason = None;
                let maybe_seen = false;
                let message = Message {
                    body,
                    expiration_ms,
                    priority,
                    persistent,
                    deaths,
                    reason,
                    maybe_seen,
                };
                let is_accepted = self.publish(queue, message, delay_ms, schedule);
                let said = if is_accepted { "confirmed" } else { "refused" };
                self.bury();
                self.said.push(said.to_owned());
            }
            Step::Consume { queue, prefetch, no_ack } => {
                if self.queues[queue].consumer.is_none() {
                    let consumer = Consumer { prefetch, no_ack, unacked: 0 };
                    self.queues[queue].consumer = Some(consumer);
                    self.dispatch(queue);
                }
            }
            Step::Cancel { queue } => {
                self.queues[queue].consumer = None;
                for unacked in self.outstanding.iter_mut().filter(|u| u.queue == queue) {
                    unacked.by_consumer = false;
                }
            }
            Step::Get { queue, .. } if self.queues[queue].spec.refuses_get() => {}
            Step::Get { queue, no_ack } => self.get(queue, no_ack),
            Step::Ack { which } => self.settle(which, false, "ack"),
            Step::AckMultiple { which } => self.settle(which, true, "ack"),
            Step::Nack { which, requeue: true } => self.settle(which, false, "nack"),
            Step::Reject { which, requeue: true } => self.settle(which, false, "fail"),
            Step::Nack { which, .. } | Step::Reject { which, .. } => {
                self.settle(which, false, "reject");
            }
            Step::Annotate { which, reason, delay_ms, settlement } => {
                self.annotate(which, (reason, delay_ms), settlement);
            }
            Step::Recover => {
                let all = self.take_outstanding();
                self.settle_all(all, "nack");
            }
            Step::Purge { queue } => {
                self.expire(queue);
                self.bury();
                let queue = &mut self.queues[queue];
                let count = queue.len();
                queue.ready.clear();
                queue.scheduled.clear();
                queue.delayed.clear();
                queue.kept.clear();
                self.said.push(format!("purged {count}"));
            }
            Step::Operate { queue, name, operation } => self.operate(queue, name, operation),
            Step::Redrive { queue, to } => self.redrive(queue, to),
            Step::CloseChannel => {
                self.queues.iter_mut().for_each(|queue| queue.consumer = None);
                let all = self.take_outstanding();
                self.settle_all(all, "fail");
            }
            Step::Sleep { millis } => self.sleep(self.now + millis),
            Step::Policy { ttl_ms } => self.policy_ttl_ms = ttl_ms,
            Step::FailOver { is_planned } => self.fail_over(is_planned),
        }
        self.bury();
        self.sleep(self.now);
        std::mem::take(&mut self.said)
    }

    fn fail_over(&mut self, is_planned: bool) {
        // A leader hands over what it knows: a lost leader before it may still deliver.
        let is_planned = is_planned && self.cut_off_until <= self.now;
        if !is_planned {
            self.cut_off_until = self.now + 3_000;
        }
        let mut unacked: [Vec<Entry>; 3] = Default::default();
        for one in std::mem::take(&mut self.outstanding) {
            unacked[one.queue].push(one.entry);
        }
        for (queue, unacked) in self.queues.iter_mut().zip(unacked) {
            queue.fail_over(self.now, is_planned, unacked);
        }
        self.sleep(self.now);
        // What nobody has acknowledged counts as waiting again.
        (0..3).for_each(|q| self.evict(q));
    }

    fn deadline(&self, queue: usize, entry: &Entry) -> Option<u64> {
        let ttls =
            [self.queues[queue].spec.ttl_ms, self.policy_ttl_ms, entry.message.expiration_ms];
        ttls.into_iter().flatten().min().map(|ttl| entry.arrived + ttl)
    }

    fn is_expired(&self, queue: usize, entry: &Entry) -> bool {
        self.deadline(queue, entry).is_some_and(|deadline| deadline <= self.now)
    }

    fn expires_on_arrival(&self, queue: usize, message: &Message) -> bool {
        let ttls = [self.queues[queue].spec.ttl_ms, self.policy_ttl_ms, message.expiration_ms];
        ttls.contains(&Some(0))
    }

    /// The deadline of the message of a queue that expires next, and its number.
    fn next_expiry(&self, q: usize) -> Option<(u64, u64)> {
        let queue = &self.queues[q];
        let may_expire = |entry: &&Entry| {
            if !queue.spec.head_only {
                return true;
            }
            let is_ready = |entry: &Entry| queue.ready.iter().any(|other| other.seq == entry.seq);
            if !is_ready(entry) {
                return false;
            }
            // Only the head of each priority level and of the returned messages.
            let group = |e: &Entry| (e.returned.is_some(), queue.level(&e.message));
            let same = |e: &&Entry| match entry.returned {
                Some(_) => e.returned.is_some(),
                None => group(e) == group(entry),
            };
            queue.ready.iter().filter(same).all(|e| queue.place(e) >= queue.place(entry))
        };
        let due = queue.waiting().filter(may_expire).filter_map(|entry| {
            let deadline = self.deadline(q, entry)?;
            Some((deadline, entry.seq))
        });
        due.min()
    }

    fn expire(&mut self, q: usize) -> bool {
        let mut any = false;
        while let Some((deadline, seq)) = self.next_expiry(q)
            && deadline <= self.now
        {
            let entry = self.queues[q].take(seq);
            self.dying.push_back((q, Some(entry.seq), entry.message, "expired"));
            any = true;
        }
        any
    }

    fn sleep(&mut self, until: u64) {
        loop {
            let next = |q: usize| {
                let expiry = self.next_expiry(q).map(|(at, _)| at);
                let retry = self.queues[q].next_delayed().map(|(at, _)| at);
                let delivery = self.queues[q].next_scheduled().map(|(at, _)| at);
                Some((expiry.into_iter().chain(retry).chain(delivery).min()?, q))
            };
            let mut queues: Vec<(u64, usize)> = (0..3).filter_map(next).collect();
            queues.sort_unstable();
            let Some((deadline, _)) = queues.first().filter(|(at, _)| *at <= until) else { break };
            self.now = self.now.max(*deadline);
            for (_, q) in queues {
                if self.expire(q) | self.end_delays(q) | self.deliver_scheduled(q) {
                    self.dispatch(q);
                    // Limits spare messages while they wait for their next delivery.
                    self.evict(q);
                }
            }
            self.bury();
        }
        self.now = until;
    }

    /// Makes returned messages ready whose delay is over.
    fn end_delays(&mut self, q: usize) -> bool {
        let mut any = false;
        while let Some((at, i)) = self.queues[q].next_delayed()
            && at <= self.now
        {
            let (_, entry) = self.queues[q].delayed.remove(i);
            self.queues[q].give_back(entry);
            any = true;
        }
        any
    }

    /// Lets messages arrive whose delivery time has come.
    fn deliver_scheduled(&mut self, q: usize) -> bool {
        let mut any = false;
        while let Some((at, i)) = self.queues[q].next_scheduled()
            && at <= self.now
        {
            let queue = &mut self.queues[q];
            let Scheduled { mut entry, by_old_leader, .. } = queue.scheduled.remove(i);
            entry.message.maybe_seen |= by_old_leader;
            if entry.message.maybe_seen && queue.is_durable(&entry.message) {
                queue.delivered = queue.delivered.max(queue.seqs + 1);
            }
            self.place(q, entry.message);
            any = true;
        }
        any
    }

    /// Publishes a message; true if the queue accepted it.
    fn publish(
        &mut self,
        q: usize,
        message: Message,
        delay_ms: Option<u64>,
        schedule: Option<(u8, ScheduleMode)>,
    ) -> bool {
        let schedule = schedule.filter(|_| delay_ms.is_some());
        let delay_ms = delay_ms.unwrap_or(0);
        let is_named = |scheduled: &Scheduled, name: u8| scheduled.name == Some(name);
        if let Some((name, ScheduleMode::Keep)) = schedule
            && self.queues[q].scheduled.iter().any(|scheduled| is_named(scheduled, name))
        {
            return true;
        }
        if self.refuses(q) {
            if self.queues[q].spec.overflow == Overflow::RejectDlx {
                self.dying.push_back((q, None, message, "maxlen"));
            }
            return false;
        }
        if delay_ms == 0 && schedule.is_none() {
            self.place(q, message);
            return true;
        }
        let queue = &mut self.queues[q];
        let seq = queue.number(&message);
        let entry = Entry::new(message, self.now, seq);
        if let Some((name, ScheduleMode::Replace)) = schedule {
            queue.scheduled.retain(|scheduled| !is_named(scheduled, name));
        }
        let name = schedule.map(|(name, _)| name);
        queue.scheduled.push(Scheduled {
            at: self.now + delay_ms,
            name,
            entry,
            by_old_leader: false,
        });
        self.evict(q);
        true
    }

    /// Changes the messages with that name.
    fn operate(&mut self, q: usize, name: u8, operation: Operation) {
        let (now, scheduled) = (self.now, &mut self.queues[q].scheduled);
        let has_any = scheduled.iter().any(|scheduled| scheduled.name == Some(name));
        if operation == Operation::Cancel {
            scheduled.retain(|scheduled| scheduled.name != Some(name));
        }
        for scheduled in scheduled.iter_mut().filter(|scheduled| scheduled.name == Some(name)) {
            scheduled.at = match operation {
                Operation::Reschedule { delay_ms } => now + delay_ms,
                Operation::Cancel | Operation::Deliver => now,
            };
        }
        if !has_any {
            self.said.push("returned".to_owned());
        }
        self.said.push("confirmed".to_owned());
    }

    fn is_full(&self, q: usize) -> bool {
        let queue = &self.queues[q];
        queue.spec.overflow != Overflow::DropHead && queue.is_full_with(queue.len() + 1)
    }

    fn refuses(&mut self, q: usize) -> bool {
        if self.is_full(q) {
            self.expire(q);
        }
        self.is_full(q)
    }

    fn redrive(&mut self, q: usize, to: Option<usize>) {
        let mut order: Vec<&Entry> = self.queues[q].ready.iter().collect();
        order.sort_by_key(|entry| self.queues[q].place(entry));
        let order: Vec<u64> = order.into_iter().map(|entry| entry.seq).collect();
        let mut moved = 0;
        for seq in order {
            let at = |model: &Self| model.queues[q].ready.iter().position(|e| e.seq == seq);
            let Some(i) = at(self) else { continue };
            let entry = &self.queues[q].ready[i];
            let died = entry.message.deaths.first().copied();
            let Some(target) = to.or_else(|| Some(died?.0)) else { continue };
            if self.is_expired(q, entry) || self.refuses(target) {
                continue;
            }
            let Some(i) = at(self) else { continue };
            let entry = self.queues[q].ready.remove(i);
            let mut message = entry.message;
            message.maybe_seen |= self.queues[q].may_have_left(entry.seq);
            if to.is_none() {
                message.expiration_ms = died.and_then(|death| death.3);
            }
            message.deaths.clear();
            moved += 1;
            self.place(target, message);
        }
        self.said.insert(0, format!("{moved} redriven"));
        self.expire(q);
        self.dispatch(q);
    }

    fn place(&mut self, q: usize, message: Message) {
        let queue = &mut self.queues[q];
        let (arrived, seq) = (self.now, queue.number(&message));
        let entry = Entry::new(message, arrived, seq);
        if queue.ready.is_empty() && queue.has_room() && !queue.is_held() {
            self.deliver(q, entry);
        } else if self.expires_on_arrival(q, &entry.message) {
            self.dying.push_back((q, Some(entry.seq), entry.message, "expired"));
        } else {
            self.queues[q].ready.push(entry);
            self.evict(q);
        }
    }

    fn evict(&mut self, q: usize) {
        let is_over = |queue: &Queue| {
            queue.spec.overflow == Overflow::DropHead && queue.is_full_with(queue.len())
        };
        if is_over(&self.queues[q]) {
            self.expire(q);
        }
        while is_over(&self.queues[q]) {
            let queue = &mut self.queues[q];
            if !queue.kept.is_empty() {
                let (seq, message) = queue.kept.remove(0);
                self.dying.push_back((q, Some(seq), message, "maxlen"));
                continue;
            }
            let entry = if let Some(i) = queue.evicted() {
                queue.ready.remove(i)
            } else if let Some((_, i)) = queue.next_scheduled() {
                queue.scheduled.remove(i).entry
            } else {
                break;
            };
            self.dying.push_back((q, Some(entry.seq), entry.message, "maxlen"));
        }
    }

    fn dispatch(&mut self, q: usize) {
        while let Some(i) = self.queues[q].next() {
            if self.is_expired(q, &self.queues[q].ready[i]) {
                if self.queues[q].consumer.is_none() {
                    return;
                }
                self.expire(q);
                continue;
            }
            if !self.queues[q].has_room() || self.queues[q].is_held() {
                return;
            }
            let entry = self.queues[q].ready.remove(i);
            self.deliver(q, entry);
        }
    }

    fn deliver(&mut self, q: usize, entry: Entry) {
        let described = described(&entry);
        self.said.push(format!("q{q} delivers {described}"));
        let Some(consumer) = &mut self.queues[q].consumer else { return };
        if !consumer.no_ack {
            consumer.unacked += 1;
            self.hold(q, entry, true);
        }
    }

    fn hold(&mut self, queue: usize, mut entry: Entry, by_consumer: bool) {
        entry.acquired += 1;
        let held = &mut self.queues[queue];
        if held.is_durable(&entry.message) {
            held.delivered = held.delivered.max(entry.seq);
        }
        self.outstanding.push(Unacked { queue, entry, by_consumer, reason: None, delay_ms: None });
    }

    fn get(&mut self, q: usize, no_ack: bool) {
        self.expire(q);
        self.bury();
        let Some(i) = self.queues[q].next().filter(|_| !self.queues[q].is_held()) else {
            self.said.push("get-empty".to_owned());
            return;
        };
        let entry = self.queues[q].ready.remove(i);
        let left = self.queues[q].ready.len();
        self.said.push(format!("get-ok {} left {left}", described(&entry)));
        if !no_ack {
            self.hold(q, entry, false);
        }
    }

    /// Gives the reason and the delay for a delivery, instead of those before, and settles the delivery if wanted.
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
        (self.outstanding[at].reason, self.outstanding[at].delay_ms) = (reason, delay_ms);
        match settlement {
            None => {}
            Some(Settlement::Requeue) => self.settle(at, false, "nack"),
            Some(Settlement::DeadLetter) => self.settle(at, false, "reject"),
        }
        self.bury();
        self.said.push("confirmed".to_owned());
    }

    /// All outstanding deliveries, whose reasons and delays are forgotten.
    fn take_outstanding(&mut self) -> Vec<Unacked> {
        let mut all = std::mem::take(&mut self.outstanding);
        for unacked in &mut all {
            (unacked.reason, unacked.delay_ms) = (None, None);
        }
        all
    }

    fn settle(&mut self, which: usize, multiple: bool, outcome: &str) {
        if self.outstanding.is_empty() {
            return;
        }
        let at = which % self.outstanding.len();
        let first = if multiple { 0 } else { at };
        let settled: Vec<Unacked> = self.outstanding.drain(first..=at).collect();
        self.settle_all(settled, outcome);
    }

    fn settle_all(&mut self, settled: Vec<Unacked>, outcome: &str) {
        let mut touched = Vec::new();
        for mut unacked in settled {
            let q = unacked.queue;
            unacked.entry.message.reason = unacked.reason.or(unacked.entry.message.reason);
            if unacked.by_consumer
                && let Some(consumer) = &mut self.queues[q].consumer
            {
                consumer.unacked -= 1;
            }
            match outcome {
                "ack" => {}
                "reject" => {
                    let Entry { seq, message, .. } = unacked.entry;
                    self.dying.push_back((q, Some(seq), message, "rejected"));
                }
                how => self.requeue(q, unacked.entry, how == "fail", unacked.delay_ms),
            }
            touched.push(q);
        }
        touched.sort_unstable();
        touched.dedup();
        for q in touched {
            self.dispatch(q);
            self.evict(q);
        }
    }

    fn requeue(&mut self, q: usize, mut entry: Entry, failed: bool, delay_ms: Option<u64>) {
        let spec = self.queues[q].spec;
        if failed && (spec.quorum || spec.retry.is_some()) {
            entry.failed += 1;
            if spec.quorum && spec.delivery_limit >= 0 && entry.failed > spec.delivery_limit {
                self.dying.push_back((q, Some(entry.seq), entry.message, "delivery_limit"));
                return;
            }
        }
        if self.is_expired(q, &entry) {
            self.dying.push_back((q, Some(entry.seq), entry.message, "expired"));
            return;
        }
        let queue = &mut self.queues[q];
        let retry = spec.retry.filter(|retry| failed || !retry.failed_only);
        let attempt = u64::try_from(entry.failed.max(1)).unwrap();
        let of_queue = retry.map(|retry| retry.max_ms.min(retry.min_ms * attempt));
        // A delay of 0 for this delivery is none, whatever the queue's own.
        let delay_ms = delay_ms.or(of_queue).filter(|delay_ms| *delay_ms > 0);
        entry.retry_at = delay_ms.map(|delay_ms| self.now + delay_ms);
        match entry.retry_at {
            Some(at) => queue.delayed.push((at, entry)),
            None => queue.give_back(entry),
        }
    }

    /// Moves what died, and what dies of that.
    fn bury(&mut self) {
        while let Some((q, seq, message, reason)) = self.dying.pop_front() {
            let others = std::mem::take(&mut self.dying);
            self.bury_one(q, seq, message, reason);
            self.dying.extend(others);
        }
    }

    fn bury_one(&mut self, q: usize, seq: Option<u64>, mut message: Message, reason: &'static str) {
        let Some(target) = self.queues[q].spec.dead_letters_to else {
            if self.queues[q].spec.keeps && reason == "delivery_limit" {
                let seq = seq.expect("a message that was delivered has a number");
                self.queues[q].kept.push((seq, message));
                self.evict(q);
            }
            return;
        };
        message.maybe_seen |= seq.is_some_and(|seq| self.queues[q].may_have_left(seq));
        let same = message.deaths.iter().position(|(dq, r, ..)| (*dq, *r) == (q, reason));
        let (_, _, count, expiration_ms) =
            same.map_or((q, reason, 0, message.expiration_ms), |at| message.deaths.remove(at));
        message.deaths.insert(0, (q, reason, count + 1, expiration_ms));
        message.expiration_ms = None;
        if is_cycle(&message.deaths, target) {
            return;
        }
        let spec = self.queues[target].spec;
        if self.is_full(target) && !spec.quorum {
            if spec.overflow == Overflow::RejectDlx && spec.dead_letters_to.is_some() {
                self.dying.push_back((target, None, message, "maxlen"));
            }
            return;
        }
        self.place(target, message);
    }
}

/// Back where it was, with nothing but automatic deaths since then.
fn is_cycle(deaths: &[Death], target: usize) -> bool {
    let since = deaths.iter().position(|(q, ..)| *q == target);
    since.is_some_and(|at| deaths[..=at].iter().all(|(_, reason, ..)| *reason != "rejected"))
}

fn described(entry: &Entry) -> String {
    let again = if entry.acquired > 0 { " again" } else { "" };
    let deaths: Vec<String> =
        entry.message.deaths.iter().map(|(q, reason, n, _)| format!("q{q}:{reason}:{n}")).collect();
    let reason = entry.message.reason.map(|reason| format!(" because {reason}"));
    let reason = reason.unwrap_or_default();
    format!("{}{again} [{}]{reason}", entry.message.body, deaths.join(" "))
}
