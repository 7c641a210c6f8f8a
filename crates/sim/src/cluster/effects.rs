//! The effects of the core, as a sabotage changes them.

use broker::page::PageTask;
use broker::time::Now;
use broker::{ConnectionId, Effect, Lsn, Outgoing, Record, Vhost};
use replica::Surroundings;

use crate::faults::sabotage::Sabotage;

/// The surroundings of the vhost of a node.
pub(super) struct Sabotaged {
    pub(super) sabotage: Option<Sabotage>,
    pub(super) now: Now,
}

impl Surroundings for Sabotaged {
    type Effects<'v> = std::vec::IntoIter<Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        let effects = vhost.drain_effects().filter_map(|effect| change(self.sabotage, effect));
        effects.collect::<Vec<_>>().into_iter()
    }

    /// The client is gone: a node of the simulation has no connections of its own.
    fn send_internal(&mut self, _: ConnectionId, _: Outgoing) {}

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        self.now
    }
}

/// The effect that takes the place of another one; none if it is withheld.
fn change(sabotage: Option<Sabotage>, effect: Effect) -> Option<Effect> {
    match (sabotage, effect) {
        (
            Some(Sabotage::AnswerBeforeDurable),
            Effect::SendDurable { connection, channel, outgoing, .. },
        ) => Some(Effect::Send { connection, channel, outgoing }),
        (Some(Sabotage::DeliverBeforeCommit), Effect::Hold(_))
        | (Some(Sabotage::SettlementLost), Effect::Log { record: Record::Settle { .. }, .. }) => {
            None
        }
        (
            Some(Sabotage::DeathTorn),
            Effect::Log {
                lsn,
                at,
                record: Record::DeadLetter { message, entries, .. },
                is_joined,
                ..
            },
        ) => {
            let record = Record::Publish { message, entries };
            Some(Effect::Log { lsn, at, about: Lsn(0), ended: Vec::new(), record, is_joined })
        }
        // A leader that goes on says that it delivers nothing more.
        (
            Some(Sabotage::MarksForgotten),
            Effect::Log { lsn, at, about, ended, record: Record::Digest(_), is_joined },
        ) => {
            let record = Record::HandOver { ends: false };
            Some(Effect::Log { lsn, at, about, ended, record, is_joined })
        }
        (_, effect) => Some(effect),
    }
}
