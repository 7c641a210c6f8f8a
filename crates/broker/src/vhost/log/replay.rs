//! Recovery of a vhost from its log: the records in order, then one last step that makes the vhost live.
//!
//! Replay checks no permissions and sends no answers: each record was allowed once. Messages are where they were,
//! with the deadlines they had; messages that were delivered and not settled are ready again and marked as
//! redelivered. Messages do not expire while the log is read; those that are due expire afterwards, in the order of
//! deadlines.

use std::sync::Arc;

use amqp::table::{Table, Value};

use super::divergence::Divergence;
use super::undeclared::{RecoveredQueue, UndeclaredQueues};
use crate::collections::Lookup;
use crate::exchange::delayed::{HeldMessages, HeldStore};
use crate::exchange::{Binding, BindingArguments, Destination, Exchange, ExchangeDeclaration};
use crate::ids::{EntryId, ExchangeId, Lsn, QueueId, QueueNumber};
use crate::message::{Message, Name};
use crate::page::Pages;
use crate::policy::EffectivePolicies;
use crate::queue::replayed::KeptMessage;
use crate::queue::{Entry, Queue, QueueArguments, QueueDeclaration};
use crate::record::{
    BindingRecord, Decoded, Entries, ExchangeRecord, QueueRecord, Record, definition_hash,
};
use crate::refusal::{Resource, ResourceKind};
use crate::time::{Now, Time};
use crate::vhost::Vhost;
use crate::vhost::commands::bindings::record as binding_record;
use crate::vhost::state::durable_sums::DurableSums;
use crate::vhost::state::holder::Holder;

/// A vhost during recovery, or as a replica that follows its leader.
#[derive(Debug)]
pub struct Replay {
    pub(super) vhost: Vhost,
    pub(super) queues: Lookup<QueueNumber, QueueId>,
    /// Delayed exchanges by the number of the messages that they hold.
    pub(super) delayed: Lookup<QueueNumber, ExchangeId>,
    /// No message has arrived after this time.
    pub(super) now: Time,
    pub(super) undeclared: UndeclaredQueues,
    /// Bindings with a missing end.
    pub(super) unbound: Vec<(Lsn, BindingRecord)>,
    recovered: Vec<RecoveredQueue>,
    /// The source of the records.
    pub(super) source: Source,
    /// Knowledge of the deliveries of the leader before.
    pub(super) hand_over: HandOver,
}

/// A planned change of the leader, as far as the records tell of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HandOver {
    /// There is none: the leader may have delivered what the log does not tell.
    None,
    /// The leader delivers nothing any more.
    Announced,
    /// The term of another leader has begun, and nothing else has happened.
    Complete,
}

/// The source of the records of a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The own log, of which a compaction has left out what no longer matters, and of which parts may be damaged.
    OwnLog,
    /// The leader, every record of which must fit.
    Leader,
    /// The leader, one of whose records did not fit.
    Diverged(Divergence),
}

/// The outcome of recovery where declarations are damaged.
#[derive(Default, Debug)]
pub struct Recovered {
    /// Queues whose declaration is lost, recovered with their messages.
    pub queues: Vec<RecoveredQueue>,
    /// Records that are left out, because records they depend on are lost.
    pub problems: Vec<(Lsn, ReplayProblem)>,
}

/// The reason that a record cannot be replayed; the rest of the log can be.
pub type ReplayProblem = String;

impl Replay {
    /// Starts with a new vhost, at `now`. Arrival times after `now`, which a clock that was set back can
    /// cause, count as `now`.
    pub fn new(vhost: Vhost, now: Time) -> Self {
        let queues = Lookup::new(vhost.topology.seed());
        let delayed = Lookup::new(vhost.topology.seed());
        let (undeclared, unbound, recovered) =
            (UndeclaredQueues::default(), Vec::new(), Vec::new());
        let source = Source::OwnLog;
        let hand_over = HandOver::None;
        Self { vhost, queues, delayed, now, undeclared, unbound, recovered, source, hand_over }
    }

    /// The vhost as it is so far, for measurements, which change nothing else in it.
    pub fn vhost_mut(&mut self) -> &mut Vhost {
        &mut self.vhost
    }

