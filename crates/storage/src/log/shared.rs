//! The state that the writer of a log shares with background work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::Lsn;
use crate::liveness::Liveness;
use crate::manifest::Manifest;
use crate::replicated::{EntryIndex, EntryState, Term};

/// State that the writer shares with compactions.
#[derive(Debug)]
pub(crate) struct Shared<F> {
    pub(crate) manifest: Manifest,
    pub(crate) liveness: Liveness,
    /// All records up to here are written, and with [`Durability::Fsync`] durable.
    pub(crate) written: Lsn,
    /// Number of compactions that have dropped records, plus one.
    pub(crate) dropping_compactions: u64,
    /// File of the active segment.
    pub(crate) active: Arc<F>,
    /// Number of snapshots, which need the files that they list.
    pub(crate) snapshots: usize,
    /// Files that compactions have replaced, to be removed with the last snapshot.
    pub(crate) replaced: Vec<String>,
    /// The entries of a replicated log.
    pub(crate) entries: Option<EntryState>,
}

impl<F> Shared<F> {
    /// Position of the last record whose effects are in the liveness.
    pub(crate) fn considered(&self) -> Lsn {
        self.entries.as_ref().map_or(self.written, |entries| entries.applied_position)
    }

    /// The last entry and its term.
    pub(crate) fn last_entry(&self) -> (EntryIndex, Term) {
        let none = (EntryIndex(0), Term(0));
        self.entries.as_ref().map_or(none, |entries| entries.map.last_with_term())
    }

    /// The entries of a replicated log.
    ///
    /// # Panics
    /// If the log is not replicated.
    pub(crate) fn entries_mut(&mut self) -> &mut EntryState {
        self.entries.as_mut().expect("a replicated log has entries")
    }

    /// The entries of a replicated log; panics as [`Shared::entries_mut`].
    pub(crate) fn entries(&self) -> &EntryState {
        self.entries.as_ref().expect("a replicated log has entries")
    }
}

pub(crate) fn lock<F>(shared: &Mutex<Shared<F>>) -> MutexGuard<'_, Shared<F>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
