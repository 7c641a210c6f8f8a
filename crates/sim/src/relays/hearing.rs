//! The clients of relays: their sockets to the entry node, and what they hear.

use amqp::frame::{FrameType, split_frame};
use amqp::method::{ConnectionCloseOk, Method};

use crate::clients::client::{Place, Source};
use crate::clients::handshake::{FRAME_MAX, frame};
use crate::event::Event;
use crate::relays::ends::RelayEvent;
use crate::relays::relay::{Phase, Relay};
use crate::relays::table::Relays;
use crate::world::World;

/// A frame that matters to a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientFrame {
    /// The vhost is open.
    Open,
    /// The connection is closed.
    Close,
    Other,
}

impl World {
    /// Octets of a client leave for its entry node; `is_last` with the end of its stream.
    pub(crate) fn send_from_client(&mut self, id: u64, octets: Vec<u8>, is_last: bool) {
        let delay_us = 20 + self.relays.random.below(500);
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        relay.client_sent += octets.len() as u64;
        let at_us = (self.now_us + delay_us).max(relay.client_newest_us[0] + 1);
        relay.client_newest_us[0] = at_us;
        relay.client_up.push(at_us, octets, is_last);
        let event = RelayEvent::FromClient(id, relay.entry.node);
        self.after(at_us - self.now_us, Event::Relayed(event));
    }

    /// Octets of a client arrive at its entry node.
    pub(super) fn client_octets_arrive(&mut self, id: u64, node: usize) {
        let now_us = self.now_us;
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        assert_eq!(relay.entry.node, node, "a client sends to its entry node");
        while let Some((octets, is_last)) = relay.client_up.pop_arrived(now_us) {
            relay.from_client.octets.extend(octets);
            relay.from_client.has_ended |= is_last;
        }
        let entry = relay.entry;
        if self.runs(entry) {
            self.pump(id);
        }
    }

    /// The entry node sends octets to a client; `is_last` with the end of the stream.
    pub(super) fn send_to_client(
        &mut self,
        id: u64,
        relay: &mut Relay,
        octets: Vec<u8>,
        is_last: bool,
    ) {
        let at_us = self.now_us + 20 + self.relays.random.below(500);
        let at_us = at_us.max(relay.client_newest_us[1] + 1);
        relay.client_newest_us[1] = at_us;
        relay.client_down.push(at_us, octets, is_last);
        self.after(at_us - self.now_us, Event::Relayed(RelayEvent::ToClient(id)));
    }

    /// A client leaves its relay, and tells the entry node.
    pub(crate) fn leave_by_client(&mut self, client: usize) {
        let Some(id) = self.clients[client].relay else { return };
        self.send_from_client(id, Vec::new(), true);
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        (relay.has_left, relay.client_reads_from_us) = (true, 0);
        let stream = relay.stream;
        self.leave_relay(client, id, stream);
    }

    /// The connection of a client is over for the client. What it has sent may still be done, as long as the leader has it.
    pub(super) fn leave_relay(&mut self, client: usize, id: u64, stream: Option<u64>) {
        let there = &mut self.clients[client];
        if there.relay.take_if(|it| *it == id).is_none() {
            return;
        }
        let stream = stream.and_then(|stream| self.relays.streams.get_mut(&stream));
        if let Some(stream) = stream.filter(|stream| !stream.is_over) {
            let (purges, deletions) = there.take_doubts();
            stream.doubts.0 += purges;
            stream.doubts.1 += deletions;
        }
        there.disconnected(&mut self.book);
    }

    /// A client hears what has arrived, if it reads.
    pub(super) fn hear_relay(&mut self, id: u64) {
        let now_us = self.now_us;
        loop {
            let Some(relay) = self.relays.all.get_mut(&id) else { return };
            if relay.client_reads_from_us > now_us {
                return;
            }
            let Some((octets, is_last)) = relay.client_down.pop_arrived(now_us) else { break };
            self.story.add(&octets);
            self.check_order(id, &octets);
            self.hear_frames(id, &octets);
            if is_last {
                return self.hear_end(id);
            }
        }
        self.pause_client(id);
        // The socket has room again.
        let entry = self.relays.all.get(&id).map(|relay| relay.entry);
        if entry.is_some_and(|entry| self.runs(entry) && !self.nodes[entry.node].is_paused) {
            self.pump(id);
        }
    }