    /// Applies the next record, which has this position. With `is_spent`, all that the record brought is gone,
    /// and only its effect on others is applied. `ended` is called with every record of which one reference
    /// has ended, except the one that the record is about.
    ///
    /// # Errors
    /// If the record does not fit the records before it. In the own log, some of these are lost; the record is left out,
    /// and the rest of the log can be applied. A replica that [follows](Self::follow) has diverged from its leader: it
    /// must be rebuilt, and every further call gives the same error.
    pub fn apply(
        &mut self,
        lsn: Lsn,
        decoded: Decoded,
        is_spent: bool,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), Divergence> {
        self.check_position(lsn)?;
        let Decoded { record, arrived } = decoded.not_after(self.now);
        let record = if is_spent { record.spent() } else { record };
        let applied = self.apply_record(lsn, record, arrived, pages, ended);
        applied.map_err(|divergence| self.diverged(divergence))
    }

    #[expect(clippy::too_many_lines, reason = "one short arm for each kind of record")]
    fn apply_record(
        &mut self,
        lsn: Lsn,
        record: Record,
        arrived: Time,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), Divergence> {
        self.vhost.log.replayed(lsn);
        if self.hand_over == HandOver::Complete {
            // A leader has written in the new term, and may have delivered.
            self.hand_over = HandOver::None;
        }
        match record {
            Record::Publish { message, entries } => {
                self.enter(lsn, &message, &entries, arrived, pages);
            }
            Record::DeadLetter { queue, entry, message, entries } => {
                self.forget(queue, entry, pages);
                self.enter(lsn, &message, &entries, arrived, pages);
            }
            Record::Schedule { message, entries, ready_at } => {
                self.enter_delayed(lsn, &message, &entries, arrived, ready_at, pages);
            }
            Record::Ready { queue, entry, to } => {
                let id = self.queues.get(&queue).copied();
                if let Some(id) = id
                    && let Some(entry) =
                        self.vhost.topology.known_queue_mut(id).take_scheduled(entry, pages)
                {
                    self.sums(|sums| {
                        sums.left(queue, entry.id.seq);
                        sums.entered(queue, to.seq);
                    });
                    self.push(id, Entry { id: to, arrived, ..entry }, pages);
                }
            }
            Record::Reschedule { queue, entry, ready_at, scheduled_for_ms } => {
                self.reschedule(queue, entry, ready_at, scheduled_for_ms);
            }
            Record::Settle { queue, entry } => self.forget(queue, entry, pages),
            Record::Requeue { queue, entry, acquired_count, delivery_count, ready_at } => {
                if let Some(entry) = self.take(queue, entry, pages) {
                    let entry = Entry { acquired_count, delivery_count, ..entry };
                    self.give_back(queue, entry, ready_at);
                }
            }
            Record::Annotate { queue, entry, headers } => {
                if let Some(mut entry) = self.take(queue, entry, pages) {
                    entry.message = entry.message.with_headers(headers.as_ref());
                    // Only a message that is delivered is annotated.
                    entry.acquired_count = entry.acquired_count.max(1);
                    self.give_back(queue, entry, None);
                }
            }
            Record::Pend { queue, entry, reason } => {
                if let Some(entry) = self.take(queue, entry, pages)
                    && let Some(queue) = self.queue(queue)
                {
                    queue.dead_letters.keep(entry, reason);
                }
            }
            Record::Delivered { queue, up_to } => {
                if let Some(queue) = self.queue(queue) {
                    queue.restore_delivered(up_to);
                }
            }
            Record::Purge { queue, kept } => self.purge(queue, &kept, pages, ended),
            Record::DeclareQueue(queue) => self.declare_queue(lsn, queue)?,
            Record::DeleteQueue { queue } => self.delete_queue(lsn, queue, pages, ended)?,
            Record::SetPolicy { kind, policy } => {
                let name = Arc::clone(&policy.name);
                self.sums(|sums| {
                    let record = Record::SetPolicy { kind, policy: Arc::clone(&policy) };
                    sums.policy_set(kind, &name, definition_hash(&record));
                });
                self.vhost.policies.set(kind, (*policy).clone());
                self.vhost.policies.logged(kind, Arc::clone(&name), lsn);
                self.policy_changed(kind, &name);
            }
            Record::ClearPolicy { kind, name } => {
                self.sums(|sums| sums.policy_cleared(kind, &name));
                self.vhost.policies.clear(kind, &name);
                self.vhost.policies.take_lsn(kind, &name);
                self.policy_changed(kind, &name);
            }
            Record::SetRedrive { id, job } => {
                self.sums(|sums| {
                    let record = Record::SetRedrive { id, job: Arc::clone(&job) };
                    sums.redrive_set(id, definition_hash(&record));
                });
                self.vhost.redrives.set(id, lsn, job);
            }
            Record::ClearRedrive { id } => {
                self.sums(|sums| sums.redrive_cleared(id));
                self.vhost.redrives.clear(id);
            }
            Record::DeclareExchange(exchange) => self.declare_exchange(lsn, exchange)?,
            Record::DeleteExchange { name } => self.delete_exchange(lsn, &name, pages, ended)?,
            Record::Bind(binding) => self.bind(lsn, binding),
            Record::Unbind(binding) => self.unbind(&binding),
            Record::Digest(digest) => self.compare(lsn, &digest)?,
            Record::HandOver { ends } => self.handed_over(ends),
        }
        Ok(())
    }

