//! Sums over the durable state of a replicated vhost: what its digests tell.
//!
//! A leader adds up what its records say, a replica what the records did to its own state, so that a record that one of
//! them has missed or misread makes a difference. Each record costs two additions.

use std::collections::BTreeMap;

use crate::collections::Lookup;
use crate::ids::{Lsn, Name, QueueNumber, RedriveId};
use crate::limits::QUEUES_PER_DIGEST_MAX;
use crate::policy::PolicyKind;
use crate::record::{Digest, QueueDigest, Record, definition_hash};

/// Sums over the durable state of a vhost.
#[derive(Clone, Debug)]
pub(crate) struct DurableSums {
    queues: Lookup<QueueNumber, QueueSums>,
    /// Number of durable queues and delayed exchanges.
    queue_count: u64,
    messages: u64,
    /// Sum of all entry numbers, modulo 2^64.
    seq_sum: u64,
    /// Sum of the hashes of all definitions, modulo 2^64.
    definitions: u64,
    /// Hash of each durable exchange, and the number of its messages if it is a delayed one.
    exchanges: BTreeMap<Name, (u64, Option<QueueNumber>)>,
    /// Hash of each policy.
    policies: BTreeMap<(PolicyKind, Name), u64>,
    /// Hash of each redrive job.
    redrives: BTreeMap<RedriveId, u64>,
    /// Queues that have changed since the last digest, perhaps deleted ones.
    changed: Vec<QueueNumber>,
}

/// Sums over one durable queue or delayed exchange.
#[derive(Clone, Copy, Default, Debug)]
struct QueueSums {
    declared: Lsn,
    /// Hash of the declaration; 0 for a delayed exchange.
    definition: u64,
    messages: u64,
    seq_sum: u64,
    /// True if the queue is in `changed`.
    is_changed: bool,
}

/// A difference between a digest and the sums of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SumsDiffer {
    /// The queue with the difference; none if it is not known.
    pub(crate) queue: Option<QueueNumber>,
    /// The difference, as a clause.
    pub(crate) difference: String,
}

