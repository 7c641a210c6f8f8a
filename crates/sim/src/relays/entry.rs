//! The entry node of a client: it seeks the leader of the vhost, which adopts the client.

use std::sync::Arc;

use replica::limits::{LEADER_CHECK_INTERVAL, PEER_AWAY, RELAY_READ_BYTES};
use replica::relay::{
    Answer, Downwards, Found, Leader, LeaderWatch, Reply, Seek, Upwards, is_cut_off, is_superseded,
    leader_lost,
};

use crate::clients::handshake::entry_session;
use crate::cluster::ids::{node_number, number_of};
use crate::faults::sabotage::Sabotage;
use crate::relays::ends::{Side, Way};
use crate::relays::leader::has_settled;
use crate::relays::relay::{Flying, Inbox, Phase, Relay, Seeking};
use crate::relays::stream::{Piece, Stream};
use crate::world::World;

/// Silence of a node, in microseconds, after which it is not heard any more.
const SILENCE_US: u64 = 1_000_000;

impl World {
    /// A client connects to any node.
    pub(crate) fn connect_anywhere(&mut self, client: usize) {
        if self.clients[client].relay.is_some() {
            return;
        }
        let node = usize::try_from(self.relays.random.below(self.nodes.len() as u64)).unwrap_or(0);
        let there = &self.nodes[node];
        let Some(process) = there.process.as_ref().filter(|_| !there.is_paused) else { return };
        if process.serves().is_some() {
            return self.connect_to(client, node);
        }
        if self.leader_elsewhere(node).is_none() {
            // The vhost has no leader: the client is refused.
            return;
        }
        let (entry, now) =
            (Side { node, run: process.run }, self.relays.own_time(node, self.now_us));
        let session = entry_session(process.now(there.reading(self.now_us)).time);
        let seek = Seek::new(&node.to_string(), "/", "guest", now);
        let id = self.relays.new_id();
        let random = &mut self.relays.random;
        let read_max = [3, 100, 4_096, RELAY_READ_BYTES];
        let read_max = read_max[usize::try_from(random.below(4)).unwrap_or(0)];
        let relay = Relay {
            client,
            entry,
            phase: Phase::Seeks(Seeking { seek, asked: None, again_us: 0 }),
            stream: None,
            session,
            up: Upwards::default(),
            down: Downwards::new("/"),
            watch: LeaderWatch::default(),
            from_client: Inbox::default(),
            from_leader: Inbox::default(),
            to_leader: Vec::new(),
            to_client: Vec::new(),
            read_max,
            window: 512 << random.below(8),
            client_up: Flying::default(),
            client_down: Flying::default(),
            client_newest_us: [0; 2],
            client_reads_from_us: 0,
            client_sent: 0,
            heard: Vec::new(),
            own: None,
            has_close: false,
            has_left: false,
            since_us: [None; 4],
            is_orderly: false,
        };
        self.tell(format_args!("client {client} connects to node {node}, relay {id}"));
        self.clients[client].relay = Some(id);
        self.relays.all.insert(id, Box::new(relay));
        self.seek_on(id);
    }

    /// Number of the other node that leads the vhost, as far as a node knows; none if it serves the vhost itself.
    pub(super) fn leader_elsewhere(&self, node: usize) -> Option<usize> {
        let leader = self.nodes[node].process.as_ref()?.leader?;
        Some(node_number(leader)).filter(|leader| *leader != node)
    }

    fn known_leader(&self, node: usize) -> Option<Arc<str>> {
        let process = self.nodes[node].process.as_ref()?;
        process.leader.map(|leader| node_number(leader).to_string().into())
    }

    /// True while a node hears a majority of those that have the vhost.
    pub(super) fn may_elect(&self, node: usize) -> bool {
        let Some(process) = &self.nodes[node].process else { return false };
        let members = process.members();
        let hears = |other: usize| other == node || self.relays.apart_us(node, other) < SILENCE_US;
        let heard = members.iter().filter(|it| hears(number_of(**it))).count();
        heard * 2 > members.len()
    }