    /// Changes the sums of a replicated vhost.
    pub(super) fn sums(&mut self, change: impl FnOnce(&mut DurableSums)) {
        if let Some(sums) = &mut self.vhost.sums {
            change(sums);
        }
    }

    fn queue(&mut self, number: QueueNumber) -> Option<&mut Queue> {
        Some(self.vhost.topology.known_queue_mut(*self.queues.get(&number)?))
    }

    fn enter(
        &mut self,
        lsn: Lsn,
        message: &Message,
        entries: &Entries,
        arrived: Time,
        pages: &mut dyn Pages,
    ) {
        for (number, id) in entries {
            let queue = self.queue_or_undeclared(*number);
            let kept = self.undeclared.enter(*number, message, entries.len() == 1);
            let message = kept.unwrap_or_else(|| message.clone());
            self.sums(|sums| sums.entered(*number, id.seq));
            self.push(queue, Entry::new(*id, message, lsn, arrived), pages);
        }
    }

    fn push(&mut self, queue: QueueId, entry: Entry, pages: &mut dyn Pages) {
        let Entry { id, message, lsn, arrived, .. } = entry;
        let pushed = self.vhost.topology.known_queue_mut(queue);
        pushed.accept_number(id.seq);
        pushed.push(id, message, lsn, arrived);
        for (page, messages) in self.vhost.cut_pages(queue, id.level) {
            pages.write(page, messages);
        }
    }

    fn enter_delayed(
        &mut self,
        lsn: Lsn,
        message: &Message,
        entries: &Entries,
        arrived: Time,
        ready_at: Time,
        pages: &mut dyn Pages,
    ) {
        for (number, id) in entries {
            self.sums(|sums| sums.entered(*number, id.seq));
            if let Some(exchange) = self.delayed.get(number).copied() {
                let held = self.held(*number).expect("delayed exchanges hold messages");
                held.hold(Entry::new(*id, message.clone(), lsn, arrived), ready_at);
                self.page_out_scheduled(Holder::Exchange(exchange), pages);
                continue;
            }
            let queue = self.queue_or_undeclared(*number);
            let kept = self.undeclared.enter(*number, message, entries.len() == 1);
            let message = kept.unwrap_or_else(|| message.clone());
            let entry = Entry::new(*id, message, lsn, arrived);
            let scheduled = self.vhost.topology.known_queue_mut(queue);
            scheduled.accept_number(id.seq);
            scheduled.schedule(entry, ready_at);
            self.page_out_scheduled(Holder::Queue(queue), pages);
        }
    }

    fn page_out_scheduled(&mut self, holder: Holder, pages: &mut dyn Pages) {
        if let Some((page, messages)) = self.vhost.cut_scheduled_page(holder) {
            pages.write(page, messages);
        }
    }

    fn reschedule(
        &mut self,
        number: QueueNumber,
        entry: EntryId,
        ready_at: Time,
        scheduled_for_ms: Option<u64>,
    ) {
        if let Some(held) = self.held(number) {
            held.reschedule(entry, ready_at);
        } else if let Some(queue) = self.queue(number) {
            let scheduled_for_ms = scheduled_for_ms.unwrap_or(ready_at.as_micros() / 1000);
            queue.reschedule(entry, ready_at, scheduled_for_ms);
        }
    }

