//! The metadata of a node, and the changes that operators wait for: what the server has behind the lock of the metadata.

use replica::HandOverTask;
use replica::metadata::{Items, LocalMetadata, PendingChange};
use storage::{Lsn, WriteBatch, Written};

use crate::checks::metadata_log::state_of;
use crate::cluster::content::skipping::Skipping;
use crate::faults::sabotage::Sabotage;

/// The metadata of a node.
#[derive(Debug)]
pub(crate) struct ServedMetadata {
    pub(crate) local: LocalMetadata,
    pub(crate) skipping: Skipping,
    /// The changes that operators wait for.
    pub(crate) pending: Vec<(u64, PendingChange)>,
    /// Refused changes, which a sabotage keeps.
    pub(crate) kept: Vec<u64>,
    /// True while another node is to lead, as the replica says.
    pub(crate) is_halted: bool,
    /// True once the replicator must take records.
    pub(crate) wakes: bool,
    /// The last position that was shown as committed, and whether the node was the newest leader.
    pub(crate) shown: Option<(Lsn, bool)>,
    pub(crate) entry_bytes_max: usize,
    pub(crate) sabotage: Option<Sabotage>,
}

impl ServedMetadata {
    pub(crate) fn new(
        skipping: Skipping,
        entry_bytes_max: usize,
        sabotage: Option<Sabotage>,
    ) -> Self {
        Self {
            local: LocalMetadata::new(Items::default(), Lsn(0), entry_bytes_max),
            skipping,
            pending: Vec::new(),
            kept: Vec::new(),
            is_halted: false,
            wakes: false,
            shown: None,
            entry_bytes_max,
            sabotage,
        }
    }

    /// Goes on with what the log of the node has.
    pub(crate) fn reopen(&mut self, items: Option<Items>, last: Lsn) {
        let items = match self.sabotage {
            Some(Sabotage::ItemsNotRestored) => Some(Items::default()),
            Some(Sabotage::DamagedItemsShown) => items.or_else(|| Some(Items::default())),
            _ => items,
        };
        self.local.reopen(items, last);
        (self.is_halted, self.shown) = (false, None);
    }

    /// A number that depends on the items.
    pub(crate) fn state(&self) -> u64 {
        state_of(self.local.committed().expect("a node that follows has only what is committed"))
    }

    pub(crate) fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        self.local.take_batch(batch)
    }

    pub(crate) fn hand_over(&mut self, task: HandOverTask) {
        match task {
            HandOverTask::Halt => self.is_halted = true,
            HandOverTask::KeepLeading => {}
            HandOverTask::Resume => self.is_halted = false,
        }
        if self.sabotage != Some(Sabotage::ChangedWhileHandingOver) {
            self.local.hand_over(task);
        }
    }

    pub(crate) fn promote(&mut self, last: Lsn) {
        self.local.promote(last);
        if self.sabotage == Some(Sabotage::FirstDigestLost) {
            self.local.take_batch(&mut WriteBatch::default());
            self.tell_all_durable();
        }
        self.wakes |= self.local.wakes_writer();
    }

    pub(crate) fn log_digest(&mut self) {
        self.local.log_digest();
        self.wakes |= self.local.wakes_writer();
    }

    /// Says that a majority has everything, as sabotages do.
    pub(crate) fn tell_all_durable(&mut self) {
        self.local.batch_durable(Written { durable: self.local.last(), bytes: 0, records: 0 });
    }

    /// The last position up to which the items are shown as committed ones; none while changes wait.
    pub(crate) fn last_shown(&self) -> Option<u64> {
        self.local.committed().map(|_| self.local.last().0)
    }

    /// An operator does not wait any more.
    pub(crate) fn give_up(&mut self, id: u64) {
        self.pending.retain(|(pending, _)| *pending != id);
    }
}
