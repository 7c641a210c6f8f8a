//! Refusals and problems of links: counts for metrics, reasons for the page, and lines of the log, of which not too many.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::registry::Links;
use crate::cluster::refusal::{Refusal, RefusalCode};
use crate::cluster::remote_end::RemoteEnd;

impl Links {
    /// Number of refused links by code.
    pub(crate) fn refused(&self) -> Vec<(RefusalCode, u64)> {
        let counts = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        RefusalCode::ALL.into_iter().zip(counts).collect()
    }

    /// Counts and logs a refused link.
    pub(crate) fn note_refusal(&self, with: RemoteEnd<'_>, refusal: &Refusal) {
        self.refused[refusal.code().index()].fetch_add(1, Ordering::Relaxed);
        self.note_problem(with, &refusal.to_string());
    }

    /// Notes the reason why there is no link, and logs it when it is new, and again from time to time.
    pub(crate) fn note_problem(&self, with: RemoteEnd<'_>, reason: &str) {
        if let RemoteEnd::Node(name) = with
            && let Some(peer) = self.peers().iter().find(|peer| peer.node.name == name)
        {
            peer.state.lock().note_problem(reason);
        }
        let with = with.to_string();
        if self.problems.lock().is_due(&with, reason, Instant::now()) {
            tracing::warn!("no link with {with}: {reason}");
        }
    }
}
