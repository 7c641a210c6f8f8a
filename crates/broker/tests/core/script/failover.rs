//! A replica of the vhost of a scenario: it follows, and takes over.

use super::World;
use crate::disk::Follower;

impl World {
    /// The leader is gone, with its clients, and the replica leads.
    pub(super) fn fail_over(&mut self, is_planned: bool) {
        assert!(!self.holds_log, "what is not durable would be lost");
        self.settle(&mut Vec::new());
        self.check("before the failover");
        let now = self.now();
        if is_planned {
            self.vhost.hand_over(now);
            self.settle(&mut Vec::new());
        }
        let mut follower = self.follower.take().expect("`set replicated` comes first");
        follower.begin_term();
        let next = follower.again(&mut || 1);
        (self.vhost, self.page_store) = follower.take_over(now);
        self.vhost.set_node_name("node");
        self.follower = Some(next);
        self.clients.clear();
        self.waiting.clear();
        self.told.clear();
        // The timer looks at what became due.
        self.vhost.tick(now);
    }

    /// Checks that replicas hold what the leader does: one that got several batches at once and, without clients, one that
    /// got each by itself and one that read its own log. With `has_clients`, unacknowledged messages wait there again.
    pub(super) fn check_replica(&mut self, when: &str, has_clients: bool) {
        let Some(follower) = &self.follower else { return };
        if self.holds_log && has_clients {
            return;
        }
        let now = self.now();
        let mut turn = 0;
        let mut at_once = || {
            turn += 1;
            turn % 7
        };
        let mut replicas = vec![follower.again(&mut at_once)];
        if !has_clients {
            replicas.push(follower.again(&mut || 1));
            replicas.push(follower.read_back(self.disk.references_left()));
        }
        let leader = self.vhost.queue_digests();
        assert_eq!(follower.queue_digests(), leader, "{when}");
        for replica in replicas {
            assert_eq!(replica.queue_digests(), leader, "{when}");
            let mut replica = replica.promote(now, true);
            if has_clients {
                let mut entries = replica.0.durable_entries();
                replica.1.add_durable(&replica.0, &mut entries);
                assert_eq!(&entries, self.replay.entries(), "{when}");
            } else {
                self.page_store.assert_same(&self.vhost, &replica);
                continue;
            }
            self.check_first_digest(&mut replica.0, follower);
        }
    }

    /// The first digest of a new leader lists every queue, and its replicas agree.
    fn check_first_digest(&self, vhost: &mut broker::Vhost, follower: &Follower) {
        let mut other = follower.again(&mut || 3);
        vhost.log_digest(self.now());
        let mut listed = 0;
        for effect in vhost.drain_effects() {
            if let broker::Effect::Log { record: broker::Record::Digest(digest), .. } = &effect {
                listed += digest.queues.len();
            }
            other.write(&effect);
        }
        other.end_entry(self.now().time).unwrap();
        assert_eq!(listed, other.queue_digests().len());
        assert!(other.digests() > 0);
    }
}
