//! Pieces of streams on their way over the network.

use crate::event::Event;
use crate::relays::ends::{RelayEvent, Way};
use crate::relays::stream::{Piece, Stream};
use crate::world::World;

impl World {
    /// Sends a piece. Nothing follows the end.
    pub(super) fn send_piece(&mut self, id: u64, way: Way, piece: Piece) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        let pipe = stream.pipe(way);
        if pipe.has_ended {
            return;
        }
        pipe.has_ended = matches!(piece, Piece::End);
        if let Piece::Octets(octets) = &piece {
            pipe.unread += octets.len();
        }
        pipe.held.push_back(piece);
        self.release_pipe(id, way);
    }

    /// Lets fly what is held back, unless the direction is cut.
    fn release_pipe(&mut self, id: u64, way: Way) {
        let now_us = self.now_us;
        loop {
            let Some(stream) = self.relays.streams.get_mut(&id) else { return };
            let (from, to) = stream.ends(way);
            let delay_us = self.network.stream_delay_us(from, to, &mut self.relays.random);
            let (Some(delay_us), pipe) = (delay_us, stream.pipe(way)) else { return };
            let Some(piece) = pipe.held.pop_front() else { return };
            pipe.newest_us = (now_us + delay_us).max(pipe.newest_us + 1);
            pipe.flying.push_back(piece);
            let wait_us = pipe.newest_us - now_us;
            self.after(wait_us, Event::Relayed(RelayEvent::Piece(id, way, to)));
        }
    }

    /// Lets fly what a node could not send while a direction was cut.
    pub(super) fn release_held(&mut self, node: usize) {
        for id in self.relays.streams.keys().copied().collect::<Vec<_>>() {
            for way in [Way::Up, Way::Down] {
                let stream = &self.relays.streams[&id];
                if stream.ends(way).0 == node {
                    self.release_pipe(id, way);
                }
            }
        }
    }

    /// The next piece of a stream arrives at a node.
    pub(super) fn piece_arrives(&mut self, id: u64, way: Way, node: usize) {
        let Some(stream) = self.relays.streams.get_mut(&id) else { return };
        let Some(piece) = stream.pipe(way).flying.pop_front() else { return };
        let side = if way == Way::Up { stream.leader } else { stream.entry };
        assert_eq!(side.node, node, "a piece arrives where it was sent to");
        if self.runs(side) {
            return match way {
                Way::Up => self.leader_hears(id, piece),
                Way::Down => self.entry_hears(id, piece),
            };
        }
        if self.nodes[node].process.is_some() && !matches!(piece, Piece::End) {
            // Another process knows nothing of the stream.
            let back = if way == Way::Up { Way::Down } else { Way::Up };
            self.send_piece(id, back, Piece::End);
        }
    }

    /// The streams between two nodes break: what is on its way is lost, and both ends are told.
    pub(crate) fn break_streams(&mut self, one: usize, other: usize) {
        for id in self.streams_of(one) {
            let Some(stream) = self.relays.streams.get_mut(&id) else { continue };
            let (from, to) = stream.ends(Way::Up);
            if (from, to) != (one, other) && (from, to) != (other, one) {
                continue;
            }
            for way in [Way::Up, Way::Down] {
                if let Some(stream) = self.relays.streams.get_mut(&id) {
                    let pipe = stream.pipe(way);
                    pipe.tear();
                    (pipe.has_ended, pipe.is_torn) = (false, true);
                }
                self.send_piece(id, way, Piece::End);
            }
        }
    }

    /// A node has lost its power: what was on its way is lost, and nobody is told.
    pub(crate) fn darken_streams(&mut self, node: usize) {
        for id in self.streams_of(node) {
            let Some(stream) = self.relays.streams.get_mut(&id) else { continue };
            for way in [Way::Up, Way::Down] {
                let from_here = stream.ends(way).0 == node;
                let pipe = stream.pipe(way);
                pipe.tear();
                pipe.has_ended |= from_here;
            }
        }
    }

    fn streams_of(&self, node: usize) -> Vec<u64> {
        let is_of = |stream: &Stream| stream.entry.node == node || stream.leader.node == node;
        let of = self.relays.streams.iter().filter(|(_, stream)| is_of(stream));
        of.map(|(id, _)| *id).collect()
    }
}
