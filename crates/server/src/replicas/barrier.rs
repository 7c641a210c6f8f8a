//! Barriers: the leader of a vhost proposes an entry behind everything that it has confirmed. A replica that has applied this
//! entry has all that was confirmed before the barrier was asked for.

use replication::Member;
use storage::EntryIndex;
use tokio::sync::oneshot;

use super::member_log::MemberLog;

/// Receives the index of the entry; closed without one if this node does not lead any more.
pub(super) type BarrierAnswer = oneshot::Sender<EntryIndex>;

/// The barriers of a leader.
#[derive(Default, Debug)]
pub(super) struct Barriers {
    asked: Vec<BarrierAnswer>,
    /// Entries that are not committed yet, in order.
    proposed: Vec<(EntryIndex, Vec<BarrierAnswer>)>,
}

impl Barriers {
    /// Asks for a barrier.
    pub(super) fn ask(&mut self, answer: BarrierAnswer) {
        self.asked.push(answer);
    }

    /// Answers those whose entry is committed, and proposes an entry for all that have been asked for since. True if an entry
    /// was proposed.
    pub(super) fn step(&mut self, member: &mut Member<MemberLog>, axis_us: u64) -> bool {
        let committed = member.delivered();
        for (index, answers) in self.proposed.extract_if(.., |(index, _)| *index <= committed) {
            // Whoever asked may be gone.
            for answer in answers {
                let _ = answer.send(index);
            }
        }
        if self.asked.is_empty() {
            return false;
        }
        let Ok(index) = member.propose_barrier(axis_us) else { return false };
        self.proposed.push((index, std::mem::take(&mut self.asked)));
        true
    }

    /// Answers nobody: another node leads.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