    /// The queue with this number; a new one if the queue was deleted later and its declaration is not kept, or if the
    /// declaration is lost.
    fn queue_or_undeclared(&mut self, number: QueueNumber) -> QueueId {
        if let Some(id) = self.queues.get(&number) {
            return *id;
        }
        let id = self.undeclared.make(&mut self.vhost, number);
        self.queues.insert(number, id);
        id
    }

    /// The messages of the delayed exchange with this number.
    fn held(&mut self, number: QueueNumber) -> Option<&mut HeldMessages> {
        let id = *self.delayed.get(&number)?;
        self.vhost.topology.known_exchange_mut(id).held.as_deref_mut()
    }

    fn forget(&mut self, number: QueueNumber, entry: EntryId, pages: &mut dyn Pages) {
        let was_there = if let Some(held) = self.held(number) {
            let removed = held.remove(entry);
            let was_there = removed.is_some();
            let empty_page = removed.and_then(|removed| removed.empty_page);
            empty_page.into_iter().for_each(|page| pages.remove(page));
            was_there
        } else {
            self.queue(number).is_some_and(|queue| queue.forget(entry, pages))
        };
        if was_there {
            self.sums(|sums| sums.left(number, entry.seq));
        }
    }

    fn take(&mut self, queue: QueueNumber, entry: EntryId, pages: &mut dyn Pages) -> Option<Entry> {
        self.queue(queue)?.take(entry, pages)
    }

    fn give_back(&mut self, queue: QueueNumber, entry: Entry, ready_at: Option<Time>) {
        let Some(queue) = self.queue(queue) else {
            return;
        };
        match ready_at {
            Some(ready_at) => queue.delay(entry, ready_at),
            None => queue.give_back(entry),
        }
    }

    fn purge(
        &mut self,
        number: QueueNumber,
        kept: &[EntryId],
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) {
        self.sums(|sums| sums.purged(number));
        if let Some(held) = self.held(number) {
            held.schedules_mut().end_all(pages, ended);
            return;
        }
        let Some(queue) = self.queue(number) else {
            return;
        };
        let kept = queue.take_kept(kept, pages);
        queue.end_all(pages, ended);
        let seqs: Vec<u64> = kept.iter().map(KeptMessage::seq).collect();
        queue.put_kept(kept);
        self.sums(|sums| seqs.into_iter().for_each(|seq| sums.entered(number, seq)));
    }

    fn declare_queue(&mut self, lsn: Lsn, record: QueueRecord) -> Result<(), Divergence> {
        self.check_new_queue(lsn, &record)?;
        if let Some(sums) = &mut self.vhost.sums {
            let hash = definition_hash(&Record::DeclareQueue(record.clone()));
            sums.declared(record.queue, lsn, hash);
        }
        let QueueRecord { queue: number, name, auto_delete, arguments, declared_by } = record;
        let vhost = &mut self.vhost;
        if let Some(id) = self.undeclared.remove(number) {
            // The queue was recovered by an earlier start.
            let queue = vhost.topology.name_queue(id, name);
            queue.registration.lsn = lsn;
            queue.ownership.declared_by = declared_by;
            return Ok(());
        }
        let resource = Resource { kind: ResourceKind::Queue, name: &name, vhost: &vhost.name };
        let arguments = QueueArguments::parse(arguments.as_ref(), resource)
            .map_err(|refusal| Divergence::of_queue(lsn, &name, refusal.explanation))?;
        let arguments = vhost.topology.shared_arguments(arguments);
        let declaration = QueueDeclaration {
            name,
            durable: true,
            auto_delete,
            exclusive_owner: None,
            arguments,
            declared_by,
        };
        let defaults = vhost.options.queue_defaults;
        let policies = match self.source {
            Source::Leader => vhost
                .policies
                .policies()
                .for_queue(&declaration.name, declaration.arguments.queue_type),
            Source::OwnLog | Source::Diverged(_) => EffectivePolicies::default(),
        };
        let paging = vhost.paging.for_queue();
        let mut queue = Queue::new(declaration, number, policies, defaults, paging, vhost.now.time);
        queue.registration.lsn = lsn;
        let id = vhost.topology.insert_queue(queue);
        self.queues.insert(number, id);
        Ok(())
    }

