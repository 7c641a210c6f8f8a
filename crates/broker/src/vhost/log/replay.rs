//! A vhost comes back from its log: the records in order, then one last step that makes it live.
//!
//! Replaying asks no questions and answers nobody: what is in the log was allowed once. Messages are
//! where they were, with the deadlines they had; whatever had been handed out and not settled is ready
//! again and marked as delivered before. Nothing expires while the log is read: what is due by then
//! expires in the order of deadlines once it is.

use std::sync::Arc;

use amqp::table::{Table, Value};

use super::undeclared::{RecoveredQueue, UndeclaredQueues};
use crate::exchange::{Binding, BindingArguments, Destination, Exchange, ExchangeDeclaration};
use crate::ids::{EntryId, ExchangeId, Lsn, QueueId, QueueNumber};
use crate::lookup::Lookup;
use crate::message::{Message, Name};
use crate::page::Pages;
use crate::policy::InForce;
use crate::queue::{Entry, Queue, QueueArguments, QueueDeclaration};
use crate::record::{BindingRecord, Decoded, Entries, ExchangeRecord, QueueRecord, Record};
use crate::refusal::{Resource, ResourceKind};
use crate::time::{Now, Time};
use crate::vhost::Vhost;

/// A vhost while its log is read.
#[derive(Debug)]
pub struct Replay {
    vhost: Vhost,
    queues: Lookup<QueueNumber, QueueId>,
    /// When the node began to read: nothing has arrived after that.
    now: Time,
    undeclared: UndeclaredQueues,
    /// Bindings of which an end is not there.
    unbound: Vec<(Lsn, BindingRecord)>,
    recovered: Vec<RecoveredQueue>,
}

/// What became of damage to declarations.
#[derive(Default, Debug)]
pub struct Recovered {
    /// Queues whose declaration is lost, with their messages.
    pub queues: Vec<RecoveredQueue>,
    /// Records that are left out, because what they need is lost.
    pub problems: Vec<(Lsn, ReplayProblem)>,
}

/// Why a record cannot be replayed; the rest of the log can be.
pub type ReplayProblem = String;

impl Replay {
    /// Begins with a new vhost, at `now`: what the log says arrived later, because the clock was set back
    /// since, arrives then.
    pub fn new(vhost: Vhost, now: Time) -> Self {
        let queues = Lookup::new(vhost.seed);
        let (undeclared, unbound, recovered) =
            (UndeclaredQueues::default(), Vec::new(), Vec::new());
        Self { vhost, queues, now, undeclared, unbound, recovered }
    }

    /// Takes in the next record, which has this position. With `is_spent` it only tells of others: the
    /// copies it once brought are gone. `ended` is called with every record of which one reference has
    /// ended, beside the one it is about.
    ///
    /// # Errors
    /// When it does not fit what was replayed before, because records in front of it were lost.
    pub fn apply(
        &mut self,
        lsn: Lsn,
        decoded: Decoded,
        is_spent: bool,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) -> Result<(), ReplayProblem> {
        self.vhost.last_lsn = lsn;
        let Decoded { record, arrived } = decoded.not_after(self.now);
        match record {
            Record::Publish { message, entries } => {
                self.enter(lsn, &message, &entries, arrived, pages);
            }
            Record::DeadLetter { queue, entry, message, entries } => {
                self.forget(queue, entry, pages);
                if !is_spent {
                    self.enter(lsn, &message, &entries, arrived, pages);
                }
            }
            Record::Settle { queue, entry } => self.forget(queue, entry, pages),
            Record::Requeue { queue, entry, acquired_count, delivery_count, ready_at } => {
                if let Some(entry) = self.take(queue, entry, pages) {
                    let entry = Entry { acquired_count, delivery_count, ..entry };
                    self.give_back(queue, entry, ready_at);
                }
            }
            Record::Pend { queue, entry, reason } => {
                if let Some(entry) = self.take(queue, entry, pages)
                    && let Some(queue) = self.queue(queue)
                {
                    queue.dead_letters.pending.push(entry, reason);
                }
            }
            Record::Delivered { queue, up_to } => {
                if let Some(queue) = self.queue(queue) {
                    queue.delivery.restore_note(up_to);
                }
            }
            Record::Purge { queue, kept } => self.purge(queue, &kept, pages, ended),
            Record::DeclareQueue(queue) => self.declare_queue(lsn, queue)?,
            Record::DeleteQueue { queue } => self.delete_queue(queue, pages, ended),
            Record::SetPolicy { kind, policy } => {
                let name = Arc::clone(&policy.name);
                self.vhost.policies.set(kind, (*policy).clone());
                self.vhost.policy_lsns.insert((kind, name), lsn);
            }
            Record::ClearPolicy { kind, name } => {
                self.vhost.policies.clear(kind, &name);
                self.vhost.policy_lsns.remove(&(kind, name));
            }
            Record::DeclareExchange(exchange) => self.declare_exchange(lsn, exchange)?,
            Record::DeleteExchange { name } => self.delete_exchange(&name),
            Record::Bind(binding) => self.bind(lsn, binding),
            Record::Unbind(binding) => self.unbind(&binding),
        }
        Ok(())
    }

