//! The effects of the core, as a sabotage changes them.

use broker::page::PageTask;
use broker::time::Now;
use broker::{ConnectionId, Delivery, Effect, Lsn, Outgoing, Record, Vhost};
use replica::Surroundings;

use crate::faults::sabotage::Sabotage;

/// The surroundings of the vhost of a node.
pub(crate) struct Sabotaged {
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) now: Now,
}

impl Surroundings for Sabotaged {
    type Effects<'v> = std::vec::IntoIter<Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        let effects = vhost.drain_effects();
        match self.sabotage {
            None => effects.collect::<Vec<_>>().into_iter(),
            Some(sabotage) => {
                effects.flat_map(|effect| change(sabotage, effect)).collect::<Vec<_>>().into_iter()
            }
        }
    }

    /// The client is gone: a node of the simulation has no connections of its own.
    fn send_internal(&mut self, _: ConnectionId, _: Outgoing) {}

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        self.now
    }
}

/// The effects that take the place of another one.
fn change(sabotage: Sabotage, effect: Effect) -> Vec<Effect> {
    match (sabotage, effect) {
        (
            Sabotage::AnswerBeforeDurable,
            Effect::SendDurable { connection, channel, outgoing, .. },
        ) => vec![Effect::Send { connection, channel, outgoing }],
        (Sabotage::AnswerWithheld, Effect::SendDurable { .. })
        | (Sabotage::DeliverBeforeCommit, Effect::Hold(_)) => Vec::new(),
        (
            Sabotage::DeliveryDoubled,
            Effect::Send { connection, channel, outgoing: outgoing @ Outgoing::Deliver { .. } },
        ) => {
            let again = Effect::Send { connection, channel, outgoing: outgoing.clone() };
            vec![Effect::Send { connection, channel, outgoing }, again]
        }
        (
            Sabotage::MarkErased,
            Effect::Send {
                connection,
                channel,
                outgoing: Outgoing::Deliver { consumer_tag, delivery },
            },
        ) => {
            let delivery = Delivery { redelivered: false, ..delivery };
            let outgoing = Outgoing::Deliver { consumer_tag, delivery };
            vec![Effect::Send { connection, channel, outgoing }]
        }
        (sabotage, Effect::Log { lsn, at, about, ended, record, is_joined }) => {
            let is_withheld = match &record {
                Record::Settle { .. } if is_joined => sabotage == Sabotage::ReplacementTorn,
                Record::Settle { .. } => sabotage == Sabotage::SettlementLost,
                Record::Reschedule { .. } => sabotage == Sabotage::RescheduleLost,
                Record::Purge { .. } => sabotage == Sabotage::PurgeLost,
                Record::Delivered { .. } => sabotage == Sabotage::MarkLost,
                Record::SetPolicy { .. } => sabotage == Sabotage::PolicyLost,
                _ => false,
            };
            let (about, ended, record) = match record {
                Record::DeadLetter { message, entries, .. } if sabotage == Sabotage::DeathTorn => {
                    (Lsn(0), Vec::new(), Record::Publish { message, entries })
                }
                // A leader that goes on says that it delivers nothing more.
                Record::Digest(_) if sabotage == Sabotage::MarksForgotten => {
                    (about, ended, Record::HandOver { ends: false })
                }
                record => (about, ended, record),
            };
            let log = Effect::Log { lsn, at, about, ended, record, is_joined };
            if is_withheld { Vec::new() } else { vec![log] }
        }
        (_, effect) => vec![effect],
    }
}
