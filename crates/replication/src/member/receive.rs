//! Frames of other members.

use bytes::Bytes;
use storage::{EntryIndex, Term};

use super::{Member, QuarantineReason, ReportedAxis, SnapshotOffer};
use crate::clock::LeaderClock;
use crate::engine::EngineRole;
use crate::entry_log::EntryLog;
use crate::frame::{
    Body, FrameError, FrameHeader, FrameKind, Message, VoteAnswer, decode_append, decode_control,
};
use crate::ids::{MemberId, NodeId};
use crate::limits::LEADER_CLOCKS_MAX;

impl<L: EntryLog> Member<L> {
    /// Takes a frame that came over the link to the node `from`. False if no turn is needed because of it: most answers
    /// to heartbeats change nothing.
    ///
    /// # Errors
    /// [`FrameError`]: the frame has no effect. The driver counts it by kind.
    pub fn receive(&mut self, from: NodeId, frame: &Bytes) -> Result<bool, FrameError> {
        self.assert_idle();
        let header = FrameHeader::read(frame)?;
        self.check_header(&header, from)?;
        let payload = header.payload(frame)?;
        if self.is_silent() {
            return Ok(false);
        }
        let message = if header.kind == FrameKind::Part {
            match self.assemblies.entry(from).or_default().push(payload)? {
                Some(whole) => decode_append(&whole)?,
                None => return Ok(false),
            }
        } else {
            decode_control(header.kind, payload)?
        };
        let is_answer = matches!(message.body, Body::HeartbeatAnswer { .. });
        self.take(header.from, message)?;
        Ok(!is_answer || self.has_news())
    }

    fn check_header(&self, header: &FrameHeader, from: NodeId) -> Result<(), FrameError> {
        let me = self.config.me;
        if header.cluster != self.config.cluster {
            return Err(FrameError::OtherCluster { cluster: header.cluster.0 });
        }
        if header.group != self.config.group {
            return Err(FrameError::OtherGroup { group: header.group.0 });
        }
        for (member, node) in [(header.from, from), (header.to, me.node())] {
            if member.node() != node {
                return Err(FrameError::OtherMember { member: member.get() });
            }
        }
        let (incarnation, current) = (header.to.incarnation(), me.incarnation());
        if incarnation > current {
            return Err(FrameError::NewerIncarnation { incarnation, current });
        }
        if incarnation < current {
            return Err(FrameError::OlderIncarnation { incarnation, current });
        }
        let (voters, learners) = self.engine.members();
        let members = voters.iter().chain(learners).filter_map(|id| MemberId::new(*id));
        let known = members.filter(|member| member.node() == from).map(MemberId::incarnation).max();
        let incarnation = header.from.incarnation();
        match known {
            Some(current) if incarnation < current => {
                Err(FrameError::OlderIncarnation { incarnation, current })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn take(&mut self, from: MemberId, message: Message) -> Result<(), FrameError> {
        if let Body::Append(append) = &message.body {
            for entry in &append.entries {
                self.engine.log().verify(entry).map_err(FrameError::DamagedEntry)?;
            }
        }
        if let Some(text) = self.engine.contradiction(&message).map_err(FrameError::Impossible)? {
            self.quarantine(QuarantineReason::Diverged(text.to_owned()));
            return Ok(());
        }
        let term = message.term;
        match &message.body {
            Body::SnapshotOffer { index, index_term } => {
                if self.engine.leader() == from.get() && self.engine.term() == term {
                    let (index, term) = (EntryIndex(*index), Term(*index_term));
                    self.offer = Some(SnapshotOffer { from, index, term });
                }
                return Ok(());
            }
            Body::Append(append) => self.learn_clock(term, append.clock),
            Body::Heartbeat { clock, needed_from, .. } => {
                if term >= self.engine.term() {
                    self.needed_from = *needed_from;
                }
                self.learn_clock(term, *clock);
            }
            Body::VoteAnswer(answer) => self.told_clock(from.node(), term, answer),
            Body::AppendAnswer { .. } | Body::HeartbeatAnswer { .. } => {
                if self.leads == Some(term) {
                    self.hearing.heard(from.get(), self.ticks);
                }
            }
            Body::Vote(vote) => {
                self.asked.insert(from.get(), vote.last_term);
            }
            Body::TimeoutNow => {
                self.request_campaign(from, term);
                return Ok(());
            }
        }
        self.engine.step(from.get(), message);
        self.settle();
        Ok(())
    }

    /// Notes the axis of the leader of `term`.
    fn learn_clock(&mut self, term: u64, clock: Option<LeaderClock>) {
        if let Some(clock) = clock
            && term >= self.engine.term()
            && clock.term == term
        {
            self.add_clock(clock);
        }
    }

    /// Adds the clock of a leader, and forgets those that count no more.
    pub(super) fn add_clock(&mut self, clock: LeaderClock) {
        self.clocks.insert(clock.term, clock);
        self.forget_clocks();
        if self.clocks.len() > LEADER_CLOCKS_MAX
            && let Some(second) = self.clocks.keys().nth(1).copied()
        {
            // The oldest counts, the newest will.
            self.clocks.remove(&second);
        }
    }

    /// Forgets the clocks of terms before that of the last written entry.
    pub(super) fn forget_clocks(&mut self) {
        let log = self.engine.log();
        let last_term = log.term_of(log.last_index()).map_or(0, |term| term.0);
        if self.clocks.first_key_value().is_some_and(|(term, _)| *term < last_term) {
            self.clocks = self.clocks.split_off(&last_term);
        }
    }

    /// Notes the axis as a voter knows it.
    fn told_clock(&mut self, node: NodeId, term: u64, answer: &VoteAnswer) {
        let is_possible = |clock: &LeaderClock| clock.term <= term && clock.node == node;
        let [clock, saved] = [answer.clock, answer.saved].map(|clock| clock.filter(is_possible));
        if self.engine.role() == EngineRole::Candidate && (clock.is_some() || saved.is_some()) {
            self.told.insert(node, ReportedAxis { clock, saved, tick: self.ticks });
        }
    }
}
