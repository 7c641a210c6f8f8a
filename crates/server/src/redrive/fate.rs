//! The fate of a job whose task has stopped: it ends, or goes on here, in the next process, or at the next leader.

use broker::refusal::Refusal;
use tokio::time::timeout;

use super::job::Job;
use crate::limits::{REDRIVE_RETRY_INTERVAL, REDRIVE_TRIES_MAX};
use crate::requests::RedriveState;
use crate::vhost::{BrowseProblem, NotLeading};

/// The reason why a job stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The limit is reached, the job was cancelled, or the node stops.
    Enough,
    /// The end of the job: its queue is not there any more, or its user must not go on. No node can.
    Failed(String),
    /// A hindrance of this node: its disk refuses, or it lacks what other nodes have.
    Hindered(String),
    /// Another node leads the vhost, or is about to.
    Moved,
}

impl From<BrowseProblem> for Stop {
    fn from(problem: BrowseProblem) -> Self {
        match problem {
            BrowseProblem::NoQueue => Self::Failed("the queue is gone".to_owned()),
            BrowseProblem::Disk(problem) => Self::Hindered(problem),
        }
    }
}

impl From<NotLeading> for Stop {
    fn from(_: NotLeading) -> Self {
        Self::Moved
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal.explanation)
    }
}

/// The tries of a job on this node.
#[derive(Default, Debug)]
pub(super) struct Tries {
    made: u32,
    /// Messages moved up to the last try.
    moved: u64,
}

impl Tries {
    /// Notes a try that has moved messages up to this number. False if there were too many in vain.
    pub(super) fn may_retry(&mut self, moved: u64) -> bool {
        self.made = if moved > self.moved { 1 } else { self.made + 1 };
        self.moved = moved;
        self.made < REDRIVE_TRIES_MAX
    }
}

/// Waits before another try, or for the cancellation of the job, or the stop of the node.
pub(super) async fn pause(job: &Job) {
    // Over in either case.
    drop(timeout(REDRIVE_RETRY_INTERVAL, job.cancelled.notified()).await);
}

/// The circumstances in which a job has stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// Another node leads the vhost, or is about to.
    pub(super) has_moved: bool,
    /// The node stops.
    pub(super) is_stopping: bool,
    /// The job was not cancelled, and has something left to do.
    pub(super) is_unfinished: bool,
}

impl Circumstances {
    /// The circumstances of a job now.
    pub(super) fn of(job: &Job, is_stopping: bool, has_work: bool) -> Self {
        Self {
            has_moved: job.keeper.has_moved(is_stopping),
            is_stopping,
            is_unfinished: job.is_running() && has_work,
        }
    }
}

/// The fate of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Ends(RedriveState),
    /// The next leader has it in the log of the vhost.
    GoesOnElsewhere,
    /// The next process, or the next leader, goes on from the position that is written now.
    GoesOnLater,
    /// Another try here.
    Retries(String),
}

/// Decides what becomes of a job, which `may_retry` here after a while.
pub(super) fn fate(end: Result<(), Stop>, now: Circumstances, may_retry: bool) -> Fate {
    let Circumstances { has_moved, is_stopping, is_unfinished } = now;
    match end {
        // A vhost that is given up looks empty, and closes its channels: nothing that a job meets then is its end.
        _ if has_moved => Fate::GoesOnElsewhere,
        Err(_) if is_stopping && is_unfinished => Fate::GoesOnLater,
        Ok(()) | Err(Stop::Enough) => Fate::Ends(RedriveState::Finished),
        Err(Stop::Moved) => Fate::GoesOnElsewhere,
        Err(Stop::Hindered(reason)) if may_retry && is_unfinished => Fate::Retries(reason),
        Err(Stop::Failed(reason) | Stop::Hindered(reason)) => {
            Fate::Ends(RedriveState::Failed(reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Circumstances =
        Circumstances { has_moved: false, is_stopping: false, is_unfinished: true };

    fn failed(reason: &str) -> Fate {
        Fate::Ends(RedriveState::Failed(reason.to_owned()))
    }

    #[test]
    fn job_that_loses_its_leader_never_ends_with_it() {
        let gone = || Stop::Failed("the queue is gone".to_owned());
        let disk = || Stop::Hindered("cannot read".to_owned());
        for end in [Ok(()), Err(Stop::Enough), Err(gone()), Err(disk()), Err(Stop::Moved)] {
            let moved = Circumstances { has_moved: true, ..HERE };
            assert_eq!(fate(end, moved, true), Fate::GoesOnElsewhere);
        }
        assert_eq!(fate(Err(Stop::Moved), HERE, true), Fate::GoesOnElsewhere);
    }

    #[test]
    fn job_of_a_node_that_stops_goes_on_later() {
        let closed = || Stop::Failed("the broker stops".to_owned());
        let stopping = Circumstances { is_stopping: true, ..HERE };
        assert_eq!(fate(Err(closed()), stopping, true), Fate::GoesOnLater);
        assert_eq!(fate(Err(Stop::Enough), stopping, true), Fate::GoesOnLater);
        let moved = Circumstances { has_moved: true, ..stopping };
        assert_eq!(fate(Err(closed()), moved, true), Fate::GoesOnElsewhere);
        let done = Circumstances { is_stopping: true, is_unfinished: false, ..HERE };
        assert_eq!(fate(Err(Stop::Enough), done, true), Fate::Ends(RedriveState::Finished));
    }

    #[test]
    fn tries_count_anew_when_something_was_moved() {
        let mut tries = Tries::default();
        let vain = |tries: &mut Tries| (1..9999).find(|_| !tries.may_retry(5));
        assert_eq!(vain(&mut tries), Some(REDRIVE_TRIES_MAX));
        assert!(tries.may_retry(6) && tries.may_retry(6));
    }

    #[test]
    fn job_fails_when_no_node_can_go_on_and_is_tried_again_when_one_cannot_now() {
        let gone = Stop::Failed("the queue is gone".to_owned());
        assert_eq!(fate(Err(gone), HERE, true), failed("the queue is gone"));
        let disk = || Stop::Hindered("cannot read".to_owned());
        assert_eq!(fate(Err(disk()), HERE, true), Fate::Retries("cannot read".to_owned()));
        assert_eq!(fate(Err(disk()), HERE, false), failed("cannot read"));
        assert_eq!(fate(Ok(()), HERE, true), Fate::Ends(RedriveState::Finished));
    }
}
