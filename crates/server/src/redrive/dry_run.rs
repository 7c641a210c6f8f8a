//! Dry runs of redrives: the result of a job, without moving messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::access::Access;
use broker::redrive::{Redrive, Redriven};
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, MessageState, Name};

use super::job::{Source, states};
use crate::limits::{
    BROWSED_PER_LOCK, REDRIVE_DRY_RUN_MAX, REDRIVE_SAMPLE_MAX, REDRIVE_TARGETS_MAX,
    REDRIVEN_PER_LOCK,
};
use crate::requests::{RedriveDryRun, RedriveError, RedriveRequest};
use crate::vhost::{BrowseProblem, VhostHandle};

/// Computes what a request would move, within the limits of an interactive answer.
pub(crate) async fn dry_run(
    handle: &Arc<VhostHandle>,
    queue: &str,
    request: RedriveRequest,
    access: &Access,
) -> Result<RedriveDryRun, RedriveError> {
    let source = Source::find(handle, queue, &request, access)?;
    let told = RedriveDryRun {
        number: source.number,
        now: handle.read_fair(|_, now| now),
        messages_total: source.messages,
        unacked_left: source.unacked(handle),
        scanned: 0,
        not_examined: 0,
        matched: 0,
        would_move: 0,
        unroutable: 0,
        no_origin: 0,
        targets: Vec::new(),
        sample: Vec::new(),
        is_complete: true,
    };
    let mut trial = Trial { told, targets: BTreeMap::new(), source, request: &request, access };
    for state in states(request.is_of_kept).iter().copied() {
        let mut next = Some(BrowseCursor::start(state));
        while let Some(from) = next.filter(|_| trial.goes_on()) {
            let batch = handle.browse(source.id, from, BROWSED_PER_LOCK).await;
            let mut batch = batch.map_err(|problem| match problem {
                BrowseProblem::NoQueue => RedriveError::NoSuchQueue,
                BrowseProblem::Disk(problem) => RedriveError::Disk(problem),
            })?;
            next = batch.next;
            batch.messages.retain(|browsed| source.had(browsed));
            for slice in batch.messages.chunks(REDRIVEN_PER_LOCK) {
                trial.look(handle, (state, slice), batch.now)?;
                tokio::task::yield_now().await;
            }
        }
        trial.told.is_complete &= next.is_none() || trial.has_enough();
    }
    let is_cut = trial.has_enough() || !trial.told.is_complete;
    let Trial { mut told, targets, .. } = trial;
    told.messages_total = told.messages_total.max(told.scanned);
    told.not_examined = if is_cut { told.messages_total - told.scanned } else { 0 };
    told.targets = targets.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    Ok(told)
}

/// The result so far.
struct Trial<'a> {
    told: RedriveDryRun,
    targets: BTreeMap<Name, u64>,
    source: Source,
    request: &'a RedriveRequest,
    access: &'a Access,
}

impl Trial<'_> {
    fn has_enough(&self) -> bool {
        self.request.limit.is_some_and(|limit| self.told.would_move >= limit)
    }

    fn goes_on(&self) -> bool {
        !self.has_enough() && self.told.scanned < REDRIVE_DRY_RUN_MAX
    }

    fn look(
        &mut self,
        handle: &VhostHandle,
        (state, messages): (MessageState, &[BrowsedMessage]),
        now: Now,
    ) -> Result<(), RedriveError> {
        let redrive = Redrive {
            queue: self.source.id,
            to: &self.request.to,
            access: self.access,
            is_of_kept: self.request.is_of_kept,
        };
        handle.measure(|vhost, _| {
            for browsed in messages {
                if self.has_enough() {
                    return Ok(());
                }
                self.told.scanned += 1;
                if !self.request.selection.selects(self.source.number, browsed, now) {
                    continue;
                }
                let targets = vhost.redrive_targets(now, redrive, &browsed.entry);
                self.note(targets)?;
                if self.told.sample.len() < REDRIVE_SAMPLE_MAX {
                    self.told.sample.push((state, browsed.clone()));
                }
            }
            Ok(())
        })
    }

    fn note(&mut self, targets: Result<Vec<Name>, Redriven>) -> Result<(), RedriveError> {
        match targets {
            Err(Redriven::Refused(refusal)) => return Err(RedriveError::Refused(refusal)),
            Err(Redriven::NoOrigin) => self.told.no_origin += 1,
            Err(_) => self.told.unroutable += 1,
            Ok(targets) => {
                self.told.would_move += 1;
                for name in targets {
                    if self.targets.len() < REDRIVE_TARGETS_MAX || self.targets.contains_key(&name)
                    {
                        *self.targets.entry(name).or_default() += 1;
                    }
                }
            }
        }
        self.told.matched += 1;
        Ok(())
    }
}
