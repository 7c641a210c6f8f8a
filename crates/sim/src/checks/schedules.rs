//! The knowledge of a run about schedules with names: what was asked for, what was answered, and what must follow.

use std::collections::BTreeMap;

use crate::checks::waits::{WaitEvent, Waits};
use crate::plan::FAST_PPM;

/// True time of a request in microseconds, and the root of the axis by which it was taken.
pub(crate) type Since = (u64, u64);

/// The meaning of a publish whose name is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Replace,
    Keep,
    Add,
}

/// A delivery time that a message may have.
#[derive(Clone, Copy, Debug)]
struct Due {
    since: Since,
    delay_ms: u64,
}

/// The part of a message in the committed log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// None, not yet or never.
    None,
    Waits,
    Released,
    Removed,
}

/// A message with a name.
#[derive(Debug)]
struct Scheduled {
    name: u64,
    mode: Mode,
    /// Number of requests and answers before its publish.
    sent_at: u64,
    confirmed_at: Option<u64>,
    /// Number of committed entries at its publish.
    entries_before: u64,
    /// Number of committed entries when it left.
    left_at: Option<u64>,
    part: Part,
    dues: Vec<Due>,
    was_moved: bool,
    /// True if it need not be delivered: it is confirmed, and was dropped, or removed before it was in the log.
    is_excused: bool,
    /// Older messages of the name that it must replace.
    covered: Vec<u64>,
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Cancel,
    /// Cancels all messages of the name, one after the other: one that gets another time meanwhile may be passed over.
    CancelAll,
    /// Gives another delivery time, in so many milliseconds.
    Reschedule(u64),
    Deliver,
}

impl Operation {
    /// The delay of the new delivery time, in milliseconds.
    fn delay_ms(self) -> Option<u64> {
        match self {
            Self::Cancel | Self::CancelAll => None,
            Self::Reschedule(delay_ms) => Some(delay_ms),
            Self::Deliver => Some(0),
        }
    }
}

/// A request for an operation.
#[derive(Debug)]
struct Request {
    operation: Operation,
    since: Since,
    /// Number of requests and answers before it.
    asked_at: u64,
    entries_before: u64,
    /// Number of requests and answers before its answer.
    answered_at: Option<u64>,
    /// Messages that were confirmed before it was sent.
    covered: Vec<u64>,
}

/// The knowledge about schedules.
#[derive(Default, Debug)]
pub(crate) struct ScheduleBook {
    messages: BTreeMap<u64, Scheduled>,
    names: BTreeMap<u64, Vec<u64>>,
    requests: BTreeMap<u64, Request>,
    /// Requests of each name.
    requests_of: BTreeMap<u64, Vec<u64>>,
    /// Number of requests and answers so far.
    steps: u64,
    pub(crate) found: u64,
    pub(crate) not_found: u64,
}