    /// A client reads no more for a while, now and then.
    fn pause_client(&mut self, id: u64) {
        let Relays { all, random, is_healed, .. } = &mut self.relays;
        let Some(relay) = all.get_mut(&id).filter(|relay| !relay.has_left) else { return };
        if !*is_healed && random.percent(1) {
            let most_us = 1_000 << random.below(15);
            relay.client_reads_from_us = self.now_us + random.below(most_us);
        }
    }

    fn hear_frames(&mut self, id: u64, octets: &[u8]) {
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        let client = relay.client;
        relay.heard.extend_from_slice(octets);
        let heard = std::mem::take(&mut relay.heard);
        let mut rest = heard.as_slice();
        loop {
            let (told, used) = match split_frame(rest, FRAME_MAX) {
                Ok(Some((frame, used))) => (told(frame.frame_type, frame.payload), used),
                Ok(None) => break,
                Err(error) => {
                    let text = format!("client {client} gets octets of no frame: {error:?}");
                    return self.book.violation(text);
                }
            };
            let (frame, behind) = rest.split_at(used);
            rest = behind;
            let Some(relay) = self.relays.all.get_mut(&id) else { return };
            let had_close = relay.has_close;
            relay.has_close |= told == ClientFrame::Close;
            if had_close {
                let text = format!("client {client} gets a frame behind the close: {told:?}");
                self.book.violation(text);
            }
            self.hear_frame(id, client, told, frame);
        }
        if let Some(relay) = self.relays.all.get_mut(&id) {
            relay.heard = rest.to_vec();
        }
    }

    fn hear_frame(&mut self, id: u64, client: usize, told: ClientFrame, frame_octets: &[u8]) {
        let there = &mut self.clients[client];
        if there.relay != Some(id) {
            return;
        }
        if told == ClientFrame::Open {
            return self.begin_relayed(id, client);
        }
        // What leaves the leader was looked at there.
        let source = Source { node: 0, term: 0, stale_ticks: None };
        let goes_on = there.heard(frame_octets, source, &mut self.book, self.now_us);
        if !goes_on {
            if told == ClientFrame::Close {
                self.send_from_client(id, frame(0, ConnectionCloseOk), false);
            }
            self.leave_by_client(client);
        }
    }

    /// The vhost is open.
    fn begin_relayed(&mut self, id: u64, client: usize) {
        let stream = self.relays.all.get(&id).and_then(|relay| relay.stream);
        let stream = stream.and_then(|stream| self.relays.streams.get(&stream));
        let Some(stream) = stream else { return };
        // The leader may have closed the connection since; then its octets follow.
        let Some(connection) = stream.adopted else { return };
        let place = Place { node: stream.leader.node, run: stream.leader.run, connection };
        let octets = self.clients[client].connected(place, &mut self.book, &mut self.random);
        self.send_from_client(id, octets, false);
    }

    /// A client hears that its connection is over.
    fn hear_end(&mut self, id: u64) {
        let Some(relay) = self.relays.all.remove(&id) else { return };
        assert!(matches!(relay.phase, Phase::Over), "the end is the last that a relay sends");
        if relay.is_orderly && !relay.has_left && !relay.heard.is_empty() {
            let (client, count) = (relay.client, relay.heard.len());
            let text = format!("client {client} is closed behind {count} octets of a frame");
            self.book.violation(text);
        }
        self.leave_relay(relay.client, id, relay.stream);
    }
}

fn told(frame_type: FrameType, payload: &[u8]) -> ClientFrame {
    match (frame_type, payload) {
        (FrameType::Method, [0, 10, 0, 41, ..]) => ClientFrame::Open,
        (FrameType::Method, _) => match Method::decode(payload) {
            Ok(Method::ConnectionClose(_)) => ClientFrame::Close,
            _ => ClientFrame::Other,
        },
        _ => ClientFrame::Other,
    }
}
