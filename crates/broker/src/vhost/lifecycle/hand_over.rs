//! Planned changes of the leader of a replicated vhost.
//!
//! A message of a classic queue is delivered before the log tells of it. A leader that is lost leaves it open which
//! messages were, and its successor marks all. A leader that hands over halts its queues first and logs that it has: then
//! the log tells of every delivery.

use crate::ids::QueueId;
use crate::record::Record;
use crate::time::Now;
use crate::vhost::Vhost;

impl Vhost {
    /// Halts all deliveries, because another node is to lead, and logs that nothing is delivered any more. As long as
    /// a leader that was lost may deliver, that is not known and not logged: the next leader marks messages as after a
    /// loss. The shell applies no commands of clients until [`Vhost::deliver_again`].
    pub fn hand_over(&mut self, now: Now) {
        self.advance(now);
        self.flush();
        self.hand_over.is_halted = true;
        if self.hand_over.cut_off_until <= self.now.time {
            self.log(Record::HandOver { ends: false });
        }
    }

    /// Logs that this leader goes on. It may call [`Vhost::deliver_again`] when a majority has the record: until
    /// then, another leader may follow that knows nothing of it.
    pub fn keep_leading(&mut self, now: Now) {
        self.advance(now);
        self.log(Record::HandOver { ends: true });
    }

    /// Delivers again.
    pub fn deliver_again(&mut self, now: Now) {
        self.advance(now);
        self.hand_over.is_halted = false;
        let ids: Vec<QueueId> = self.topology.queues().map(|(id, _)| id).collect();
        for id in ids {
            self.answer_gets(id);
            self.dispatch(id);
        }
        self.finish_deaths();
    }
}
