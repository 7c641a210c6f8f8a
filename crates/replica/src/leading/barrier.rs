//! Barriers: the leader of a vhost proposes an entry behind everything that it has confirmed. A replica that has applied this
//! entry has all that was confirmed before the barrier was asked for.

use replication::Member;
use storage::EntryIndex;

use crate::log::GroupLog;
use crate::output::Output;
use crate::request::RequestId;

/// The barriers of a leader.
#[derive(Default, Debug)]
pub(crate) struct Barriers {
    asked: Vec<RequestId>,
    /// Entries that are not committed yet, in order.
    proposed: Vec<(EntryIndex, Vec<RequestId>)>,
}

impl Barriers {
    /// Asks for a barrier.
    pub(crate) fn ask(&mut self, request: RequestId) {
        self.asked.push(request);
    }

    /// Answers those whose entry is committed, and proposes an entry for all that have been asked for since: returns the
    /// entry.
    pub(crate) fn step<L: GroupLog>(
        &mut self,
        member: &mut Member<L>,
        axis_us: u64,
        outputs: &mut Vec<Output<L::Directory>>,
    ) -> Option<EntryIndex> {
        let committed = member.delivered();
        for (index, requests) in self.proposed.extract_if(.., |(index, _)| *index <= committed) {
            outputs.extend(requests.into_iter().map(|it| Output::Barrier(it, Some(index))));
        }
        if self.asked.is_empty() {
            return None;
        }
        let index = member.propose_barrier(axis_us).ok()?;
        self.proposed.push((index, std::mem::take(&mut self.asked)));
        Some(index)
    }

    /// Answers that there is none: another node leads.
    pub(crate) fn clear<L: GroupLog>(&mut self, outputs: &mut Vec<Output<L::Directory>>) {
        let Self { asked, proposed } = std::mem::take(self);
        let requests = proposed.into_iter().flat_map(|(_, requests)| requests).chain(asked);
        outputs.extend(requests.map(|request| Output::Barrier(request, None)));
    }
}
