//! The check that nothing durable changes without a record: the sums that records give are those of the state itself.

use std::borrow::Cow;
use std::sync::Arc;

use crate::exchange::Destination;
use crate::ids::Lsn;
use crate::policy::PolicyKind;
use crate::record::{QueueDigest, Record, definition_hash};
use crate::vhost::Vhost;
use crate::vhost::commands::bindings;
use crate::vhost::state::durable_sums::DurableSums;

impl Vhost {
    /// The sums of all durable queues and delayed exchanges, by number, as the records of a replicated vhost give them;
    /// for tests.
    pub fn queue_digests(&self) -> Vec<QueueDigest> {
        let Some(sums) = self.all_sums() else { return Vec::new() };
        let queues = self.topology.queues().filter(|(_, queue)| queue.ownership.durable);
        let queues = queues.map(|(_, queue)| queue.number);
        let exchanges = self.topology.exchanges().filter(|(_, exchange)| exchange.durable);
        let stores = exchanges.filter_map(|(_, exchange)| Some(exchange.held.as_ref()?.number));
        let mut digests: Vec<_> =
            queues.chain(stores).filter_map(|number| sums.digest_of(number)).collect();
        digests.sort_unstable_by_key(|digest| digest.queue);
        digests
    }

    /// The sums with the records that the shell has not taken yet.
    fn all_sums(&self) -> Option<Cow<'_, DurableSums>> {
        let mut sums = Cow::Borrowed(&**self.sums.as_ref()?);
        self.effects.unsummed().for_each(|(lsn, record)| sums.to_mut().add(lsn, record));
        Some(sums)
    }

    /// In a replicated vhost, every durable change has a record.
    pub(super) fn check_sums(&self, broken: &mut Vec<String>) {
        let Some(sums) = self.all_sums() else { return };
        let totals = sums.totals();
        if totals.definitions != self.definition_sum() {
            broken.push("a definition has changed without a record".to_owned());
        }
        let mut queues = 0;
        let entries = self.durable_entries();
        let paged = self.topology.queues().filter(|(_, queue)| queue.paged_out().0 > 0);
        let held = self.topology.exchanges().filter_map(|(_, exchange)| exchange.held.as_ref());
        let held = held.filter(|held| held.schedules().paged_out().0 > 0).map(|held| held.number);
        let paged: Vec<_> = paged.map(|(_, queue)| queue.number).chain(held).collect();
        for (number, entries) in &entries {
            queues += 1;
            let seq_sum = entries.iter().fold(0, |sum: u64, entry| sum.wrapping_add(entry.seq));
            let found = (entries.len() as u64, seq_sum);
            let told = sums.digest_of(*number).map(|sums| (sums.messages, sums.seq_sum));
            // Of messages in pages the numbers are not known here.
            let is_known = !paged.contains(number);
            if told.is_none() || is_known && told != Some(found) {
                broken.push(format!("queue {number} has {found:?}, its records give {told:?}"));
            }
        }
        if queues != totals.queue_count {
            let counted = totals.queue_count;
            broken.push(format!("there are {queues} durable queues, their records give {counted}"));
        }
        for (_, queue) in self.topology.queues().filter(|(_, queue)| queue.ownership.durable) {
            let declared = sums.digest_of(queue.number).map(|sums| sums.declared);
            if declared != Some(queue.registration.lsn) {
                broken.push(format!("queue {} was declared at {declared:?}", queue.name));
            }
        }
    }

    /// The sum of the hashes of all durable definitions, of the state itself.
    fn definition_sum(&self) -> u64 {
        let queues = self.topology.queues().filter(|(_, queue)| queue.registration.lsn != Lsn(0));
        let queues = queues.map(|(_, queue)| Record::DeclareQueue(queue.record()));
        let exchanges = self.topology.exchanges().filter(|(_, exchange)| exchange.lsn != Lsn(0));
        let exchanges = exchanges.map(|(_, exchange)| Record::DeclareExchange(exchange.record()));
        let bindings = self.topology.durable_bindings().map(|(source, binding)| {
            let destination = match binding.destination {
                Destination::Queue(id) => &self.topology.known_queue(id).name,
                Destination::Exchange(id) => &self.topology.known_exchange(id).name,
            };
            let source = &self.topology.known_exchange(*source).name;
            Record::Bind(bindings::record(source, destination, binding))
        });
        let policies = [PolicyKind::User, PolicyKind::Operator].into_iter().flat_map(|kind| {
            let of_kind = self.policies.policies().iter(kind);
            of_kind.map(move |policy| Record::SetPolicy { kind, policy: policy.clone() })
        });
        let redrives = self.redrives.iter().map(|(id, job)| {
            let job = Arc::clone(job);
            Record::SetRedrive { id, job }
        });
        let definitions = queues.chain(exchanges).chain(bindings).chain(policies).chain(redrives);
        definitions.fold(0, |sum: u64, record| sum.wrapping_add(definition_hash(&record)))
    }
}
