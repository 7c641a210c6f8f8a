//! The checks of relays.

use replica::limits::{RELAY_CLOSE_TIMEOUT, RELAY_LEADER_GRACE};
use replica::relay::End;

use crate::relays::leader::PROBE_US;
use crate::relays::relay::{Phase, Relay};
use crate::world::World;

/// Time that nodes and clients may take beyond their limits, in microseconds: ticks, and octets on their way.
const SLACK_US: u64 = 1_000_000;

/// Time until an end of a stream learns that the other one is gone, if nobody tells it, in microseconds: it asks, and waits until it
/// is heard, or the other node counts as away.
const TOLD_US: u64 = PROBE_US + AWAY_US;

/// Time after which a node counts as away of which the network carries nothing, in microseconds: the link is lost before.
const AWAY_US: u64 = 5_000_000;

/// Time within which a client is served after all faults have ended, in microseconds: an election, a search for the leader
/// that is given up, and some attempts.
const SERVED_US: u64 = 20_000_000;

fn us(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl World {
    /// A client gets the octets of the leader in their order, and then perhaps those of its entry node.
    pub(super) fn check_order(&mut self, id: u64, octets: &[u8]) {
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        let Some(stream) = relay.stream.and_then(|it| self.relays.streams.get_mut(&it)) else {
            return;
        };
        for octet in octets {
            let is_own = matches!(relay.own, Some((0, _)));
            let expected = match &mut relay.own {
                Some((0, own)) => own.pop_front(),
                Some((before, _)) => {
                    *before -= 1;
                    stream.expected.pop_front()
                }
                None => stream.expected.pop_front(),
            };
            if expected != Some(*octet) {
                let (client, whose) = (relay.client, if is_own { "entry node" } else { "leader" });
                let text = format!("client {client} gets octets that its {whose} has not sent");
                return self.book.violation(text);
            }
        }
    }

    /// A relay holds no more than a read of each direction, and a socket no more than it takes.
    pub(super) fn check_memory(&mut self, id: u64, relay: &Relay) {
        let held = relay.to_leader.len().max(relay.to_client.len());
        let in_socket = relay.from_leader.octets.len();
        if held > relay.read_max || in_socket > relay.window {
            self.book.violation(format!(
                "relay {id} holds {held} octets of {} and {in_socket} of {}",
                relay.read_max, relay.window
            ));
        }
    }

    /// Checks that no octets are missing at the end, if the leader has ended the stream behind everything.
    pub(super) fn check_end(&mut self, id: u64, relay: &Relay, end: &End) {
        let Some(stream) = relay.stream.and_then(|it| self.relays.streams.get(&it)) else { return };
        let has_sent_all = stream.is_over && stream.unsent.is_empty() && !stream.down.is_torn;
        let has_ended = relay.from_leader.has_ended && stream.down.is_empty();
        let is_by_leader = !relay.down.must_close() && *end != End::ClientGone;
        let missing = stream.expected.len().saturating_sub(relay.client_down.count());
        if is_by_leader && has_sent_all && has_ended && missing > 0 && self.runs(stream.leader) {
            let text = format!("relay {id} ends without the last {missing} octets of the leader");
            self.book.violation(text);
        }
    }

    /// Checks that the leader has all that a client has sent before it ended its stream.
    pub(super) fn check_up_bytes(&mut self, id: u64) {
        let stream = &self.relays.streams[&id];
        let heard = stream.up_bytes;
        let sent = stream.sent_bytes.filter(|_| !stream.up.is_torn);
        if let Some(sent) = sent.filter(|sent| *sent != heard) {
            let text = format!("stream {id} ends behind {heard} of {sent} octets of the client");
            self.book.violation(text);
        }
    }

    /// A relay ends in time when the leader is another one, is lost, or the client has gone.
    pub(super) fn check_relay(&mut self, id: u64) {
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        let now_us = self.relays.own[relay.entry.node].us;
        let stream = relay.stream.and_then(|it| self.relays.streams.get(&it));
        let is_over = stream.is_none_or(|stream| stream.is_over);
        let since = |is: bool, since_us: Option<u64>| is.then(|| since_us.unwrap_or(now_us));
        let copies = matches!(relay.phase, Phase::Copies);
        relay.since_us[2] = since(copies && is_over, relay.since_us[2]);
        relay.since_us[3] = since(copies && relay.has_left, relay.since_us[3]);
        if !copies {
            return;
        }
        let [superseded, _, lost, left] = relay.since_us;
        let is_clean = relay.heard.is_empty()
            && relay.client_down.is_empty()
            && relay.to_client.is_empty()
            && relay.from_leader.octets.is_empty();
        // The rest of a frame.
        let more_us = SLACK_US + if is_clean { 0 } else { us(RELAY_CLOSE_TIMEOUT) + SLACK_US };
        let lost_us = TOLD_US;
        let left_us = us(RELAY_CLOSE_TIMEOUT) + lost_us;
        for (since_us, most_us, what) in [
            (superseded, us(RELAY_LEADER_GRACE), "its leader was replaced"),
            (lost, lost_us, "its leader was lost"),
            (left, left_us, "its client has gone"),
        ] {
            let passed_us = since_us.map_or(0, |since_us| now_us - since_us);
            if passed_us > most_us + more_us {
                let text = format!("relay {id} goes on for {passed_us} us after {what}");
                return self.book.violation(text);
            }
        }
    }

    /// A leader does not keep a client long whose entry node has ended the stream, or is gone.
    pub(super) fn check_adopted(&mut self, id: u64) {
        let now_us =
            self.relays.streams.get(&id).map_or(0, |it| self.relays.own[it.leader.node].us);
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        let relay = self.relays.all.get(&stream.relay);
        let is_passed_on = relay
            .is_some_and(|relay| relay.stream == Some(id) && !matches!(relay.phase, Phase::Over));
        let is_kept = stream.adopted.is_some() && !is_passed_on;
        stream.left_us = is_kept.then(|| stream.left_us.unwrap_or(now_us));
        let passed_us = stream.left_us.map_or(0, |since_us| now_us - since_us);
        if passed_us > TOLD_US + SLACK_US {
            let text = format!("a leader keeps the client of stream {id} for {passed_us} us");
            self.book.violation(text);
        }
    }

    /// Once everything has healed, each client is served soon.
    pub(super) fn check_service(&mut self) {
        if !self.relays.is_healed || !self.is_ready {
            return;
        }
        let serves = |node: &crate::cluster::node::Node| {
            node.process.as_ref().is_some_and(|process| process.serves().is_some())
        };
        let is_served = self.nodes.iter().any(serves);
        let idle = &mut self.relays.idle_since_us;
        idle.resize(self.clients.len(), None);
        for (number, client) in self.clients.iter().enumerate() {
            let is_idle = client.place.is_none() && is_served;
            idle[number] = is_idle.then(|| idle[number].unwrap_or(self.now_us));
            let since_us = idle[number].unwrap_or(self.now_us);
            if self.now_us - since_us > SERVED_US {
                self.book
                    .violation(format!("client {number} finds no service: {:?}", client.relay));
                return;
            }
        }
    }
}
