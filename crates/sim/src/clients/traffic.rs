//! Clients as the run sees them: what they do, and the octets between them and the nodes.

use crate::clients::client::{Part, Place, Source};
use crate::cluster::process::Process;
use crate::event::Event;
use crate::world::World;

impl World {
    /// Passes on what leaves a node for clients.
    pub(crate) fn depart(&mut self, node: usize) {
        let Some(process) = &mut self.nodes[node].process else { return };
        let Some(serving) = process.content.vhost() else { return };
        let departed = std::mem::take(&mut serving.departed);
        if departed.is_empty() {
            return;
        }
        let (term, stale_ticks) = match process.serves() {
            Some(term) if term < self.book.newest_term => (term, Some(process.stale_ticks)),
            Some(term) => (term, None),
            // A leader that was just deposed, before its clients are closed.
            None => (process.served, None),
        };
        let source = Source { node, term, stale_ticks };
        for departed in departed {
            if let Some(stream) = self.stream_of(node, &departed) {
                self.depart_to_stream(stream, &departed, source);
                continue;
            }
            let client = &mut self.clients[departed.client];
            if client.relay.is_some() || client.place.is_none_or(|place| place.node != node) {
                continue;
            }
            self.story.add(&departed.bytes);
            let goes_on = client.heard(&departed.bytes, source, &mut self.book, self.now_us);
            if !goes_on || departed.is_last {
                client.disconnected(&mut self.book);
            }
        }
    }

    /// A client does something.
    pub(crate) fn client(&mut self, number: usize) {
        let is_declaring = self.clients[number].part == Part::Declares;
        let pause_us = match self.clients[number].drains {
            true if is_declaring => 500_000,
            true => 5_000,
            false => 500 + self.random.below(30_000),
        };
        self.after(pause_us, Event::Client(number));
        if !is_declaring && !self.is_ready {
            return;
        }
        if self.clients[number].place.is_none() {
            return self.connect(number);
        }
        if is_declaring {
            self.declare(number);
            return;
        }
        if self.random.percent(1) && !self.clients[number].drains {
            return self.disconnect(number);
        }
        let Some(place) = self.clients[number].place else { return };
        let term = self.nodes[place.node].process.as_ref().and_then(Process::serves);
        let root = self.book.root_of(term.unwrap_or(0));
        let Self { clients, book, next_id, random, now_us, .. } = self;
        let bytes = clients[number].act(book, next_id, (*now_us, root), random);
        self.send_bytes(number, bytes);
    }

    fn connect(&mut self, number: usize) {
        if self.relays.is_on {
            return self.connect_anywhere(number);
        }
        let node = usize::try_from(self.random.below(self.nodes.len() as u64)).unwrap_or(0);
        self.connect_to(number, node);
    }

    /// A client connects to a node, if that serves clients.
    pub(crate) fn connect_to(&mut self, number: usize, node: usize) {
        if self.nodes[node].is_paused {
            return;
        }
        let reading = self.nodes[node].reading(self.now_us);
        let Some(process) = &mut self.nodes[node].process else { return };
        let now = process.now(reading);
        if process.serves().is_none() {
            return;
        }
        let connection = process.content.vhost().and_then(|it| it.connect(number, now));
        let Some(connection) = connection else { return };
        let place = Place { node, run: process.run, connection };
        let bytes = self.clients[number].connected(place, &mut self.book, &mut self.random);
        self.send_bytes(number, bytes);
    }

    pub(crate) fn disconnect(&mut self, number: usize) {
        let Some(place) = self.clients[number].place else { return };
        if self.clients[number].relay.is_some() {
            return self.leave_by_client(number);
        }
        self.clients[number].disconnected(&mut self.book);
        self.with(place.node, |process, ctx| {
            if process.run == place.run {
                let now = process.now(ctx.reading);
                let Some(serving) = process.content.vhost() else { return };
                serving.disconnect(place.connection, now);
                process.touched(ctx);
            }
        });
    }

    fn send_bytes(&mut self, number: usize, bytes: Vec<u8>) {
        let Some(Place { node, run, .. }) = self.clients[number].place else { return };
        if bytes.is_empty() {
            return;
        }
        if let Some(relay) = self.clients[number].relay {
            return self.send_from_client(relay, bytes, false);
        }
        let delay_us = 20 + self.random.below(500);
        let client = &mut self.clients[number];
        client.newest_us = (self.now_us + delay_us).max(client.newest_us + 1);
        let wait_us = client.newest_us - self.now_us;
        let epoch = client.epoch;
        self.after(wait_us, Event::Bytes(number, node, run, epoch, bytes));
    }

    pub(crate) fn bytes(&mut self, number: usize, node: usize, run: u64, epoch: u64, bytes: &[u8]) {
        let client = &self.clients[number];
        let Some(place) = client.place.filter(|place| place.node == node && place.run == run)
        else {
            return;
        };
        if client.epoch != epoch {
            return;
        }
        self.story.add(bytes);
        self.with(node, |process, ctx| {
            let now = process.now(ctx.reading);
            let Some(serving) = process.content.vhost() else { return };
            serving.receive(place.connection, bytes, now);
            process.touched(ctx);
        });
    }
}
