//! Changes of the metadata, which operators ask any node for.

use crate::checks::metadata_log::Answer;
use crate::clients::operator::Waits;
use crate::event::Event;
use crate::plan::below;
use crate::world::World;

impl World {
    /// An operator does something.
    pub(crate) fn operator(&mut self, number: usize) {
        let pause_us = 1_000 + self.random.below(60_000);
        self.after(pause_us, Event::Client(number));
        if let Some(waits) = self.operators.all[number] {
            if self.waits(waits) {
                return;
            }
            self.operators.all[number] = None;
        }
        if self.operators.rest {
            return;
        }
        let node = match self.random.percent(75) {
            true => self.operators.leader,
            false => below(&mut self.random, self.nodes.len()),
        };
        if self.nodes[node].is_paused || self.nodes[node].process.is_none() {
            return;
        }
        let Self { operators, book, random, now_us, .. } = self;
        let log = book.ledger.metadata();
        let changes = operators.draw(log, random);
        let keys: Vec<_> = changes.iter().map(|change| &change.key).collect();
        let text = format!("{keys:?}");
        let change = log.ask(changes, *now_us);
        let until_us = *now_us + 300_000 + random.below(5_000_000);
        operators.all[number] = Some(Waits { change, node, until_us });
        self.tell(format_args!("node {node} is asked for change {change}: {text}"));
        self.with(node, |process, ctx| process.ask_change(change, ctx));
    }

    /// True if an operator goes on to wait.
    fn waits(&mut self, waits: Waits) -> bool {
        let Waits { change, node, until_us } = waits;
        match self.book.ledger.metadata().answer(change) {
            Some(Answer::Made) => {
                self.operators.leader = node;
                let asked_us = self.book.ledger.metadata().asked_us(change);
                self.is_ready |= asked_us >= self.operators.healed_us;
            }
            Some(Answer::Refused | Answer::Unknown) => {
                self.operators.leader = below(&mut self.random, self.nodes.len());
            }
            None if self.now_us < until_us => return true,
            None => {
                self.tell(format_args!("nobody waits for change {change} any more"));
                let now_us = self.now_us;
                self.book.ledger.metadata().answered(change, Answer::Unknown, now_us);
                self.operators.leader = below(&mut self.random, self.nodes.len());
                if let Some(process) = &mut self.nodes[node].process
                    && let Some(metadata) = process.content.metadata()
                {
                    metadata.give_up(change);
                }
            }
        }
        false
    }

    /// The cluster has to make another change, to be ready.
    pub(crate) fn ask_anew(&mut self) {
        (self.is_ready, self.operators.rest) = (false, false);
        self.operators.healed_us = self.now_us;
    }

    /// Operators take a rest, and the changes that they wait for are over.
    pub(crate) fn are_changes_over(&mut self) -> bool {
        self.operators.rest = true;
        self.operators.all.iter().all(Option::is_none)
    }

    /// True if every node shows its items: a leader shows none while its regular digest is on its way.
    pub(crate) fn are_items_shown(&mut self) -> bool {
        self.nodes.iter_mut().filter_map(|node| node.process.as_mut()).all(|process| {
            process.content.metadata().is_none_or(|metadata| metadata.last_shown().is_some())
        })
    }

    /// Ends the run: what all nodes have must be explained by the answers.
    pub(crate) fn end_metadata(&mut self) {
        self.book.ledger.metadata().end();
        for node in 0..self.nodes.len() {
            let Some(process) = &mut self.nodes[node].process else { continue };
            let Some(metadata) = process.content.metadata() else { continue };
            let last = metadata.last_shown();
            if last != Some(self.book.ledger.metadata().last()) {
                let text = format!("node {node} shows its items up to {last:?} in the end");
                self.book.violation(text);
            }
        }
        self.book.look_at_ledger();
    }
}