    /// Asks the next node, when it is time.
    fn seek_on(&mut self, id: u64) {
        let Some(relay) = self.relays.all.get(&id) else { return };
        let (entry, client) = (relay.entry, relay.client);
        let Phase::Seeks(seeking) = &relay.phase else { return };
        let now = self.relays.own_time(entry.node, self.now_us);
        if let Some((asked, first)) = seeking.asked.clone() {
            let until = seeking.seek.until();
            let leader = asked.parse().unwrap_or(0);
            let hears = self.relays.apart_us(entry.node, leader) < SILENCE_US;
            let known = self.known_leader(entry.node);
            let reply = match () {
                () if is_superseded(&asked, first.as_deref(), known.as_deref()) => {
                    Reply::Superseded
                }
                () if is_cut_off(hears, || self.may_elect(entry.node)) => Reply::CutOff(None),
                () if now >= until => Reply::Silent,
                () => return,
            };
            return self.seek_heard(id, reply);
        }
        let is_time = now.as_micros() >= seeking.again_us;
        let process = self.nodes[entry.node].process.as_ref().expect("the entry node runs");
        if !is_time || !has_settled(process, entry.node) && now < seeking.seek.until() {
            return;
        }
        let (known, first) = (self.leader_elsewhere(entry.node), self.known_leader(entry.node));
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        let Phase::Seeks(seeking) = &mut relay.phase else { return };
        let Some(leader) = seeking.seek.next(|| known.map(|known| known.to_string().into())) else {
            // The client is refused, or connects to this node when it comes again.
            return self.give_up(id);
        };
        seeking.asked = Some((Arc::clone(&leader), first));
        let (node, window) = (leader.parse().unwrap_or(0), relay.window);
        let Some(run) = self.nodes[node].process.as_ref().map(|process| process.run) else {
            if self.relays.random.percent(50) {
                self.seek_heard(id, Reply::Failed("connection refused".to_owned()));
            }
            return;
        };
        let stream = self.relays.new_id();
        let ends = (entry, Side { node, run });
        self.relays.streams.insert(stream, Stream::new(id, client, ends, window));
        if let Some(relay) = self.relays.all.get_mut(&id) {
            relay.stream = Some(stream);
        }
        self.send_piece(stream, Way::Up, Piece::Adopt);
    }

    /// Acts on what came of a question.
    fn seek_heard(&mut self, id: u64, reply: Reply) {
        let Some(node) = self.relays.all.get(&id).map(|relay| relay.entry.node) else { return };
        let now = self.relays.own_time(node, self.now_us);
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        let (Phase::Seeks(seeking), stream) = (&mut relay.phase, relay.stream) else { return };
        if seeking.asked.take().is_none() {
            return;
        }
        let found = seeking.seek.heard(reply, now);
        if !matches!(found, Found::Adopted(_)) {
            relay.stream = None;
            if let Some(stream) = stream {
                self.send_piece(stream, Way::Up, Piece::End);
            }
        }
        match found {
            Found::Adopted(leader) => {
                let is_true = stream.is_some_and(|stream| {
                    self.relays.streams.get(&stream).is_some_and(|stream| stream.was_adopted)
                });
                if !is_true {
                    let text = format!("relay {id} copies to node {leader}, which has not adopted");
                    self.book.violation(text);
                }
                if let Some(relay) = self.relays.all.get_mut(&id) {
                    relay.phase = Phase::Copies;
                }
                self.pump(id);
            }
            Found::Here | Found::Refused(_) => self.give_up(id),
            Found::Again => {
                let wait_us = u64::try_from(LEADER_CHECK_INTERVAL.as_micros()).unwrap_or(u64::MAX);
                if let Some(Phase::Seeks(seeking)) =
                    self.relays.all.get_mut(&id).map(|relay| &mut relay.phase)
                {
                    seeking.again_us = now.plus_micros(wait_us).as_micros();
                }
            }
        }
    }

