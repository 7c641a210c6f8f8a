//! The leader: it judges whether it can take a client, and serves those that it has adopted.

use replica::limits::{LEADER_WAIT, PEER_AWAY};
use replica::relay::{Answer, Standing, judge};

use crate::clients::client::{Client, Part, Source};
use crate::cluster::content::serving::Departed;
use crate::cluster::ids::node_number;
use crate::cluster::process::Process;
use crate::relays::ends::{Side, Way};
use crate::relays::stream::{Piece, Stream};
use crate::world::World;

/// Time after which a node asks whether the other end of a stream is there, as the server has its operating system do.
pub(super) const PROBE_US: u64 = 15_000_000;

/// A node that is asked to adopt a client.
struct Asked<'a>(&'a Process);

impl Standing for Asked<'_> {
    /// Processes of the simulation end without a farewell.
    fn is_stopping(&self) -> bool {
        false
    }

    /// There is one user, and one vhost.
    fn knows_client(&self) -> bool {
        true
    }

    fn leads(&self) -> Result<(), Option<String>> {
        match self.0.content.is_leading_vhost() {
            true => Ok(()),
            false => Err(self.0.leader.map(|leader| node_number(leader).to_string())),
        }
    }
}

/// True if the node serves the vhost or knows the node that does.
pub(super) fn has_settled(process: &Process, node: usize) -> bool {
    let is_elsewhere = process.leader.is_some_and(|leader| node_number(leader) != node);
    process.serves().is_some() && !process.content.is_frozen_vhost() || is_elsewhere
}

