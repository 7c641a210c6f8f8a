//! A redrive job as its file, or the log of its vhost, has it.

use broker::dead_letter::DeathReason;
use broker::redrive::{RedriveLimit, RedriveTo};
use broker::{BrowseCursor, QueueNumber};
use serde_json::{Value, json};

use crate::disk::vhost_files::VhostId;
use crate::requests::{
    MessageFilter, RedriveCounts, RedriveJob, RedriveRequest, RedriveSelection, RedriveState,
};

/// A job with the work that is left.
#[derive(Clone, PartialEq, Eq, Debug)]
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
        self.to_json().to_string().into_bytes()
    }

    /// Reads a job from a log; none if something is missing or of the wrong type.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_json(&serde_json::from_slice(bytes).ok()?)
    }

    pub(super) fn to_json(&self) -> Value {
        let job = &self.job;
        let reason =
            if let RedriveState::Failed(reason) = &job.state { Some(reason) } else { None };
        json!({
            "id": job.id,
            "vhost": job.vhost,
            "queue": job.queue,
            "to": to_json(&job.to),
            "user": job.user,
            "state": job.state.as_str(),
            "reason": reason,
            "started_ms": job.started_ms,
            "ended_ms": job.ended_ms,
            "messages_total": job.messages_total,
            "counts": counts_to_json(job.counts),
            "unacked_left": job.unacked_left,
            "kept": job.is_of_kept,
            "unfinished": self.unfinished.as_ref().map(unfinished_to_json),
        })
    }

    /// Reads a job; none if something is missing or of the wrong type.
    pub(super) fn from_json(root: &Value) -> Option<Self> {
        let number = |name| root.get(name)?.as_u64();
        let state = match text(root, "state")?.as_str() {
            "running" => RedriveState::Running,
            "finished" => RedriveState::Finished,
            "cancelled" => RedriveState::Cancelled,
            "failed" => RedriveState::Failed(text(root, "reason")?),
            _ => return None,
        };
        let job = RedriveJob {
            id: number("id")?,
            vhost: text(root, "vhost")?,
            queue: text(root, "queue")?,
            to: to(root.get("to")?)?,
            user: text(root, "user")?,
            state,
            started_ms: number("started_ms")?,
            ended_ms: number_or_null(root, "ended_ms")?,
            messages_total: number("messages_total")?,
            counts: counts(root.get("counts")?)?,
            unacked_left: number_or_null(root, "unacked_left")?,
            is_of_kept: root.get("kept")?.as_bool()?,
        };
        let rest = root.get("unfinished")?;
        let unfinished = if rest.is_null() { None } else { Some(unfinished(rest, &job)?) };
        // A job that runs has work left.
        (unfinished.is_some() == (job.state == RedriveState::Running))
            .then_some(Self { job, unfinished })
    }
}

fn unfinished_to_json(rest: &Unfinished) -> Value {
    json!({
        "request": request_to_json(&rest.request),
        "local": rest.is_local,
        "vhost_id": rest.vhost_id.0,
        "queue_number": rest.queue.0,
        "last_seq": rest.last_seq,
        "position": rest.position.to_string(),
        "counts": counts_to_json(rest.counts),
        "moved_max": rest.moved_max,
    })
}

fn unfinished(value: &Value, job: &RedriveJob) -> Option<Unfinished> {
    Some(Unfinished {
        request: request(value.get("request")?, job)?,
        is_local: value.get("local")?.as_bool()?,
        vhost_id: VhostId(value.get("vhost_id")?.as_u64()?),
        queue: QueueNumber(value.get("queue_number")?.as_u64()?),
        last_seq: value.get("last_seq")?.as_u64()?,
        position: text(value, "position")?.parse().ok()?,
        counts: counts(value.get("counts")?)?,
        moved_max: value.get("moved_max")?.as_u64()?,
    })
}

