//! The ticks of a replica: its member gets those that mean nothing to it when it must act.

use crate::log::GroupLog;
use crate::output::Event;
use crate::replica::{Batch, Replica};
use crate::service::Service;
use crate::standstill::StandstillNews;

impl<L: GroupLog> Replica<L> {
    /// True if nothing is under way that goes on with each tick.
    fn is_idle(&self) -> bool {
        matches!(self.service, Service::Follows | Service::Leads(_))
            && self.is_quiet()
            && self.is_between_turns()
            && self.transfer.is_none()
            && self.preparations.is_empty()
    }

    /// Takes part in the group from this tick on.
    pub fn take_part(&mut self, number: u64) {
        if self.ticked.is_none() {
            // All members act at the same ticks.
            self.member.begin_at_tick(number);
            self.ticked = Some(number);
        }
    }

    /// The first tick at which the replica must be advanced, if nothing else happens to it; none if it has no part in its
    /// group.
    pub fn needed_tick(&self) -> Option<u64> {
        let quiet = if self.is_idle() { self.member.quiet_ticks() } else { 0 };
        self.ticked.map(|ticked| ticked + quiet + 1)
    }

    /// Gives the member the ticks before an input: all of them are before the one that it needs.
    ///
    /// # Panics
    /// If the replica was not advanced at a tick that it needs.
    pub fn catch_up(&mut self, number: u64) {
        let needs_turn = self.tick_to(number);
        assert!(!needs_turn, "a replica is advanced at the tick that it needs");
    }

    /// Gives the member the ticks up to this one. False if the replica need not be advanced because of them.
    pub fn tick_to(&mut self, number: u64) -> bool {
        let Some(ticked) = self.ticked else { return false };
        let mut needs_turn = false;
        for _ in ticked..number {
            needs_turn |= !self.is_between_turns() || self.member.tick() || !self.is_idle();
        }
        self.ticked = Some(number.max(ticked));
        if number > ticked {
            self.watch_work();
        }
        if self.is_between_turns() {
            self.has_work |= needs_turn;
            self.looks_at_members |= needs_turn;
        }
        needs_turn
    }

    /// Looks whether the work of a leader goes on. Ticks that have come together count as one.
    fn watch_work(&mut self) {
        let waits = self.is_leading() && !matches!(self.batch, Batch::None);
        let committed = self.member.delivered();
        match self.standstill.tick(committed, waits) {
            StandstillNews::None => {}
            StandstillNews::Begins => self.tell(Event::StandsStill(committed)),
            StandstillNews::TooLong => {
                self.tell(Event::StandsStillTooLong(committed));
                self.service = Service::Deposed;
            }
        }
    }
}
