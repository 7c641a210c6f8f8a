//! A redrive job as its file, or the log of its vhost, has it.

use broker::dead_letter::DeathReason;
use broker::redrive::{RedriveLimit, RedriveTo};
use broker::{BrowseCursor, QueueNumber};
use serde::{Deserialize, Serialize};

use crate::disk::json_files::members::nullable;
use crate::disk::vhost_files::VhostId;
use crate::requests::{
    MessageFilter, RedriveCounts, RedriveJob, RedriveRequest, RedriveSelection, RedriveState,
};

/// A job with the work that is left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "StoredJob", try_from = "StoredJob")]
pub(super) struct Record {
    pub(super) job: RedriveJob,
    /// None once the job has ended.
    pub(super) unfinished: Option<Unfinished>,
}

/// The parts of a running job that a restart needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unfinished {
    pub(super) request: RedriveRequest,
    /// True if the local administrator began the job, who is no user with permissions.
    pub(super) is_local: bool,
    /// Id of the vhost, which differs for a vhost that is made again under its name.
    pub(super) vhost_id: VhostId,
    /// Number of the queue, which differs for a queue that is declared again.
    pub(super) queue: QueueNumber,
    /// Upper bound of sequence numbers; newer messages are left alone.
    pub(super) last_seq: u64,
    /// The position from which the job goes on.
    pub(super) position: BrowseCursor,
    /// The counts of the job at this position.
    pub(super) counts: RedriveCounts,
    /// Upper bound of the messages moved so far, of a job with a limit.
    pub(super) moved_max: u64,
}

impl Record {
    /// The job as it goes on after a restart: with the counts of its position. Messages that it has moved, or
    /// may have moved if it has a limit, are not at the position any more.
    pub(super) fn resumed(mut self) -> Self {
        if let Some(Unfinished { counts, moved_max, ref request, .. }) = self.unfinished {
            let (limit, moved) = (request.limit, self.job.counts.moved);
            let moved = RedriveLimit { limit, moved, moved_max }.moved_before();
            self.job.counts = RedriveCounts::default();
            self.job.add(RedriveCounts { moved, ..counts });
        }
        self
    }

    /// The job as a log has it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("jobs have members with names")
    }

    /// Reads a job from a log.
    ///
    /// # Errors
    /// A sentence: the job has a member that this build does not know, or lacks one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// A job as its file and a log have it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredJob {
    id: u64,
    vhost: String,
    queue: String,
    to: StoredTarget,
    user: String,
    state: String,
    /// The reason of the failure of a job that has failed.
    #[serde(deserialize_with = "nullable")]
    reason: Option<String>,
    started_ms: u64,
    #[serde(deserialize_with = "nullable")]
    ended_ms: Option<u64>,
    messages_total: u64,
    #[serde(with = "StoredCounts")]
    counts: RedriveCounts,
    #[serde(deserialize_with = "nullable")]
    unacked_left: Option<u64>,
    kept: bool,
    #[serde(deserialize_with = "nullable")]
    unfinished: Option<StoredRest>,
}

/// The parts of a job that a restart needs.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRest {
    request: StoredRequest,
    local: bool,
    vhost_id: VhostId,
    queue_number: u64,
    last_seq: u64,
    position: String,
    #[serde(with = "StoredCounts")]
    counts: RedriveCounts,
    moved_max: u64,
}

/// The selection of a request, its limit and its rate. The job has the rest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRequest {
    #[serde(deserialize_with = "nullable")]
    ids: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    reason: Option<String>,
    #[serde(deserialize_with = "nullable")]
    first_queue: Option<String>,
    headers: Vec<(String, Option<String>)>,
    #[serde(deserialize_with = "nullable")]
    text: Option<String>,
    #[serde(deserialize_with = "nullable")]
    older_than_ms: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    max_redrives: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    limit: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    rate: Option<u32>,
    /// Left out if empty, as in the files of builds that did not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without_headers: Vec<(String, Option<String>)>,
    /// Left out if empty, for the same reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    json: Vec<(String, Option<String>)>,
    /// Left out if there is none, for the same reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    without_text: Option<String>,
}

/// The target of the messages.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`to` is neither a word, nor a queue, nor an exchange with a key"
)]
enum StoredTarget {
    Word(TargetWord),
    Queue {
        queue: String,
    },
    Exchange {
        exchange: String,
        #[serde(deserialize_with = "nullable")]
        routing_key: Option<String>,
    },
}

/// A target that depends on the message.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TargetWord {
    Origin,
    First,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RedriveCounts", deny_unknown_fields)]
struct StoredCounts {
    scanned: u64,
    moved: u64,
    skipped: u64,
    unroutable: u64,
    no_origin: u64,
    gone: u64,
}

impl From<Record> for StoredJob {
    fn from(Record { job, unfinished }: Record) -> Self {
        let state = job.state.as_str().to_owned();
        let reason = if let RedriveState::Failed(reason) = job.state { Some(reason) } else { None };
        Self {
            id: job.id,
            vhost: job.vhost,
            queue: job.queue,
            to: job.to.into(),
            user: job.user,
            state,
            reason,
            started_ms: job.started_ms,
            ended_ms: job.ended_ms,
            messages_total: job.messages_total,
            counts: job.counts,
            unacked_left: job.unacked_left,
            kept: job.is_of_kept,
            unfinished: unfinished.map(StoredRest::from),
        }
    }
}

