//! The client that declares the queues, changes the policy and asks for redrives.

use crate::clients::topology::Topology;
use crate::cluster::requests::redrive_job::RedriveJob;
use crate::world::World;

impl World {
    /// Once all queues are declared, the others begin.
    pub(crate) fn declare(&mut self, number: usize) {
        let all = self.book.topology.queues.len();
        if !self.is_ready && self.clients[number].declared == all {
            self.is_ready = true;
            self.tell(format_args!("all queues are declared"));
        }
        if self.is_ready && !self.clients[number].drains && self.random.percent(2) {
            return self.begin_redrive(number);
        }
        self.cancel_by_http(number);
        if self.is_ready && (self.clients[number].drains || self.random.percent(2)) {
            let ttl_ms = crate::clients::topology::RULED_TTL_MS_MIN + self.random.below(2_000);
            let policy = Topology::policy(ttl_ms);
            let Some(place) = self.clients[number].place else { return };
            self.with(place.node, |process, ctx| {
                let now = process.now(ctx.reading);
                let Some(serving) = process.content.vhost() else { return };
                serving.write(now, |vhost| {
                    vhost.set_policy(now, broker::PolicyKind::User, policy);
                });
                process.touched(ctx);
            });
            // Another leader may have lost it.
            self.disconnect(number);
        }
    }

    /// Has dead letters redriven at the node of a client, if no other redrive runs.
    fn begin_redrive(&mut self, number: usize) {
        let Some(place) = self.clients[number].place else { return };
        if self.book.ledger.has_redrive() {
            return;
        }
        self.redrives += 1;
        let limit = 1 + u8::try_from(self.random.below(60)).expect("a small bound");
        let job = RedriveJob { limit, moved_max: 0, to_first: self.random.percent(50) };
        let id = self.redrives;
        self.tell(format_args!("redrive {id} of {limit} messages is asked for"));
        self.with(place.node, |process, ctx| process.begin_redrive(id, job, ctx));
    }
}