    fn delete_queue(
        &mut self,
        lsn: Lsn,
        number: QueueNumber,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), Divergence> {
        let Some(id) = self.queues.remove(&number) else {
            return Ok(());
        };
        self.undeclared.remove(number);
        // The records of its unbinding may be lost.
        let queue = self.vhost.topology.known_queue_mut(id);
        let bindings = std::mem::take(&mut queue.registration.bindings);
        self.check_unbound(lsn, bindings.len())?;
        self.end_bindings(bindings);
        self.sums(|sums| sums.deleted(number));
        let topology = &mut self.vhost.topology;
        if let Some(mut queue) = topology.remove_queue(id) {
            queue.end_all(pages, ended);
        }
        Ok(())
    }

    fn declare_exchange(&mut self, lsn: Lsn, record: ExchangeRecord) -> Result<(), Divergence> {
        self.check_new_exchange(lsn, &record)?;
        if let Some(sums) = &mut self.vhost.sums {
            let hash = definition_hash(&Record::DeclareExchange(record.clone()));
            sums.exchange_declared(&record.name, record.store, lsn, hash);
        }
        let memory = self.vhost.paging.for_queue();
        let declaration = ExchangeDeclaration {
            name: record.name,
            kind: record.kind,
            durable: true,
            auto_delete: record.auto_delete,
            internal: record.internal,
            alternate: alternate(&record.arguments),
            arguments: record.arguments,
            declared_by: record.declared_by,
            store: record.store.map(|number| HeldStore { number, memory }),
        };
        let vhost = &mut self.vhost;
        let name = Arc::clone(&declaration.name);
        let mut exchange =
            Exchange::new(declaration, vhost.topology.seed(), vhost.topology.memory()).map_err(
                |refusal| {
                    let problem = format!("exchange '{name}': {}", refusal.explanation);
                    Divergence::new(lsn, problem)
                },
            )?;
        exchange.lsn = lsn;
        if self.source == Source::Leader {
            vhost.apply_exchange_policy(&mut exchange);
        }
        let id = vhost.topology.insert_exchange(exchange);
        if let Some(store) = record.store {
            self.delayed.insert(store, id);
        }
        Ok(())
    }

    fn delete_exchange(
        &mut self,
        lsn: Lsn,
        name: &Name,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), Divergence> {
        let Some(id) = self.vhost.topology.exchange_id(name) else {
            return Ok(());
        };
        // The records of its unbinding may be lost.
        let exchange = self.vhost.topology.known_exchange_mut(id);
        let bindings = std::mem::take(&mut exchange.bound_from);
        let from_here: Vec<Binding> = exchange.bindings().cloned().collect();
        self.check_unbound(lsn, bindings.len() + from_here.len())?;
        self.end_bindings(bindings);
        self.end_bindings(from_here.into_iter().map(|binding| (id, binding)));
        self.sums(|sums| sums.exchange_deleted(name));
        if let Some(mut exchange) = self.vhost.topology.remove_exchange(id)
            && let Some(held) = &mut exchange.held
        {
            held.schedules_mut().end_all(pages, ended);
            self.delayed.remove(&held.number);
        }
        Ok(())
    }

    fn bind(&mut self, lsn: Lsn, record: BindingRecord) {
        match self.binding(&record) {
            Some((source, binding)) => {
                // A binding that had lost an end may have been made again later.
                if self.vhost.topology.add_binding(source, &binding) {
                    self.vhost.topology.binding_logged(source, binding, lsn);
                    self.sums(|sums| sums.bound(definition_hash(&Record::Bind(record))));
                }
            }
            None => self.unbound.push((lsn, record)),
        }
    }

    fn unbind(&mut self, record: &BindingRecord) {
        if let Some((source, binding)) = self.binding(record) {
            self.end_bindings([(source, binding)]);
        } else {
            // An end was deleted later, and its declaration is not kept.
            self.unbound.retain(|(_, unbound)| unbound != record);
        }
    }

    /// Ends bindings, as far as they exist, with the exchanges they lead from.
    fn end_bindings(&mut self, bindings: impl IntoIterator<Item = (ExchangeId, Binding)>) {
        for (source, binding) in bindings {
            let topology = &mut self.vhost.topology;
            let (from, name) = match binding.destination {
                Destination::Queue(queue) => {
                    (topology.exchange(source), topology.queue(queue).map(|queue| &queue.name))
                }
                Destination::Exchange(exchange) => (
                    topology.exchange(source),
                    topology.exchange(exchange).map(|exchange| &exchange.name),
                ),
            };
            let ended =
                from.zip(name).map(|(from, name)| binding_record(&from.name, name, &binding));
            topology.remove_binding(source, &binding);
            if topology.take_binding_lsn(source, &binding).is_some()
                && let Some(ended) = ended
            {
                self.sums(|sums| sums.unbound(definition_hash(&Record::Bind(ended))));
            }
        }
    }