impl TryFrom<StoredJob> for Record {
    type Error = String;

    fn try_from(stored: StoredJob) -> Result<Self, String> {
        let state = match (stored.state.as_str(), stored.reason) {
            ("running", None) => RedriveState::Running,
            ("finished", None) => RedriveState::Finished,
            ("cancelled", None) => RedriveState::Cancelled,
            ("failed", Some(reason)) => RedriveState::Failed(reason),
            (state, _) => {
                return Err(format!("unknown state `{state}`, or one without its reason"));
            }
        };
        if stored.unfinished.is_some() != (state == RedriveState::Running) {
            return Err("a job has work left if it runs, and else none".to_owned());
        }
        let job = RedriveJob {
            id: stored.id,
            vhost: stored.vhost,
            queue: stored.queue,
            to: stored.to.into(),
            user: stored.user,
            state,
            started_ms: stored.started_ms,
            ended_ms: stored.ended_ms,
            messages_total: stored.messages_total,
            counts: stored.counts,
            unacked_left: stored.unacked_left,
            is_of_kept: stored.kept,
        };
        let unfinished = stored.unfinished.map(|rest| rest.with(&job)).transpose()?;
        Ok(Self { job, unfinished })
    }
}

impl From<Unfinished> for StoredRest {
    fn from(rest: Unfinished) -> Self {
        Self {
            request: StoredRequest::of(&rest.request),
            local: rest.is_local,
            vhost_id: rest.vhost_id,
            queue_number: rest.queue.0,
            last_seq: rest.last_seq,
            position: rest.position.to_string(),
            counts: rest.counts,
            moved_max: rest.moved_max,
        }
    }
}

impl StoredRest {
    fn with(self, job: &RedriveJob) -> Result<Unfinished, String> {
        let position = self.position.parse();
        Ok(Unfinished {
            request: self.request.with(job)?,
            is_local: self.local,
            vhost_id: self.vhost_id,
            queue: QueueNumber(self.queue_number),
            last_seq: self.last_seq,
            position: position.map_err(|_| format!("unknown position `{}`", self.position))?,
            counts: self.counts,
            moved_max: self.moved_max,
        })
    }
}

/// Bytes of a request in a job.
pub(super) fn request_bytes(request: &RedriveRequest) -> usize {
    let stored = serde_json::to_vec(&StoredRequest::of(request));
    stored.expect("requests have members with names").len()
}

impl StoredRequest {
    fn of(request: &RedriveRequest) -> Self {
        let RedriveSelection { ids, filter, older_than_ms, max_redrives } =
            request.selection.clone();
        Self {
            ids: ids.map(|ids| ids.iter().map(ToString::to_string).collect()),
            reason: filter.reason.map(|reason| reason.as_str().to_owned()),
            first_queue: filter.first_queue,
            headers: filter.headers,
            text: filter.text,
            older_than_ms,
            max_redrives,
            limit: request.limit,
            rate: request.rate,
            without_headers: filter.without_headers,
            json: filter.json,
            without_text: filter.without_text,
        }
    }

    fn with(self, job: &RedriveJob) -> Result<RedriveRequest, String> {
        let id = |id: String| id.parse().map_err(|_| format!("unknown id `{id}` of a message"));
        let ids = self.ids.map(|ids| ids.into_iter().map(id).collect()).transpose()?;
        let reason = |word: String| {
            DeathReason::parse(&word).ok_or_else(|| format!("unknown reason `{word}` of a death"))
        };
        let filter = MessageFilter {
            reason: self.reason.map(reason).transpose()?,
            first_queue: self.first_queue,
            headers: self.headers,
            text: self.text,
            without_headers: self.without_headers,
            json: self.json,
            without_text: self.without_text,
        };
        let (older_than_ms, max_redrives) = (self.older_than_ms, self.max_redrives);
        Ok(RedriveRequest {
            to: job.to.clone(),
            selection: RedriveSelection { ids, filter, older_than_ms, max_redrives },
            limit: self.limit,
            rate: self.rate,
            is_of_kept: job.is_of_kept,
        })
    }
}

impl From<RedriveTo> for StoredTarget {
    fn from(to: RedriveTo) -> Self {
        match to {
            RedriveTo::Origin => Self::Word(TargetWord::Origin),
            RedriveTo::First => Self::Word(TargetWord::First),
            RedriveTo::Queue(queue) => Self::Queue { queue: queue.to_string() },
            RedriveTo::Exchange { exchange, routing_key } => Self::Exchange {
                exchange: exchange.to_string(),
                routing_key: routing_key.map(|key| key.to_string()),
            },
        }
    }
}

impl From<StoredTarget> for RedriveTo {
    fn from(stored: StoredTarget) -> Self {
        match stored {
            StoredTarget::Word(TargetWord::Origin) => Self::Origin,
            StoredTarget::Word(TargetWord::First) => Self::First,
            StoredTarget::Queue { queue } => Self::Queue(queue.as_str().into()),
            StoredTarget::Exchange { exchange, routing_key } => Self::Exchange {
                exchange: exchange.as_str().into(),
                routing_key: routing_key.map(|key| key.as_str().into()),
            },
        }
    }
}
