//! The effects of the core, as the server applies them.

use broker::time::Now;
use broker::{Effect, Lsn, Record};
use vhost_log::QueuedRecord;

use crate::cluster::serving::{Deferred, Serving};
use crate::faults::sabotage::Sabotage;

impl Serving {
    /// Ends a batch: sends `replies`, applies all effects, and frees what is durable. Returns the position that the
    /// answer to the last command waits for.
    pub(crate) fn finish(&mut self, now: Now, replies: &[Deferred]) -> Option<Lsn> {
        self.answer(replies);
        let mut wait = None;
        self.vhost().flush();
        loop {
            let mut asked = self.apply_effects(&mut wait);
            let last = self.vhost().last_lsn();
            asked.extend(self.release(last));
            if asked.is_empty() {
                break;
            }
            for connection in asked {
                let backlog = self.backlog(connection);
                self.vhost().set_backlog(now, connection, backlog);
            }
            self.vhost().flush();
        }
        self.wakes |= self.log.wakes_writer();
        self.depart(now);
        wait
    }

    /// Applies the effects. Returns connections whose backlog the core wants to know.
    fn apply_effects(&mut self, wait: &mut Option<Lsn>) -> Vec<broker::ConnectionId> {
        let effects: Vec<Effect> = self.vhost().drain_effects().collect();
        let mut asked = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { connection, channel, outgoing } => {
                    self.send(connection, channel, &outgoing);
                }
                Effect::SendDurable { lsn, connection, channel, outgoing } => {
                    if self.sabotage == Some(Sabotage::AnswerBeforeDurable) {
                        self.send(connection, channel, &outgoing);
                        continue;
                    }
                    self.deferred.push(Deferred { lsn, connection, channel, outgoing });
                    *wait = Some(lsn);
                }
                Effect::Hold(connection) => self.hold(connection),
                Effect::Stalled(connection) => {
                    // The writer of the socket reports in a batch of its own; what is held reports when it is released.
                    if self.holds_with_room(connection) {
                        self.stalled.push(connection);
                    }
                }
                Effect::AskBacklog(connection) => asked.push(connection),
                Effect::Log { lsn, at, about, ended, record, is_joined } => {
                    let queued = QueuedRecord { lsn, at, about, is_joined, record: &record };
                    self.append(queued, &ended);
                }
                Effect::Page(task) => {
                    panic!("{task:?} although nothing limits the memory");
                }
                Effect::AwaitGet(_) | Effect::Event(_) => {}
            }
        }
        asked
    }

    fn append(&mut self, queued: QueuedRecord<'_>, ended: &[Lsn]) {
        match (self.sabotage, queued.record) {
            (Some(Sabotage::SettlementLost), Record::Settle { .. }) => return,
            (Some(Sabotage::DeathTorn), Record::DeadLetter { message, entries, .. }) => {
                let (message, entries) = (message.clone(), entries.clone());
                let record = Record::Publish { message, entries };
                self.log.append(QueuedRecord { about: Lsn(0), record: &record, ..queued });
                return;
            }
            _ => {}
        }
        ended.iter().for_each(|lsn| self.log.release(*lsn));
        self.log.append(queued);
    }
}