    fn binding(&self, record: &BindingRecord) -> Option<(ExchangeId, Binding)> {
        let topology = &self.vhost.topology;
        let source = topology.exchange_id(&record.source)?;
        let destination = if record.to_queue {
            Destination::Queue(topology.queue_id(&record.destination)?)
        } else {
            Destination::Exchange(topology.exchange_id(&record.destination)?)
        };
        let arguments = BindingArguments::new(record.arguments.as_ref());
        let routing_key = Arc::clone(&record.routing_key);
        Some((source, Binding { destination, routing_key, arguments }))
    }

    /// Marks all waiting messages, except those whose delivery time has not come, as possibly delivered: records are
    /// missing, or may be, because a delivery does not wait for the log. The first batch of the recovered vhost logs
    /// this.
    pub fn records_lost(&mut self) {
        let now = self.now;
        let topology = &mut self.vhost.topology;
        for (id, queue) in topology.queues_mut() {
            if queue.deliveries_forgotten(now) {
                self.vhost.log.note_delivered(id);
            }
        }
        topology
            .exchanges_mut()
            .filter_map(|exchange| exchange.held.as_mut())
            .for_each(|held| held.deliveries_forgotten(now));
    }

    /// Recovers queues whose declaration is lost, with their messages; call this after the last record.
    pub fn recover(&mut self) -> Recovered {
        let unbound = std::mem::take(&mut self.unbound);
        let to_queues = unbound.iter().filter(|(_, record)| {
            record.to_queue && self.vhost.topology.queue_id(&record.destination).is_none()
        });
        let mut missing: Vec<Name> =
            to_queues.map(|(_, record)| Arc::clone(&record.destination)).collect();
        missing.sort_unstable();
        missing.dedup();
        let queues = std::mem::take(&mut self.undeclared).recover(&mut self.vhost, &missing);
        unbound.into_iter().for_each(|(lsn, record)| self.bind(lsn, record));
        let problems = self.unbound.iter().map(|(lsn, record)| {
            let BindingRecord { source, destination, .. } = record;
            (*lsn, format!("binding from '{source}' to '{destination}' has lost an end"))
        });
        let problems = problems.collect();
        self.recovered.extend(queues.iter().cloned());
        Recovered { queues, problems }
    }

    /// Completes recovery of a log that ends at `last`, or promotes a replica: the vhost continues from `now`.
    ///
    /// # Panics
    /// If the replica has diverged from its leader.
    pub fn finish(mut self, now: Now, last: Lsn, pages: &mut dyn Pages) -> Vhost {
        if let Source::Diverged(divergence) = &self.source {
            panic!("a replica that must be rebuilt is promoted: {divergence}");
        }
        self.recover();
        let mut vhost = self.vhost;
        vhost.now = now;
        vhost.log.all_replayed(last);
        for recovered in &self.recovered {
            let lsn = vhost.declare_recovered(recovered);
            if let Some(id) = vhost.topology.queue_id(&recovered.name)
                && let Some(queue) = vhost.topology.queue_mut(id)
            {
                queue.registration.lsn = lsn;
            }
        }
        for (id, queue) in vhost.topology.queues_mut() {
            queue.came_back(now.time, pages);
            if !queue.dead_letters.pending().is_empty() {
                vhost.dead_lettering.add_source(id);
            }
        }
        // Overdue work is done when the vhost is live.
        if self.source == Source::OwnLog {
            vhost.resolve_all_policies();
        }
        for id in vhost.topology.queue_ids() {
            vhost.arm_queue(id);
            // Messages that nobody has acknowledged count as waiting again.
            vhost.enforce_limits_soon(id);
        }
        vhost.topology.exchange_ids().into_iter().for_each(|id| vhost.arm_exchange(id));
        vhost.list_all_sums();
        vhost
    }
}

/// The alternate exchange in the arguments.
fn alternate(arguments: &Table) -> Option<Name> {
    match arguments.get("alternate-exchange") {
        Some(Value::LongStr(name)) => Some(String::from_utf8_lossy(name).into()),
        _ => None,
    }
}