impl ScheduleBook {
    pub(crate) fn published(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Messages of a name that were confirmed, and may wait.
    fn covered(&self, name: u64) -> Vec<u64> {
        let may_wait = |id: &u64| {
            let message = &self.messages[id];
            message.confirmed_at.is_some() && matches!(message.part, Part::None | Part::Waits)
        };
        self.names.get(&name).into_iter().flatten().copied().filter(may_wait).collect()
    }

    /// A client publishes a message that waits.
    pub(crate) fn publishes(
        &mut self,
        id: u64,
        (name, mode): (u64, Mode),
        delay_ms: u64,
        since: Since,
        entries: u64,
    ) {
        self.steps += 1;
        let covered = if mode == Mode::Replace { self.covered(name) } else { Vec::new() };
        let message = Scheduled {
            name,
            mode,
            sent_at: self.steps,
            confirmed_at: None,
            entries_before: entries,
            left_at: None,
            part: Part::None,
            dues: vec![Due { since, delay_ms }],
            was_moved: false,
            is_excused: false,
            covered,
        };
        self.messages.insert(id, message);
        self.names.entry(name).or_default().push(id);
    }

    /// A client asks for an operation. Returns its number.
    pub(crate) fn asks(
        &mut self,
        name: u64,
        operation: Operation,
        since: Since,
        entries: u64,
    ) -> u64 {
        self.steps += 1;
        let number = self.requests.len() as u64;
        let covered = self.covered(name);
        let request = Request {
            operation,
            since,
            asked_at: self.steps,
            entries_before: entries,
            answered_at: None,
            covered,
        };
        self.requests.insert(number, request);
        self.requests_of.entry(name).or_default().push(number);
        number
    }

    fn requests_of(&self, name: u64) -> impl Iterator<Item = &Request> {
        self.requests_of.get(&name).into_iter().flatten().map(|number| &self.requests[number])
    }

    /// True if a request of the name has no answer: it may have an effect at any time.
    pub(crate) fn has_open_request(&self, id: u64) -> bool {
        let Some(message) = self.messages.get(&id) else { return true };
        let is_open = |request: &Request| request.answered_at.is_none();
        self.requests_of(message.name).any(is_open)
            || self.replacing(id, message).any(|it| it.confirmed_at.is_none())
    }

    /// Later publishes of the name that replace a message.
    fn replacing(&self, id: u64, message: &Scheduled) -> impl Iterator<Item = &Scheduled> {
        let others = self.names[&message.name].iter().filter(move |other| **other != id);
        let sent_at = message.sent_at;
        others
            .map(|other| &self.messages[other])
            .filter(|it| it.mode == Mode::Replace)
            .filter(move |it| it.confirmed_at.is_none_or(|at| at > sent_at))
    }

    /// True if somebody has asked for the removal of a message.
    fn may_be_removed(&self, id: u64) -> bool {
        let message = &self.messages[&id];
        let reaches = |request: &Request| {
            request.operation.delay_ms().is_none()
                && request.answered_at.is_none_or(|at| at > message.sent_at)
        };
        self.requests_of(message.name).any(reaches) || self.replacing(id, message).next().is_some()
    }

    /// True if an older message has kept this one out, and has waited meanwhile.
    fn was_kept_out(&self, id: u64) -> bool {
        let message = &self.messages[&id];
        let has_waited = |other: &u64| {
            let older = &self.messages[other];
            match older.part {
                Part::None => older.sent_at < message.sent_at && self.may_be_removed(*other),
                Part::Waits => true,
                Part::Released | Part::Removed => {
                    older.left_at.is_some_and(|at| at > message.entries_before)
                }
            }
        };
        let others = self.names[&message.name].iter().filter(|other| **other != id);
        message.mode == Mode::Keep && others.into_iter().any(has_waited)
    }

    /// A publish is confirmed. Returns true if there is a reason why it is in no committed entry.
    pub(crate) fn confirmed(&mut self, id: u64, waits: &Waits, faults: &mut Vec<String>) -> bool {
        self.steps += 1;
        let steps = self.steps;
        let Some(message) = self.messages.get_mut(&id) else { return false };
        message.confirmed_at = Some(steps);
        let covered = std::mem::take(&mut message.covered);
        for older in covered {
            if let Some(wait) = waits.later(older) {
                faults.push(format!(
                    "message {older} waits until {:?}, and message {id} has replaced it",
                    wait.ready_at
                ));
            }
        }
        if self.messages[&id].part != Part::None {
            return true;
        }
        let is_excused = self.was_kept_out(id) || self.may_be_removed(id);
        if let Some(message) = self.messages.get_mut(&id) {
            message.is_excused = is_excused;
        }
        is_excused
    }

    /// A request is answered: messages were found, or none.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        is_found: bool,
        waits: &Waits,
        faults: &mut Vec<String>,
    ) {
        self.steps += 1;
        let (found, not_found) = (u64::from(is_found), u64::from(!is_found));
        (self.found, self.not_found) = (self.found + found, self.not_found + not_found);
        let Some(request) = self.requests.get_mut(&number) else { return };
        assert!(request.answered_at.is_none(), "a request is answered once");
        request.answered_at = Some(self.steps);
        let Request { operation, asked_at, entries_before, .. } = *request;
        let answer = if is_found { "answered" } else { "answered as not found" };
        let covered = std::mem::take(&mut request.covered);
        for id in covered {
            let Some(wait) = waits.later(id) else { continue };
            let is_moved = wait.since > entries_before
                || operation == Operation::CancelAll && self.has_moved(id, asked_at);
            let is_at_once =
                operation == Operation::Cancel || !is_found && operation != Operation::CancelAll;
            if is_at_once || !is_moved {
                faults.push(format!(
                    "message {id} waits until {:?}, and {operation:?} {number} of its name is {answer}",
                    wait.ready_at
                ));
            }
        }
    }

