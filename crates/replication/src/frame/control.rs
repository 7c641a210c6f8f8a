//! Messages of one frame.

use bytes::{Bytes, BytesMut};

use super::error::FrameError;
use super::fields::Fields;
use super::header::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use super::message::{Body, Message, Vote, VoteAnswer};
use crate::clock::LeaderClock;
use crate::ids::{NodeId, RunId};

/// Octets of the longest message without entries, a vote's answer: its term, two numbers, two bits, two clocks.
const CONTROL_BYTES_MAX: usize = 3 * 8 + 2 + 2 * 33;

/// Writes the clock of a leader.
pub(super) fn put_clock(out: &mut BytesMut, clock: Option<&LeaderClock>) {
    let zero = (0, 0, 0, 0);
    let (term, node, run, offset_us) =
        clock.map_or(zero, |clock| (clock.term, clock.node.get(), clock.run.0, clock.offset_us));
    out.extend_from_slice(&[u8::from(clock.is_some())]);
    out.extend_from_slice(&term.to_le_bytes());
    out.extend_from_slice(&node.to_le_bytes());
    out.extend_from_slice(&run.to_le_bytes());
    out.extend_from_slice(&offset_us.to_le_bytes());
}

/// Reads the clock of a leader.
pub(super) fn clock(fields: &mut Fields<'_>) -> Result<Option<LeaderClock>, FrameError> {
    let is_there = fields.bool()?;
    let (term, node) = (fields.number()?, NodeId::new(fields.u64()?));
    let (run, offset_us) = (RunId(fields.u64()?), fields.i64()?);
    match (is_there, node) {
        (false, _) => Ok(None),
        (true, Some(node)) => Ok(Some(LeaderClock { term, node, run, offset_us })),
        (true, None) => Err(FrameError::Malformed("clock of node 0")),
    }
}

/// A message without entries as a frame. `header` gives cluster, group, sender and receiver.
///
/// # Panics
/// If the message has entries.
pub(crate) fn encode_control(mut header: FrameHeader, message: &Message) -> Bytes {
    let mut out = BytesMut::with_capacity(FRAME_HEADER_BYTES + CONTROL_BYTES_MAX);
    out.resize(FRAME_HEADER_BYTES, 0);
    out.extend_from_slice(&message.term.to_le_bytes());
    let mut numbers = |numbers: &[u64]| {
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    };
    header.kind = match &message.body {
        Body::Append(_) => panic!("a message with entries is sent in parts"),
        Body::AppendAnswer { index, commit, is_rejected, hint, hint_term } => {
            numbers(&[*index, *commit, *hint, *hint_term]);
            out.extend_from_slice(&[u8::from(*is_rejected)]);
            FrameKind::AppendAnswer
        }
        Body::Heartbeat { commit, needed_from, clock } => {
            numbers(&[*commit, *needed_from]);
            put_clock(&mut out, clock.as_ref());
            FrameKind::Heartbeat
        }
        Body::HeartbeatAnswer { commit } => {
            numbers(&[*commit]);
            FrameKind::HeartbeatAnswer
        }
        Body::Vote(vote) => {
            numbers(&[vote.last, vote.last_term, vote.commit, vote.commit_term]);
            out.extend_from_slice(&[u8::from(vote.is_pre_vote), u8::from(vote.is_transfer)]);
            FrameKind::Vote
        }
        Body::VoteAnswer(answer) => {
            numbers(&[answer.commit, answer.commit_term]);
            out.extend_from_slice(&[u8::from(answer.is_pre_vote), u8::from(answer.is_rejected)]);
            put_clock(&mut out, answer.clock.as_ref());
            put_clock(&mut out, answer.saved.as_ref());
            FrameKind::VoteAnswer
        }
        Body::TimeoutNow => FrameKind::TimeoutNow,
        Body::SnapshotOffer { index, index_term } => {
            numbers(&[*index, *index_term]);
            FrameKind::SnapshotOffer
        }
    };
    finish(header, out)
}

/// Writes the header in front of a payload that its checksum covers.
pub(super) fn finish(mut header: FrameHeader, mut out: BytesMut) -> Bytes {
    let (front, payload) = out.split_at_mut(FRAME_HEADER_BYTES);
    header.length = u32::try_from(payload.len()).expect("a frame is short");
    header.bare = 0;
    front.copy_from_slice(&header.encode(payload));
    out.freeze()
}

/// The message in the payload of a frame of `kind`.
///
/// # Errors
/// [`FrameError::Cut`] or [`FrameError::Malformed`].
pub(crate) fn decode_control(kind: FrameKind, payload: &[u8]) -> Result<Message, FrameError> {
    let mut fields = Fields::new(payload);
    let term = fields.number()?;
    let body = match kind {
        FrameKind::Part | FrameKind::ClockPing | FrameKind::Leads => {
            return Err(FrameError::Malformed("no message of a group"));
        }
        FrameKind::AppendAnswer => Body::AppendAnswer {
            index: fields.number()?,
            commit: fields.number()?,
            hint: fields.number()?,
            hint_term: fields.number()?,
            is_rejected: fields.bool()?,
        },
        FrameKind::Heartbeat => {
            let (commit, needed_from) = (fields.number()?, fields.number()?);
            Body::Heartbeat { commit, needed_from, clock: clock(&mut fields)? }
        }
        FrameKind::HeartbeatAnswer => Body::HeartbeatAnswer { commit: fields.number()? },
        FrameKind::Vote => Body::Vote(Vote {
            last: fields.number()?,
            last_term: fields.number()?,
            commit: fields.number()?,
            commit_term: fields.number()?,
            is_pre_vote: fields.bool()?,
            is_transfer: fields.bool()?,
        }),
        FrameKind::VoteAnswer => Body::VoteAnswer(VoteAnswer {
            commit: fields.number()?,
            commit_term: fields.number()?,
            is_pre_vote: fields.bool()?,
            is_rejected: fields.bool()?,
            clock: clock(&mut fields)?,
            saved: clock(&mut fields)?,
        }),
        FrameKind::TimeoutNow => Body::TimeoutNow,
        FrameKind::SnapshotOffer => {
            Body::SnapshotOffer { index: fields.number()?, index_term: fields.number()? }
        }
    };
    fields.end()?;
    if term == 0 {
        return Err(FrameError::Malformed("term 0"));
    }
    Ok(Message { term, body })
}
