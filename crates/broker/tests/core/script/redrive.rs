//! `redrive QUEUE origin|first|queue=NAME|exchange=NAME [key=KEY] [limit=N] [only=SEQ] [kept]
//! [dry]`: the messages that wait there, those in pages, too, go back; or the dead letters that the queue keeps.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use broker::redrive::{Redrive, RedriveTo, Redriven};
use broker::refusal::Refusal;
use broker::{Entry, MessageState};

use super::World;
use super::setup::access;
use super::words::Words;
use crate::disk::look::browse_all;

impl World {
    pub(super) fn redrive(&mut self, client: &str, words: &mut Words, out: &mut Vec<String>) {
        let is_dry = words.flag("dry");
        let is_of_kept = words.flag("kept");
        let limit = words.named("limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let only: Option<u64> = words.named("only").map(|seq| seq.parse().unwrap());
        let to = to(words);
        let name = words.next();
        let Some(queue) = self.vhost.queue_id(&name) else {
            return out.push(format!("{name} is gone"));
        };
        let mut waiting = Vec::new();
        let states: &[MessageState] = match is_of_kept {
            true => &[MessageState::Dead],
            false => &[MessageState::Ready, MessageState::Delayed],
        };
        for state in states {
            waiting.extend(browse_all(&self.vhost, &mut self.page_store, (&name, *state), 2));
        }
        waiting.retain(|message| only.is_none_or(|seq| message.entry.id.seq == seq));
        waiting.truncate(limit);
        let access = self.access.get(client).cloned().unwrap_or_else(|| access(client, [".*"; 3]));
        let now = self.now();
        let redrive = Redrive { queue, to: &to, access: &access, is_of_kept };
        if is_dry {
            for message in waiting {
                let targets = self.vhost.redrive_targets(now, redrive, &message.entry);
                out.push(match targets {
                    Ok(targets) => format!("would go to [{}]", targets.join(", ")),
                    Err(Redriven::Refused(refusal)) => refused(&refusal),
                    Err(Redriven::NoOrigin) => "has no origin".to_owned(),
                    Err(_) => "would go to []".to_owned(),
                });
            }
            return;
        }
        let mut chosen: Vec<Entry> = waiting.into_iter().map(|message| message.entry).collect();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        loop {
            let redriven = match self.vhost.redrive(now, redrive, &chosen) {
                Ok(redriven) => redriven,
                Err(refusal) => return out.push(refused(&refusal)),
            };
            chosen.drain(..redriven.len());
            for outcome in redriven {
                let what = match outcome {
                    Redriven::Moved => "moved".to_owned(),
                    Redriven::Unroutable => "unroutable".to_owned(),
                    Redriven::NoOrigin => "no-origin".to_owned(),
                    Redriven::Gone => "gone".to_owned(),
                    Redriven::Refused(refusal) => refused(&refusal),
                };
                *counts.entry(what).or_default() += 1;
            }
            if chosen.is_empty() || self.vhost.has_alarm() {
                break;
            }
        }
        let mut line = "redriven:".to_owned();
        counts.iter().for_each(|(what, count)| write!(line, " {what}={count}").unwrap());
        out.push(line);
    }
}

fn to(words: &mut Words) -> RedriveTo {
    let key = words.named("key").map(|key| key.as_str().into());
    if let Some(queue) = words.named("queue") {
        return RedriveTo::Queue(queue.as_str().into());
    }
    if let Some(exchange) = words.named("exchange") {
        let exchange = Arc::from(if exchange == "-" { "" } else { &exchange });
        return RedriveTo::Exchange { exchange, routing_key: key };
    }
    match words.flag("first") {
        true => RedriveTo::First,
        false => {
            words.flag("origin");
            RedriveTo::Origin
        }
    }
}

fn refused(refusal: &Refusal) -> String {
    format!("refused {} {refusal}", refusal.code.code())
}