    /// True if a message may have got another time since so many requests and answers.
    fn has_moved(&self, id: u64, since: u64) -> bool {
        let moves = |request: &Request| {
            request.operation.delay_ms().is_some()
                && request.answered_at.is_none_or(|at| at > since)
        };
        self.requests_of(self.messages[&id].name).any(moves)
    }

    /// Follows changes in the log, which has so many entries.
    pub(super) fn follow(
        &mut self,
        changes: Vec<(u64, WaitEvent)>,
        entries: u64,
        waits: &Waits,
        faults: &mut Vec<String>,
    ) {
        for (id, change) in changes {
            if !self.messages.contains_key(&id) {
                continue;
            }
            let is_unasked = change == WaitEvent::Removed && !self.may_be_removed(id);
            if is_unasked {
                faults.push(format!("message {id} has left, and nobody asked for it"));
            }
            let dues = self.dues_of_open_requests(id);
            let Some(message) = self.messages.get_mut(&id) else { continue };
            message.part = match change {
                WaitEvent::Entered => Part::Waits,
                WaitEvent::Released => Part::Released,
                WaitEvent::Removed => Part::Removed,
                WaitEvent::Moved if dues.is_empty() => {
                    faults.push(format!("message {id} is moved, and nobody asked for it"));
                    message.part
                }
                WaitEvent::Moved => {
                    (message.dues, message.was_moved) = (dues, true);
                    message.part
                }
            };
            if matches!(message.part, Part::Released | Part::Removed) {
                message.left_at = Some(entries);
            }
            if change == WaitEvent::Entered {
                let name = message.name;
                self.check_alone(name, waits, faults);
            }
        }
    }

    /// Messages that replace each other never wait together.
    fn check_alone(&self, name: u64, waits: &Waits, faults: &mut Vec<String>) {
        let of_name = &self.names[&name];
        let wait: Vec<u64> =
            of_name.iter().copied().filter(|id| waits.later(*id).is_some()).collect();
        let is_shared = wait.iter().any(|id| self.messages[id].mode == Mode::Add);
        if wait.len() > 1 && !is_shared {
            faults.push(format!("messages {wait:?} wait, and replace each other"));
        }
    }

    fn dues_of_open_requests(&self, id: u64) -> Vec<Due> {
        let open = self.requests_of(self.messages[&id].name).filter(|it| it.answered_at.is_none());
        let due = |it: &Request| Some(Due { since: it.since, delay_ms: it.operation.delay_ms()? });
        open.filter_map(due).collect()
    }

    /// The reason why a message must not be delivered now by a leader with this root; `is_stale` if another has replaced it.
    pub(super) fn fault_of_delivery(
        &self,
        id: u64,
        (now_us, root): Since,
        is_stale: bool,
    ) -> Option<String> {
        let message = self.messages.get(&id)?;
        if message.part == Part::Removed && !is_stale {
            return Some("removed message is delivered".to_owned());
        }
        let open = self.dues_of_open_requests(id);
        let is_due = |due: &Due| {
            let needed_us = due.delay_ms * 1000;
            let passed_us = now_us - due.since.0;
            due.since.1 != root || passed_us + passed_us * FAST_PPM / 1_000_000 + 20 >= needed_us
        };
        // A leader that was replaced may not know of the new time.
        let is_moved = is_stale && message.was_moved;
        let has_come = message.dues.iter().chain(&open).any(is_due);
        (!has_come && !is_moved).then(|| format!("early, of {:?}", message.dues))
    }

    /// True if a message need not be delivered.
    pub(super) fn is_gone(&self, id: u64) -> bool {
        let message = self.messages.get(&id);
        message.is_some_and(|it| it.part == Part::Removed || it.is_excused)
    }
}