    fn queue(&mut self, number: QueueNumber) -> Option<&mut Queue> {
        self.vhost.queues.get_mut(*self.queues.get(&number)?).map(Box::as_mut)
    }

    fn enter(
        &mut self,
        lsn: Lsn,
        message: &Message,
        entries: &Entries,
        arrived: Time,
        pages: &mut dyn Pages,
    ) {
        for (number, entry) in entries {
            let id = match self.queues.get(number).copied() {
                Some(id) => id,
                // It was deleted later and its declaration is not kept any more, or that is lost.
                None => {
                    let id = self.undeclared.make(&mut self.vhost, *number);
                    self.queues.insert(*number, id);
                    id
                }
            };
            let kept = self.undeclared.enter(*number, message, entries.len() == 1);
            let message = kept.unwrap_or_else(|| message.clone());
            let Some(queue) = self.vhost.queues.get_mut(id) else { continue };
            queue.push(*entry, message, lsn, arrived);
            for (page, messages) in self.vhost.cut_pages(id, entry.level) {
                pages.write(page, messages);
            }
        }
    }

    fn forget(&mut self, queue: QueueNumber, entry: EntryId, pages: &mut dyn Pages) {
        if let Some(queue) = self.queue(queue) {
            queue.forget(entry, pages);
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
        let Some(queue) = self.queue(number) else {
            return;
        };
        let mut entries = Vec::new();
        for id in kept {
            entries.extend(queue.take(*id, pages));
        }
        queue.end_all(pages, ended);
        for entry in entries {
            queue.give_back(entry);
        }
    }

    fn declare_queue(&mut self, lsn: Lsn, record: QueueRecord) -> Result<(), ReplayProblem> {
        let QueueRecord { queue: number, name, auto_delete, arguments, declared_by } = record;
        let vhost = &mut self.vhost;
        if let Some(id) = self.undeclared.remove(number) {
            // It was recovered by an earlier start.
            if let Some(queue) = vhost.queues.get_mut(id) {
                queue.name = Arc::clone(&name);
                queue.registration.lsn = lsn;
                queue.ownership.declared_by = declared_by;
            }
            vhost.queue_names.insert(name, id);
            return Ok(());
        }
        let resource = Resource { kind: ResourceKind::Queue, name: &name, vhost: &vhost.name };
        let arguments = QueueArguments::parse(arguments.as_ref(), resource)
            .map_err(|refusal| format!("queue '{name}': {}", refusal.explanation))?;
        let arguments = vhost.shared_arguments(arguments);
        let declaration = QueueDeclaration {
            name: Arc::clone(&name),
            durable: true,
            auto_delete,
            exclusive_owner: None,
            arguments,
            declared_by,
        };
        vhost.last_queue_number = vhost.last_queue_number.max(number.0);
        let defaults = vhost.options.queue_defaults;
        let policies = InForce::default();
        let paging = vhost.paging();
        let mut queue = Queue::new(declaration, number, policies, defaults, paging, vhost.now.time);
        queue.registration.lsn = lsn;
        queue.count_memory(&vhost.topology_memory);
        let id = vhost.queues.insert(Box::new(queue));
        vhost.queue_names.insert(name, id);
        self.queues.insert(number, id);
        Ok(())
    }

    fn delete_queue(
        &mut self,
        number: QueueNumber,
        pages: &mut dyn Pages,
        ended: &mut dyn FnMut(Lsn),
    ) {
        let Some(id) = self.queues.remove(&number) else {
            return;
        };
        let had_name = self.undeclared.remove(number).is_none();
        if let Some(mut queue) = self.vhost.queues.remove(id) {
            queue.end_all(pages, ended);
            if had_name {
                self.vhost.queue_names.remove(&*queue.name);
            }
        }
    }

    fn declare_exchange(&mut self, lsn: Lsn, record: ExchangeRecord) -> Result<(), ReplayProblem> {
        let declaration = ExchangeDeclaration {
            name: record.name,
            kind: record.kind,
            durable: true,
            auto_delete: record.auto_delete,
            internal: record.internal,
            alternate: alternate(&record.arguments),
            arguments: record.arguments,
            declared_by: record.declared_by,
        };
        let vhost = &mut self.vhost;
        let name = Arc::clone(&declaration.name);
        let mut exchange = Exchange::new(declaration, vhost.seed, &vhost.topology_memory)
            .map_err(|refusal| format!("exchange '{name}': {}", refusal.explanation))?;
        exchange.lsn = lsn;
        let id = vhost.exchanges.insert(exchange);
        vhost.exchange_names.insert(name, id);
        Ok(())
    }

    fn delete_exchange(&mut self, name: &Name) {
        if let Some(id) = self.vhost.exchange_names.remove(&**name) {
            self.vhost.exchanges.remove(id);
        }
    }

    fn bind(&mut self, lsn: Lsn, record: BindingRecord) {
        match self.binding(&record) {
            Some((source, binding)) => {
                // One that had lost an end may have been made again behind it.
                if self.vhost.add_binding(source, &binding) {
                    self.vhost.durable_bindings.insert((source, binding), lsn);
                }
            }
            None => self.unbound.push((lsn, record)),
        }
    }

    fn unbind(&mut self, record: &BindingRecord) {
        if let Some((source, binding)) = self.binding(record) {
            self.vhost.take_binding(source, &binding);
            self.vhost.durable_bindings.remove(&(source, binding));
        } else {
            // An end of it was deleted later, and its declaration is not kept any more.
            self.unbound.retain(|(_, unbound)| unbound != record);
        }
    }

    fn binding(&self, record: &BindingRecord) -> Option<(ExchangeId, Binding)> {
        let vhost = &self.vhost;
        let source = *vhost.exchange_names.get(&*record.source)?;
        let destination = if record.to_queue {
            Destination::Queue(*vhost.queue_names.get(&*record.destination)?)
        } else {
            Destination::Exchange(*vhost.exchange_names.get(&*record.destination)?)
        };
        let arguments = BindingArguments::new(record.arguments.as_ref());
        let routing_key = Arc::clone(&record.routing_key);
        Some((source, Binding { destination, routing_key, arguments }))
    }

    /// Records are missing, or may be: a delivery does not wait for the log, so that a crash can come
    /// between them. Who waits may have been handed out, and even acknowledged, in one of them. That is
    /// in the log with the first batch of the vhost's new life, for the case that it ends well.
    pub fn records_lost(&mut self) {
        for (id, queue) in &mut self.vhost.queues {
            if queue.deliveries_forgotten() {
                self.vhost.delivered.push(id);
            }
        }
    }

    /// The log has been read: queues whose declaration is lost come back with their messages.
    pub fn recover(&mut self) -> Recovered {
        let unbound = std::mem::take(&mut self.unbound);
        let to_queues = unbound.iter().filter(|(_, record)| {
            record.to_queue && self.vhost.queue_names.get(&*record.destination).is_none()
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

    /// The log has been read up to `last`: the vhost lives on from `now`.
    pub fn finish(mut self, now: Now, last: Lsn, pages: &mut dyn Pages) -> Vhost {
        self.recover();
        let mut vhost = self.vhost;
        vhost.now = now;
        vhost.last_lsn = vhost.last_lsn.max(last);
        vhost.durable_lsn = vhost.last_lsn;
        for recovered in &self.recovered {
            let lsn = vhost.declare_recovered(recovered);
            if let Some(id) = vhost.queue_names.get(&*recovered.name).copied()
                && let Some(queue) = vhost.queues.get_mut(id)
            {
                queue.registration.lsn = lsn;
            }
        }
        let ids: Vec<QueueId> = vhost.queues.keys().collect();
        for id in &ids {
            if let Some(queue) = vhost.queues.get_mut(*id) {
                queue.came_back(now.time, pages);
                if !queue.dead_letters.pending.is_empty() {
                    vhost.pending_sources.insert(*id);
                }
            }
        }
        // What is overdue has its turn when the vhost lives.
        vhost.resolve_all_policies();
        ids.into_iter().for_each(|id| vhost.arm_queue(id));
        vhost
    }
}

/// The alternate exchange that the arguments name.
fn alternate(arguments: &Table) -> Option<Name> {
    match arguments.get("alternate-exchange") {
        Some(Value::LongStr(name)) => Some(String::from_utf8_lossy(name).into()),
        _ => None,
    }
}