/// The selection of a request, its limit and its rate.
pub(super) fn request_to_json(request: &RedriveRequest) -> Value {
    let RedriveSelection { ids, filter, older_than_ms, max_redrives } = &request.selection;
    let ids = ids.as_ref().map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    json!({
        "ids": ids,
        "reason": filter.reason.map(DeathReason::as_str),
        "first_queue": filter.first_queue,
        "headers": filter.headers,
        "text": filter.text,
        "older_than_ms": older_than_ms,
        "max_redrives": max_redrives,
        "limit": request.limit,
        "rate": request.rate,
    })
}

fn request(value: &Value, job: &RedriveJob) -> Option<RedriveRequest> {
    let ids = value.get("ids")?;
    let ids = match ids.is_null() {
        true => None,
        false => Some(all(ids, |id| id.as_str()?.parse().ok())?.into_iter().collect()),
    };
    let reason = match text_or_null(value, "reason")? {
        Some(reason) => Some(DeathReason::parse(&reason)?),
        None => None,
    };
    let header = |header: &Value| {
        let [name, wanted] = header.as_array()?.as_slice() else { return None };
        let wanted = if wanted.is_null() { None } else { Some(wanted.as_str()?.to_owned()) };
        Some((name.as_str()?.to_owned(), wanted))
    };
    let filter = MessageFilter {
        reason,
        first_queue: text_or_null(value, "first_queue")?,
        headers: all(value.get("headers")?, header)?,
        text: text_or_null(value, "text")?,
    };
    let rate = match number_or_null(value, "rate")? {
        Some(rate) => Some(u32::try_from(rate).ok()?),
        None => None,
    };
    Some(RedriveRequest {
        to: job.to.clone(),
        selection: RedriveSelection {
            ids,
            filter,
            older_than_ms: number_or_null(value, "older_than_ms")?,
            max_redrives: number_or_null(value, "max_redrives")?,
        },
        limit: number_or_null(value, "limit")?,
        rate,
        is_of_kept: job.is_of_kept,
    })
}

fn to_json(to: &RedriveTo) -> Value {
    match to {
        RedriveTo::Origin => json!("origin"),
        RedriveTo::First => json!("first"),
        RedriveTo::Queue(queue) => json!({"queue": **queue}),
        RedriveTo::Exchange { exchange, routing_key } => {
            let key = routing_key.as_ref().map(ToString::to_string);
            json!({"exchange": **exchange, "routing_key": key})
        }
    }
}

fn to(value: &Value) -> Option<RedriveTo> {
    match value.as_str() {
        Some("origin") => return Some(RedriveTo::Origin),
        Some("first") => return Some(RedriveTo::First),
        Some(_) => return None,
        None => {}
    }
    if let Some(queue) = value.get("queue") {
        return Some(RedriveTo::Queue(queue.as_str()?.into()));
    }
    let routing_key = text_or_null(value, "routing_key")?.map(|key| key.as_str().into());
    Some(RedriveTo::Exchange { exchange: text(value, "exchange")?.into(), routing_key })
}

fn counts_to_json(counts: RedriveCounts) -> Value {
    let RedriveCounts { scanned, moved, skipped, unroutable, no_origin, gone } = counts;
    json!({"scanned": scanned, "moved": moved, "skipped": skipped, "unroutable": unroutable,
        "no_origin": no_origin, "gone": gone})
}

fn counts(value: &Value) -> Option<RedriveCounts> {
    let count = |name| value.get(name)?.as_u64();
    Some(RedriveCounts {
        scanned: count("scanned")?,
        moved: count("moved")?,
        skipped: count("skipped")?,
        unroutable: count("unroutable")?,
        no_origin: count("no_origin")?,
        gone: count("gone")?,
    })
}

fn all<T>(list: &Value, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    list.as_array()?.iter().map(item).collect()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn text_or_null(value: &Value, name: &str) -> Option<Option<String>> {
    let value = value.get(name)?;
    if value.is_null() { Some(None) } else { value.as_str().map(|text| Some(text.to_owned())) }
}

fn number_or_null(value: &Value, name: &str) -> Option<Option<u64>> {
    let value = value.get(name)?;
    if value.is_null() { Some(None) } else { value.as_u64().map(Some) }
}
