//! Planned changes of the leader.
//!
//! The vhost takes no commands meanwhile. First everything that it has logged is committed, with the record that says that
//! nothing is delivered any more; then the engine lets the other member campaign. If nothing comes of it in time, the
//! leader logs that it goes on, and does so when a majority has that: a campaign that begins late may still succeed
//! until then.

use super::Member;
use super::types::CampaignRequest;
use crate::entry_log::EntryLog;
use crate::frame::{Body, Message};
use crate::ids::MemberId;
use crate::limits::{HAND_OVER_TICKS, TRANSFER_TICKS};

/// A hand-over that is under way. Its driver owns it until [`HandOverStep::Resume`], or until the member leads no more.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    to: MemberId,
    /// Tick at which the leader goes on instead.
    until: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Records of the vhost are on their way.
    Drains,
    /// The engine has been asked to hand over, last at this tick.
    Transfers { asked: u64 },
    /// The leader goes on once a majority knows.
    Ends,
}

/// The next step of a hand-over, for its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandOverStep {
    /// Wait for something to happen.
    Wait,
    /// The vhost must log that the leader goes on.
    KeepLeading,
    /// The vhost serves again.
    Resume,
}

impl HandOver {
    /// The member that is to lead.
    #[must_use]
    pub fn to(&self) -> MemberId {
        self.to
    }

    /// Does what can be done now. `is_quiet` if everything that the vhost has logged is committed.
    pub fn step<L: EntryLog>(&mut self, member: &mut Member<L>, is_quiet: bool) -> HandOverStep {
        let tick = member.ticks;
        match self.stage {
            Stage::Drains | Stage::Transfers { .. } if tick >= self.until => {
                member.engine.abort_transfer();
                self.stage = Stage::Ends;
                HandOverStep::KeepLeading
            }
            Stage::Drains if is_quiet => {
                member.transfer(self.to);
                self.stage = Stage::Transfers { asked: tick };
                HandOverStep::Wait
            }
            // The frame may be lost.
            Stage::Transfers { asked } if tick - asked >= TRANSFER_TICKS => {
                member.engine.abort_transfer();
                member.transfer(self.to);
                self.stage = Stage::Transfers { asked: tick };
                HandOverStep::Wait
            }
            Stage::Ends if is_quiet => HandOverStep::Resume,
            Stage::Drains | Stage::Transfers { .. } | Stage::Ends => HandOverStep::Wait,
        }
    }
}

impl<L: EntryLog> Member<L> {
    /// Notes that the leader of a term asks this member to campaign.
    pub(super) fn request_campaign(&mut self, from: MemberId, term: u64) {
        self.requested = Some(CampaignRequest { from, term });
    }

    /// Campaigns as the leader has asked, unless it has gone on meanwhile: it appends nothing before, and the engine does
    /// not campaign with entries that are not written. A member that was late would not be elected, but end the lead of the
    /// other.
    pub(super) fn campaign_as_requested(&mut self) {
        let Some(CampaignRequest { from, term }) = self.requested.take() else { return };
        self.engine.step(from.get(), Message { term, body: Body::TimeoutNow });
        self.settle();
    }

    /// Begins to hand leadership over to a voter, or to the one that is most up to date. `None` if this member does not
    /// lead, or has not heard from that voter lately.
    #[must_use]
    pub fn hand_over(&self, to: Option<MemberId>) -> Option<HandOver> {
        let to = self.successors().into_iter().find(|member| to.is_none_or(|to| to == *member))?;
        Some(HandOver { to, until: self.ticks + HAND_OVER_TICKS, stage: Stage::Drains })
    }

    /// Voters that could lead in place of this leader: those that were heard lately, the most up to date first.
    #[must_use]
    pub fn successors(&self) -> Vec<MemberId> {
        let (voters, _) = self.engine.members();
        let is_heard =
            |voter: &u64| *voter != self.me() && self.hearing.is_heard(*voter, self.ticks);
        let mut heard: Vec<u64> = voters.iter().copied().filter(is_heard).collect();
        heard.sort_by_key(|voter| std::cmp::Reverse(self.engine.matched(*voter)));
        let leads = self.engine.is_leader() && !self.is_silent();
        heard.into_iter().filter(|_| leads).filter_map(MemberId::new).collect()
    }
}