impl DurableSums {
    /// The sums of an empty vhost.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            queues: Lookup::new(seed),
            queue_count: 0,
            messages: 0,
            seq_sum: 0,
            definitions: 0,
            exchanges: BTreeMap::new(),
            policies: BTreeMap::new(),
            redrives: BTreeMap::new(),
            changed: Vec::new(),
        }
    }

    /// Adds a record that a leader writes.
    pub(crate) fn add(&mut self, lsn: Lsn, record: &Record) {
        match record {
            Record::Publish { entries, .. } | Record::Schedule { entries, .. } => {
                entries.iter().for_each(|(queue, entry)| self.entered(*queue, entry.seq));
            }
            Record::DeadLetter { queue, entry, entries, .. } => {
                self.left(*queue, entry.seq);
                entries.iter().for_each(|(queue, entry)| self.entered(*queue, entry.seq));
            }
            Record::Ready { queue, entry, to } => {
                self.left(*queue, entry.seq);
                self.entered(*queue, to.seq);
            }
            Record::Settle { queue, entry } => self.left(*queue, entry.seq),
            Record::Purge { queue, kept } => {
                self.purged(*queue);
                kept.iter().for_each(|entry| self.entered(*queue, entry.seq));
            }
            Record::DeclareQueue(declared) => {
                self.declared(declared.queue, lsn, definition_hash(record));
            }
            Record::DeleteQueue { queue } => self.deleted(*queue),
            Record::DeclareExchange(declared) => {
                let hash = definition_hash(record);
                self.exchange_declared(&declared.name, declared.store, lsn, hash);
            }
            Record::DeleteExchange { name } => self.exchange_deleted(name),
            Record::Bind(_) => self.bound(definition_hash(record)),
            Record::Unbind(_) => self.unbound(definition_hash(record)),
            Record::SetPolicy { kind, policy } => {
                self.policy_set(*kind, &policy.name, definition_hash(record));
            }
            Record::ClearPolicy { kind, name } => self.policy_cleared(*kind, name),
            Record::SetRedrive { id, .. } => self.redrive_set(*id, definition_hash(record)),
            Record::ClearRedrive { id } => self.redrive_cleared(*id),
            Record::Reschedule { .. }
            | Record::Requeue { .. }
            | Record::Annotate { .. }
            | Record::Pend { .. }
            | Record::Delivered { .. }
            | Record::Digest(_)
            | Record::HandOver { .. } => {}
        }
    }

    // ---- messages ----

    /// A message entered a queue under this number.
    pub(crate) fn entered(&mut self, queue: QueueNumber, seq: u64) {
        self.change(queue, 1, seq);
    }

    /// A message left a queue.
    pub(crate) fn left(&mut self, queue: QueueNumber, seq: u64) {
        self.change(queue, 1_u64.wrapping_neg(), seq.wrapping_neg());
    }

    /// All messages left a queue.
    pub(crate) fn purged(&mut self, queue: QueueNumber) {
        if let Some(QueueSums { messages, seq_sum, .. }) = self.queues.get(&queue).copied() {
            self.change(queue, messages.wrapping_neg(), seq_sum.wrapping_neg());
        }
    }

    /// Adds to the sums, modulo 2^64: a wrong sum of a leader must be found by its replicas, not end the leader.
    fn change(&mut self, queue: QueueNumber, messages: u64, seq_sum: u64) {
        self.messages = self.messages.wrapping_add(messages);
        self.seq_sum = self.seq_sum.wrapping_add(seq_sum);
        let sums = self.changing(queue);
        sums.messages = sums.messages.wrapping_add(messages);
        sums.seq_sum = sums.seq_sum.wrapping_add(seq_sum);
    }

    /// The sums of a queue that changes.
    fn changing(&mut self, queue: QueueNumber) -> &mut QueueSums {
        let queue_count = &mut self.queue_count;
        let sums = self.queues.or_insert_with(queue, || {
            *queue_count += 1;
            QueueSums::default()
        });
        if !sums.is_changed {
            sums.is_changed = true;
            self.changed.push(queue);
        }
        sums
    }

    // ---- definitions ----

    /// A queue was declared.
    pub(crate) fn declared(&mut self, queue: QueueNumber, lsn: Lsn, hash: u64) {
        let sums = self.changing(queue);
        let before = std::mem::replace(&mut sums.definition, hash);
        sums.declared = lsn;
        self.definitions = self.definitions.wrapping_sub(before).wrapping_add(hash);
    }

    /// A queue was deleted with its messages.
    pub(crate) fn deleted(&mut self, queue: QueueNumber) {
        self.purged(queue);
        if let Some(sums) = self.queues.remove(&queue) {
            self.queue_count -= 1;
            self.definitions = self.definitions.wrapping_sub(sums.definition);
        }
    }

    /// An exchange was declared; `store` is the number of its messages if it is a delayed one.
    pub(crate) fn exchange_declared(
        &mut self,
        name: &Name,
        store: Option<QueueNumber>,
        lsn: Lsn,
        hash: u64,
    ) {
        self.definitions = self.definitions.wrapping_add(hash);
        self.exchanges.insert(Name::clone(name), (hash, store));
        if let Some(store) = store {
            self.declared(store, lsn, 0);
        }
    }

    /// An exchange was deleted.
    pub(crate) fn exchange_deleted(&mut self, name: &Name) {
        if let Some((hash, store)) = self.exchanges.remove(name) {
            self.definitions = self.definitions.wrapping_sub(hash);
            store.into_iter().for_each(|store| self.deleted(store));
        }
    }

    /// A binding was made, with this hash.
    pub(crate) fn bound(&mut self, hash: u64) {
        self.definitions = self.definitions.wrapping_add(hash);
    }

    /// A binding was ended, with this hash.
    pub(crate) fn unbound(&mut self, hash: u64) {
        self.definitions = self.definitions.wrapping_sub(hash);
    }

    /// A policy was set.
    pub(crate) fn policy_set(&mut self, kind: PolicyKind, name: &Name, hash: u64) {
        let before = self.policies.insert((kind, Name::clone(name)), hash).unwrap_or_default();
        self.definitions = self.definitions.wrapping_sub(before).wrapping_add(hash);
    }

    /// A policy was cleared.
    pub(crate) fn policy_cleared(&mut self, kind: PolicyKind, name: &Name) {
        let before = self.policies.remove(&(kind, Name::clone(name))).unwrap_or_default();
        self.definitions = self.definitions.wrapping_sub(before);
    }

    /// A redrive job was set.
    pub(crate) fn redrive_set(&mut self, id: RedriveId, hash: u64) {
        let before = self.redrives.insert(id, hash).unwrap_or_default();
        self.definitions = self.definitions.wrapping_sub(before).wrapping_add(hash);
    }

    /// A redrive job was cleared.
    pub(crate) fn redrive_cleared(&mut self, id: RedriveId) {
        let before = self.redrives.remove(&id).unwrap_or_default();
        self.definitions = self.definitions.wrapping_sub(before);
    }

    // ---- digests ----

    /// Lists a queue in the next digest, as if it had changed.
    pub(crate) fn list(&mut self, queue: QueueNumber) {
        self.changing(queue);
    }

    /// Begins the time until the next digest: nothing has changed in it.
    pub(crate) fn begin_digest(&mut self) {
        for queue in std::mem::take(&mut self.changed) {
            if let Some(sums) = self.queues.get_mut(&queue) {
                sums.is_changed = false;
            }
        }
    }

    /// The digest of this moment, in parts of up to [`QUEUES_PER_DIGEST_MAX`] queues.
    pub(crate) fn digests(&mut self) -> Vec<Digest> {
        let changed = self.changed.iter();
        let listed: Vec<QueueDigest> = changed.filter_map(|queue| self.digest_of(*queue)).collect();
        self.begin_digest();
        let mut parts: Vec<&[QueueDigest]> = listed.chunks(QUEUES_PER_DIGEST_MAX).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        let digest = |(at, queues): (usize, &[QueueDigest])| Digest {
            definitions: self.definitions,
            queue_count: self.queue_count,
            messages: self.messages,
            seq_sum: self.seq_sum,
            has_more: at < last,
            queues: queues.to_vec(),
        };
        parts.into_iter().enumerate().map(digest).collect()
    }

    /// The sums of one queue; none if there is no such queue.
    pub(crate) fn digest_of(&self, queue: QueueNumber) -> Option<QueueDigest> {
        let QueueSums { declared, messages, seq_sum, .. } = *self.queues.get(&queue)?;
        Some(QueueDigest { queue, declared, messages, seq_sum })
    }

    /// Sums over everything, as a digest without queues.
    pub(crate) fn totals(&self) -> Digest {
        let Self { definitions, queue_count, messages, seq_sum, .. } = *self;
        Digest { definitions, queue_count, messages, seq_sum, has_more: false, queues: Vec::new() }
    }

    /// Compares the digest of a leader with the sums here, at the same position.
    ///
    /// # Errors
    /// The first difference. A queue is named if a message has entered or left it, here or at the leader, since the last
    /// digest.
    pub(crate) fn compare(&mut self, digest: &Digest) -> Result<(), SumsDiffer> {
        for told in &digest.queues {
            let differs = |difference| SumsDiffer { queue: Some(told.queue), difference };
            let Some(here) = self.digest_of(told.queue) else {
                return Err(differs(
                    "the leader has the queue, and this replica does not".to_owned(),
                ));
            };
            if here != *told {
                return Err(differs(difference(told, &here)));
            }
            if let Some(sums) = self.queues.get_mut(&told.queue) {
                sums.is_changed = false;
            }
        }
        if digest.has_more {
            return Ok(());
        }
        for queue in std::mem::take(&mut self.changed) {
            if let Some(sums) = self.queues.get_mut(&queue)
                && std::mem::take(&mut sums.is_changed)
            {
                let difference = "it changed here and not at the leader".to_owned();
                return Err(SumsDiffer { queue: Some(queue), difference });
            }
        }
        let here = self.totals();
        let told = Digest { queues: Vec::new(), ..digest.clone() };
        if here != told {
            let difference = match here.definitions == told.definitions {
                true => format!(
                    "in all queues, the leader has {}, and this replica {}",
                    sums(&told),
                    sums(&here)
                ),
                false => "queues, exchanges, bindings, policies or redrives differ".to_owned(),
            };
            return Err(SumsDiffer { queue: None, difference });
        }
        Ok(())
    }
}

fn difference(leader: &QueueDigest, here: &QueueDigest) -> String {
    let told = |digest: &QueueDigest| {
        let QueueDigest { declared, messages, seq_sum, .. } = digest;
        format!("{messages} messages with sum {seq_sum}, declared at {declared}")
    };
    format!("the leader has {}, and this replica {}", told(leader), told(here))
}

fn sums(digest: &Digest) -> String {
    let Digest { queue_count, messages, seq_sum, .. } = digest;
    format!("{messages} messages with sum {seq_sum} in {queue_count} queues")
}
