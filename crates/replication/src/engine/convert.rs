//! Translation between the messages and entries of the engine and our own.
//!
//! No protobuf octet is written to or read from a link or a disk: the engine's types are only values here.

use bytes::{BufMut, Bytes, BytesMut};
use raft::eraftpb::{Entry, EntryType, Message as RaftMessage, MessageType};
use storage::{EntryContent, EntryIndex, EntryRecords, LogEntry, Lsn, Term};

use crate::frame::{Append, Body, Message, Vote, VoteAnswer};

/// Octets of an entry's `context` in front of the content of a change of the members.
const CONTEXT_BYTES: usize = 28;

/// Mark of a vote that is asked for a transfer, as the engine's followers expect it.
const TRANSFER: &[u8] = b"CampaignTransfer";

/// An entry of the log as one of the engine. The octets are shared.
pub(super) fn to_engine(entry: &LogEntry) -> Entry {
    let mut out = Entry { term: entry.term.0, index: entry.index.0, ..Entry::default() };
    match &entry.content {
        EntryContent::Records(records) => {
            out.context = context(entry.axis_us, Some(records), &[]);
            out.data = records.bytes.clone();
        }
        EntryContent::Empty => out.context = context(entry.axis_us, None, &[]),
        EntryContent::Membership(change) => {
            out.set_entry_type(EntryType::EntryConfChange);
            out.context = context(entry.axis_us, None, change);
        }
    }
    out
}

/// The facts of an entry beside its octets.
pub(super) fn context(axis_us: u64, records: Option<&EntryRecords>, change: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(CONTEXT_BYTES + change.len());
    let (first, last, count) = records.map_or((0, 0, 0), |r| (r.first.0, r.last.0, r.count));
    out.put_u64_le(axis_us);
    out.put_u64_le(first);
    out.put_u64_le(last);
    out.put_u32_le(count);
    out.put_slice(change);
    out.freeze()
}

/// An entry of the engine as one of the log.
///
/// # Panics
/// If the entry has no context: each is made by [`to_engine`] or stamped when its leader begins.
pub(super) fn to_log(entry: &Entry) -> LogEntry {
    let context = &entry.context;
    let number = |at: usize| {
        let eight = context.get(at..at + 8).and_then(|eight| eight.try_into().ok());
        u64::from_le_bytes(eight.expect("an entry of the engine has its context"))
    };
    let count = context.get(24..CONTEXT_BYTES).and_then(|four| four.try_into().ok());
    let count = u32::from_le_bytes(count.expect("an entry of the engine has its context"));
    let content = match entry.get_entry_type() {
        EntryType::EntryNormal if count > 0 => EntryContent::Records(EntryRecords {
            first: Lsn(number(8)),
            last: Lsn(number(16)),
            count,
            bytes: entry.data.clone(),
        }),
        EntryType::EntryNormal => EntryContent::Empty,
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
            EntryContent::Membership(context.slice(CONTEXT_BYTES..))
        }
    };
    LogEntry { index: EntryIndex(entry.index), term: Term(entry.term), axis_us: number(0), content }
}

/// A message of the engine as our own. `None` for one that has no encoding: proposals and reads are never
/// forwarded, and snapshots are shipped as files.
pub(super) fn from_engine(message: &RaftMessage) -> Option<(u64, Message)> {
    let &RaftMessage { to, term, index, log_term, commit, commit_term, reject, .. } = message;
    let body = match message.get_msg_type() {
        MessageType::MsgAppend => Body::Append(Append {
            previous: index,
            previous_term: log_term,
            commit,
            clock: None,
            entries: message.get_entries().iter().map(to_log).collect(),
        }),
        MessageType::MsgAppendResponse => Body::AppendAnswer {
            index,
            commit,
            is_rejected: reject,
            hint: message.reject_hint,
            hint_term: log_term,
        },
        MessageType::MsgHeartbeat => Body::Heartbeat { commit, needed_from: 0, clock: None },
        MessageType::MsgHeartbeatResponse => Body::HeartbeatAnswer { commit },
        kind @ (MessageType::MsgRequestVote | MessageType::MsgRequestPreVote) => Body::Vote(Vote {
            is_pre_vote: kind == MessageType::MsgRequestPreVote,
            is_transfer: message.context == TRANSFER,
            last: index,
            last_term: log_term,
            commit,
            commit_term,
        }),
        kind @ (MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse) => {
            Body::VoteAnswer(VoteAnswer {
                is_pre_vote: kind == MessageType::MsgRequestPreVoteResponse,
                is_rejected: reject,
                commit,
                commit_term,
                clock: None,
                saved: None,
            })
        }
        MessageType::MsgTimeoutNow => Body::TimeoutNow,
        MessageType::MsgHup
        | MessageType::MsgBeat
        | MessageType::MsgPropose
        | MessageType::MsgSnapshot
        | MessageType::MsgUnreachable
        | MessageType::MsgSnapStatus
        | MessageType::MsgCheckQuorum
        | MessageType::MsgTransferLeader
        | MessageType::MsgReadIndex
        | MessageType::MsgReadIndexResp => return None,
    };
    Some((to, Message { term, body }))
}

/// A message that came from `from` as one of the engine. `None` for one that is not the engine's.
pub(super) fn to_engine_message(from: u64, to: u64, message: Message) -> Option<RaftMessage> {
    let mut out = RaftMessage { from, to, term: message.term, ..RaftMessage::default() };
    let kind = match message.body {
        Body::Append(append) => {
            (out.index, out.log_term) = (append.previous, append.previous_term);
            out.commit = append.commit;
            out.entries = append.entries.iter().map(to_engine).collect::<Vec<_>>().into();
            MessageType::MsgAppend
        }
        Body::AppendAnswer { index, commit, is_rejected, hint, hint_term } => {
            (out.index, out.commit, out.reject) = (index, commit, is_rejected);
            (out.reject_hint, out.log_term) = (hint, hint_term);
            MessageType::MsgAppendResponse
        }
        Body::Heartbeat { commit, needed_from: _, clock: _ } => {
            out.commit = commit;
            MessageType::MsgHeartbeat
        }
        Body::HeartbeatAnswer { commit } => {
            out.commit = commit;
            MessageType::MsgHeartbeatResponse
        }
        Body::Vote(vote) => {
            (out.index, out.log_term) = (vote.last, vote.last_term);
            (out.commit, out.commit_term) = (vote.commit, vote.commit_term);
            if vote.is_transfer {
                out.context = Bytes::from_static(TRANSFER);
            }
            match vote.is_pre_vote {
                true => MessageType::MsgRequestPreVote,
                false => MessageType::MsgRequestVote,
            }
        }
        Body::VoteAnswer(answer) => {
            out.reject = answer.is_rejected;
            (out.commit, out.commit_term) = (answer.commit, answer.commit_term);
            match answer.is_pre_vote {
                true => MessageType::MsgRequestPreVoteResponse,
                false => MessageType::MsgRequestVoteResponse,
            }
        }
        Body::TimeoutNow => MessageType::MsgTimeoutNow,
        Body::SnapshotOffer { .. } => return None,
    };
    out.set_msg_type(kind);
    Some(out)
}
