//! Changes of the metadata at a node, from the request of an operator to the answer.

use replica::Service;
use replica::metadata::{ChangeProgress, Items, PendingChange};

use crate::checks::metadata_log::Answer;
use crate::cluster::content::metadata::ServedMetadata;
use crate::cluster::process::{Context, Process};
use crate::faults::sabotage::Sabotage;

impl Process {
    /// An operator asks for a change.
    pub(crate) fn ask_change(&mut self, id: u64, ctx: &mut Context<'_>) {
        let Some(metadata) = self.content.metadata() else { return };
        let log = ctx.book.ledger.metadata();
        match metadata.local.ask(log.changes(id)) {
            Ok(pending) => metadata.pending.push((id, pending)),
            Err(why) => {
                log.answered(id, Answer::Refused, ctx.now_us);
                let number = ctx.number;
                ctx.story
                    .tell(ctx.now_us, format_args!("node {number} refuses change {id}: {why:?}"));
                if metadata.sabotage == Some(Sabotage::RefusedChangeKept) {
                    metadata.kept.push(id);
                }
            }
        }
    }

    /// Does what can be done for the changes that operators wait for, and looks at what the node shows as committed.
    pub(crate) fn advance_changes(&mut self, ctx: &mut Context<'_>) {
        let (term, leads) = match self.replica.service() {
            Service::Leads(term) => (term.0, term.0 >= ctx.book.newest_term),
            Service::Follows | Service::Promotes(_) | Service::Deposed => (0, false),
        };
        let Some(metadata) = self.content.metadata() else { return };
        metadata.take_kept_up(ctx);
        for (id, pending) in std::mem::take(&mut metadata.pending) {
            metadata.advance((id, pending), term, ctx);
        }
        metadata.show(leads, ctx);
        if metadata.wakes {
            self.touched(ctx);
        }
        ctx.book.look_at_ledger();
    }
}

impl ServedMetadata {
    /// Takes up what was refused, as a sabotage does.
    fn take_kept_up(&mut self, ctx: &mut Context<'_>) {
        if self.local.is_leading() {
            for id in std::mem::take(&mut self.kept) {
                let changes = ctx.book.ledger.metadata().changes(id);
                let pending = self.local.ask(changes).expect("the node leads");
                self.pending.push((id, pending));
            }
        }
    }

    fn advance(&mut self, asked: (u64, PendingChange), term: u64, ctx: &mut Context<'_>) {
        let (id, mut pending) = asked;
        let log = ctx.book.ledger.metadata();
        let was_proposed = pending.is_proposed();
        let before = (self.local.last().0, self.local.committed().map(Items::values));
        let mut progress = self.local.advance(&mut pending);
        if pending.is_proposed() && !was_proposed {
            let (last, items) = before;
            let items = items.expect("a change waits for the records before it");
            let items = items.into_iter().map(|(key, value)| (key, (*value).clone())).collect();
            let count = log.proposes(id, (term, last), &items, self.entry_bytes_max);
            let given = self.local.last().0 - last;
            let number = ctx.number;
            ctx.story.tell(
                ctx.now_us,
                format_args!("node {number} makes {given} records of change {id} behind {last}"),
            );
            if given != count as u64 {
                let text = format!("change {id} has {given} records, and changes {count} items");
                ctx.book.violation(text);
            }
            if self.is_halted && given > 0 {
                ctx.book.violation(format!("change {id} is made while the lead is handed over"));
            }
            self.wakes |= self.local.wakes_writer();
            match self.sabotage {
                Some(Sabotage::ChangeAnsweredEarly) => progress = ChangeProgress::Made,
                Some(Sabotage::UncommittedShown) => self.tell_all_durable(),
                _ => {}
            }
        }
        if self.sabotage == Some(Sabotage::LostChangeAnswered)
            && progress == ChangeProgress::Deposed
        {
            progress = ChangeProgress::Made;
        }
        let answer = match progress {
            ChangeProgress::Waits => return self.pending.push((id, pending)),
            ChangeProgress::Made => Answer::Made,
            ChangeProgress::Refused(_) => Answer::Refused,
            ChangeProgress::Deposed => Answer::Unknown,
        };
        ctx.story
            .tell(ctx.now_us, format_args!("node {} answers change {id}: {answer:?}", ctx.number));
        let log = ctx.book.ledger.metadata();
        if log.answer(id).is_none() {
            log.answered(id, answer, ctx.now_us);
        }
    }

    /// Shows what is committed.
    fn show(&mut self, leads: bool, ctx: &mut Context<'_>) {
        let last = self.local.last();
        let Some(items) = self.local.committed() else { return };
        let leads = leads && self.local.is_leading();
        if self.shown == Some((last, leads)) {
            return;
        }
        if self.shown.is_some_and(|(before, _)| last < before) {
            ctx.book.violation(format!("node {} shows older items", ctx.number));
        }
        self.shown = Some((last, leads));
        ctx.book.ledger.metadata().shown(ctx.number, items, last.0, leads);
    }
}