    /// The client is refused.
    fn give_up(&mut self, id: u64) {
        let Some(relay) = self.relays.all.remove(&id) else { return };
        self.tell(format_args!("relay {id} finds no leader"));
        self.clients[relay.client].relay.take_if(|it| *it == id);
    }

    /// A piece arrives at the entry node.
    pub(super) fn entry_hears(&mut self, stream: u64, piece: Piece) {
        let relay = self.relays.streams.get(&stream).map_or(0, |stream| stream.relay);
        let is_overtaken = self.relays.has(Sabotage::RelayEndOvertakes);
        let takes_for_adopted = self.relays.has(Sabotage::NotLeadingAdopted);
        let here = self.relays.all.get_mut(&relay).filter(|relay| relay.stream == Some(stream));
        let Some(there) = here else {
            // The socket is closed.
            return self.send_piece(stream, Way::Up, Piece::End);
        };
        match piece {
            Piece::Answer(answer) => {
                let answer = match answer {
                    Answer::NotLeading(_) if takes_for_adopted => Answer::Adopted,
                    answer => answer,
                };
                return self.seek_heard(relay, Reply::Answer(answer));
            }
            Piece::Octets(octets) => there.from_leader.octets.extend(&octets),
            Piece::End if matches!(there.phase, Phase::Seeks(_)) => {
                return self.seek_heard(relay, Reply::Failed("it closed the stream".to_owned()));
            }
            Piece::End => {
                there.from_leader.has_ended = true;
                if is_overtaken {
                    there.from_leader.octets.clear();
                }
            }
            Piece::Adopt => panic!("a leader asks nothing"),
        }
        self.pump(relay);
    }

    /// An entry node looks after a relay.
    pub(super) fn tend_entry(&mut self, id: u64) {
        let Some(relay) = self.relays.all.get(&id) else { return };
        let (entry, stream) = (relay.entry, relay.stream);
        if !self.runs(entry) {
            return self.entry_lost(id);
        }
        if matches!(relay.phase, Phase::Seeks(_)) {
            return self.seek_on(id);
        }
        let leader = stream.and_then(|it| self.relays.streams.get(&it)).map(|it| it.leader);
        if let Some(leader) = leader {
            self.look_at_leader(id, leader);
        }
        self.pump(id);
        self.check_relay(id);
    }

    /// The process of an entry node is gone, and with it the sockets of its clients.
    fn entry_lost(&mut self, id: u64) {
        let Some(relay) = self.relays.all.remove(&id) else { return };
        self.tell(format_args!("the entry node of relay {id} is lost"));
        self.leave_relay(relay.client, id, relay.stream);
        if let Some(stream) = relay.stream {
            self.send_piece(stream, Way::Up, Piece::End);
        }
    }

    /// The entry node looks whether the leader is away, or is one no more.
    fn look_at_leader(&mut self, id: u64, leader: Side) {
        let Some(relay) = self.relays.all.get(&id) else { return };
        let (entry, stream) = (relay.entry, relay.stream);
        let known = self.known_leader(entry.node);
        let adopted = leader.node.to_string();
        let is_away =
            u128::from(self.relays.apart_us(entry.node, leader.node)) > PEER_AWAY.as_micros();
        let is_linked = self.network.is_up(entry.node, leader.node);
        let may_elect = self.may_elect(entry.node);
        let is_probed = stream.is_some_and(|stream| self.is_probed(stream, Way::Down));
        let is_deaf = self.relays.has(Sabotage::RelayKeepsLeader);
        let now = self.relays.own_time(entry.node, self.now_us);
        let Some(relay) = self.relays.all.get_mut(&id) else { return };
        relay.from_leader.has_ended |= is_probed;
        let beside = Leader::beside(&adopted, known.as_deref(), || may_elect);
        relay.watch.look(beside, is_linked, now);
        let is_over = relay.watch.until().is_some_and(|until| now >= until);
        if is_over && !is_deaf || is_away {
            relay.down.close(leader_lost("/"), now);
        }
        let is_another = beside == Leader::Another;
        relay.since_us[0] = is_another.then(|| relay.since_us[0].unwrap_or(now.as_micros()));
    }
}
