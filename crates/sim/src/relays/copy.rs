//! The entry node passes on octets, as [`replica::relay`] decides.

use amqp::method::MethodId;
use replica::relay::{End, Step};

use crate::faults::sabotage::Sabotage;
use crate::relays::ends::Way;
use crate::relays::relay::{Phase, Relay};
use crate::relays::stream::Piece;
use crate::world::World;

/// Time after which a node notices that a leader has ended a stream of which it reads nothing, in microseconds.
const HUNG_UP_US: u64 = 1_000_000;

impl World {
    /// Passes on what sockets have and take.
    pub(super) fn pump(&mut self, id: u64) {
        let Some(mut relay) = self.relays.all.remove(&id) else { return };
        loop {
            let goes_on = match &relay.phase {
                Phase::Seeks(_) | Phase::Over => false,
                Phase::Closes(_) => self.pump_farewell(id, &mut relay),
                Phase::Copies => {
                    let goes_up = self.pump_up(id, &mut relay);
                    self.pump_down(id, &mut relay) || goes_up
                }
            };
            self.check_memory(id, &relay);
            if !goes_on {
                break;
            }
        }
        let stream = relay.stream;
        self.relays.all.insert(id, relay);
        // There is room again for what the leader has.
        if let Some(stream) = stream {
            self.flush_leader(stream);
        }
    }

    /// Pumps the relay of a stream.
    pub(super) fn pump_stream(&mut self, stream: u64) {
        if let Some(relay) = self.relays.streams.get(&stream).map(|stream| stream.relay) {
            self.pump(relay);
        }
    }

    /// True if something has passed on.
    fn pump_up(&mut self, id: u64, relay: &mut Relay) -> bool {
        let now = self.relays.own_time(relay.entry.node, self.now_us);
        let Some(stream) = relay.stream else { return false };
        if relay.up.is_waiting() {
            let Some(there) = self.relays.streams.get_mut(&stream) else { return false };
            let count = there.room(Way::Up).min(relay.to_leader.len());
            let taken: Vec<u8> = relay.to_leader.drain(..count).collect();
            if count > 0 {
                self.send_piece(stream, Way::Up, Piece::Octets(taken));
            }
            if relay.to_leader.is_empty() {
                relay.up.taken();
            }
            return count > 0;
        }
        if !relay.from_client.octets.is_empty() {
            let count = self.read_count(relay.read_max, relay.from_client.octets.len());
            relay.to_leader = relay.from_client.octets.drain(..count).collect();
            relay.up.read(&relay.to_leader);
            return true;
        }
        if relay.from_client.has_ended && relay.up.ends_at().is_none() {
            relay.up.client_ended(now);
            if let Some(there) = self.relays.streams.get_mut(&stream) {
                there.sent_bytes = Some(relay.client_sent);
            }
            if !self.relays.has(Sabotage::RelayClientEndLost) {
                self.send_piece(stream, Way::Up, Piece::End);
            }
            return true;
        }
        match relay.up.end(now) {
            Some(end) => {
                self.finish(id, relay, end);
                true
            }
            None => false,
        }
    }

    /// True if something has passed on.
    fn pump_down(&mut self, id: u64, relay: &mut Relay) -> bool {
        if !matches!(relay.phase, Phase::Copies) {
            return false;
        }
        let now = self.relays.own_time(relay.entry.node, self.now_us);
        if !relay.to_client.is_empty() {
            return self.write_down(id, relay);
        }
        let until = match relay.down.step() {
            Step::End(end) => {
                self.finish(id, relay, end);
                return true;
            }
            Step::Read(until) => until,
        };
        if relay.down.must_close() && self.relays.has(Sabotage::RelayCloseWithinFrame) {
            let end = End::Close(replica::relay::leader_lost("/"));
            self.finish(id, relay, end);
            return true;
        }
        if !relay.from_leader.octets.is_empty() {
            let count = self.read_count(relay.read_max, relay.from_leader.octets.len());
            relay.to_client = relay.from_leader.octets.drain(..count).collect();
            if let Some(there) = relay.stream.and_then(|it| self.relays.streams.get_mut(&it)) {
                there.down.unread -= count.min(there.down.unread);
            }
            let passed = relay.down.read(&relay.to_client);
            relay.to_client.truncate(passed);
            return true;
        }
        let end = match until {
            _ if relay.from_leader.has_ended => relay.down.leader_ended(),
            Some(until) if now >= until => relay.down.read_expired(),
            _ => return false,
        };
        self.finish(id, relay, end);
        true
    }

    fn write_down(&mut self, id: u64, relay: &mut Relay) -> bool {
        let now = self.relays.own_time(relay.entry.node, self.now_us);
        let count = relay.client_room().min(relay.to_client.len());
        if count > 0 {
            let taken = relay.to_client.drain(..count).collect();
            self.send_to_client(id, relay, taken, false);
            if relay.to_client.is_empty() {
                relay.down.taken();
                relay.since_us[1] = None;
            }
            return true;
        }
        if relay.from_leader.has_ended && relay.down.write_until().is_none() {
            // It is noticed a second later, as by the server.
            let since_us = *relay.since_us[1].get_or_insert(now.as_micros());
            if now.as_micros() - since_us > HUNG_UP_US {
                relay.down.hung_up(now);
            }
        }
        if relay.down.write_until().is_some_and(|until| now >= until) {
            let end = relay.down.write_expired();
            self.finish(id, relay, end);
            return true;
        }
        false
    }

    /// The client has time to answer the close of the entry node.
    fn pump_farewell(&mut self, id: u64, relay: &mut Relay) -> bool {
        let now = self.relays.own_time(relay.entry.node, self.now_us);
        let Phase::Closes(farewell) = &mut relay.phase else { return false };
        let octets: Vec<u8> = relay.from_client.octets.drain(..).collect();
        farewell.read(&octets);
        let is_over = farewell.is_over() || relay.from_client.has_ended || now >= farewell.until();
        if is_over {
            self.hang_up(id, relay);
        }
        is_over
    }

    /// The relay ends.
    fn finish(&mut self, id: u64, relay: &mut Relay, end: End) {
        let now = self.relays.own_time(relay.entry.node, self.now_us);
        self.check_end(id, relay, &end);
        let end = relay.up.end_after(end);
        self.tell(format_args!("relay {id} ends: {end:?}"));
        relay.is_orderly = matches!(end, End::Closed | End::Close(_));
        match end {
            End::Closed | End::ClientGone | End::Cut => self.hang_up(id, relay),
            End::Close(refusal) => {
                let mut out = Vec::new();
                relay.session.fail(now, &refusal, MethodId::NONE, &mut out);
                relay.own = Some((relay.client_down.count(), out.iter().copied().collect()));
                self.send_to_client(id, relay, out, false);
                relay.phase = Phase::Closes(relay.up.farewell(now));
            }
        }
    }

    /// Closes the sockets of a relay.
    pub(super) fn hang_up(&mut self, id: u64, relay: &mut Relay) {
        relay.phase = Phase::Over;
        self.send_to_client(id, relay, Vec::new(), true);
        let is_lost = relay.has_left && self.relays.has(Sabotage::RelayClientEndLost);
        if let Some(stream) = relay.stream.filter(|_| !is_lost) {
            self.send_piece(stream, Way::Up, Piece::End);
        }
    }

    /// The number of octets of a read.
    fn read_count(&mut self, read_max: usize, there: usize) -> usize {
        let most = read_max.min(there);
        match self.relays.random.percent(50) {
            true => most,
            false => 1 + usize::try_from(self.relays.random.below(most as u64)).unwrap_or(0),
        }
    }
}