impl World {
    /// A piece arrives at the leader, or at the node that is asked.
    pub(super) fn leader_hears(&mut self, id: u64, piece: Piece) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        let side = stream.leader;
        match piece {
            Piece::Adopt => {
                stream.asked_us = Some(self.relays.own[side.node].us);
                self.judge(id);
            }
            Piece::Octets(octets) => {
                stream.up.unread -= octets.len();
                stream.up_bytes += octets.len() as u64;
                if let Some(connection) = stream.adopted {
                    self.story.add(&octets);
                    self.with(side.node, |process, ctx| {
                        let now = process.now(ctx.reading);
                        let Some(serving) = process.content.vhost() else { return };
                        serving.receive(connection, &octets, now);
                        process.touched(ctx);
                    });
                }
                self.pump_stream(id);
            }
            Piece::End => {
                self.check_up_bytes(id);
                self.end_at_leader(id);
                self.send_piece(id, Way::Down, Piece::End);
            }
            Piece::Answer(_) => panic!("an entry node answers nothing"),
        }
    }

    /// The node that is asked answers, once it has settled who leads the vhost.
    fn judge(&mut self, id: u64) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        let (Some(asked_us), Side { node, .. }) = (stream.asked_us, stream.leader) else { return };
        let Some(process) = &self.nodes[node].process else { return };
        let waited_us = u128::from(self.relays.own[node].us - asked_us);
        let is_time_up = waited_us > LEADER_WAIT.as_micros();
        let asked = Asked(process);
        let settled = has_settled(process, node) || is_time_up;
        let answer = judge(&asked, false).or_else(|| settled.then(|| judge(&asked, true))?);
        let Some(answer) = answer else { return };
        stream.asked_us = None;
        self.tell(format_args!("node {node} answers to relay {id}: {answer:?}"));
        let is_adopted = answer == Answer::Adopted;
        self.send_piece(id, Way::Down, Piece::Answer(answer));
        if is_adopted {
            self.adopt(id);
        } else {
            self.end_at_leader(id);
            self.send_piece(id, Way::Down, Piece::End);
        }
    }

    fn adopt(&mut self, id: u64) {
        let stream = &self.relays.streams[&id];
        let (client, node) = (stream.client, stream.leader.node);
        let Some(relay) = self.relays.all.get(&stream.relay) else { return };
        let reading = self.nodes[node].reading(self.now_us);
        let Some(process) = &mut self.nodes[node].process else { return };
        let now = process.now(reading);
        let serving = process.content.vhost();
        let adopted = serving.and_then(|serving| serving.adopt(client, &relay.session, now));
        self.relays.adopted += u64::from(adopted.is_some());
        let stream = self.relays.streams.get_mut(&id).expect("it is there");
        (stream.adopted, stream.was_adopted) = (adopted, adopted.is_some());
        stream.tap = Some(Client::new(Part::Consumes, Vec::new()));
        // The answer to `connection.open` leaves.
        self.with(node, |process, ctx| process.touched(ctx));
    }

    /// The stream of an adopted client.
    pub(crate) fn stream_of(&self, node: usize, departed: &Departed) -> Option<u64> {
        let is_it = |stream: &Stream| {
            stream.leader.node == node && stream.adopted == Some(departed.connection)
        };
        let found = self.relays.streams.iter().find(|(_, stream)| is_it(stream));
        found.map(|(id, _)| *id)
    }

    /// Octets leave the leader for an adopted client.
    pub(crate) fn depart_to_stream(&mut self, id: u64, departed: &Departed, source: Source) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        stream.unsent.extend(&departed.bytes);
        stream.expected.extend(&departed.bytes);
        if let Some(mut tap) = stream.tap.take() {
            let goes_on = tap.heard(&departed.bytes, source, &mut self.book, self.now_us);
            stream.tap = goes_on.then_some(tap);
        }
        if departed.is_last {
            self.over_at_leader(id);
        }
        self.flush_leader(id);
    }

    /// The leader sends what the stream takes.
    pub(super) fn flush_leader(&mut self, id: u64) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        if stream.down.has_ended || stream.unsent.is_empty() && !stream.is_over {
            return;
        }
        let count = stream.room(Way::Down).min(stream.unsent.len());
        let octets: Vec<u8> = stream.unsent.drain(..count).collect();
        let is_end = stream.is_over && stream.unsent.is_empty();
        if !octets.is_empty() {
            self.send_piece(id, Way::Down, Piece::Octets(octets));
        }
        if is_end {
            self.send_piece(id, Way::Down, Piece::End);
        }
    }

    /// The client of a stream is gone for the leader.
    fn end_at_leader(&mut self, id: u64) {
        let Some(stream) = self.relays.streams.get(&id) else { return };
        let (adopted, node) = (stream.adopted, stream.leader.node);
        self.over_at_leader(id);
        if let Some(connection) = adopted {
            self.with(node, |process, ctx| {
                let now = process.now(ctx.reading);
                let Some(serving) = process.content.vhost() else { return };
                serving.disconnect(connection, now);
                process.touched(ctx);
            });
        }
    }

    /// The leader has no more to do with a client: nothing that it has sent is done any more.
    fn over_at_leader(&mut self, id: u64) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        (stream.adopted, stream.asked_us, stream.is_over) = (None, None, true);
        let (purges, deletions) = std::mem::take(&mut stream.doubts);
        self.book.open_purges -= purges;
        self.book.doubts += deletions;
    }

    /// A leader looks after a stream.
    pub(super) fn tend_leader(&mut self, id: u64) {
        let stream = &self.relays.streams[&id];
        let (entry, leader) = (stream.entry, stream.leader);
        if !self.runs(leader) {
            // The operating system ends the stream of a process that is gone.
            self.over_at_leader(id);
            self.send_piece(id, Way::Down, Piece::End);
        } else {
            self.judge(id);
            let away_us = u128::from(self.relays.apart_us(leader.node, entry.node));
            let is_away = away_us > PEER_AWAY.as_micros();
            if is_away || self.is_probed(id, Way::Up) {
                self.end_at_leader(id);
                self.send_piece(id, Way::Down, Piece::End);
            }
            self.flush_leader(id);
        }
        self.check_adopted(id);
        let stream = &self.relays.streams[&id];
        let is_needed = self.relays.all.get(&stream.relay).is_some_and(|it| it.stream == Some(id));
        if stream.is_over && !is_needed {
            self.relays.streams.remove(&id);
        }
    }

    /// True if the sender of a direction is found to be gone, although nobody has told: its operating system answers that it
    /// knows nothing of the stream.
    pub(super) fn is_probed(&mut self, id: u64, way: Way) -> bool {
        let Some(stream) = self.relays.streams.get(&id) else { return false };
        let (side, other) = match way {
            Way::Up => (stream.leader, stream.entry),
            Way::Down => (stream.entry, stream.leader),
        };
        let (ran_us, is_gone) = (self.relays.own[side.node].us, !self.runs(other));
        let can_answer = self.network.reaches(side.node, other.node);
        let Some(stream) = self.relays.streams.get_mut(&id) else { return false };
        let pipe = stream.pipe(way);
        pipe.gone_us = is_gone.then(|| pipe.gone_us.unwrap_or(ran_us));
        can_answer && pipe.gone_us.is_some_and(|since_us| ran_us - since_us >= PROBE_US)
    }
}
