//! Admission of connections: a new connection is always admitted; if there is no room, the connection with
//! the least claim to its place is closed.
//!
//! The claim follows from what a connection has proved. A connection that waits for its client (to shake
//! hands, send a request, read an answer, or while idle) has the least claim; next is one whose login is
//! being checked, then one that works for a logged-in user. The connection of the local administrator is
//! never closed. The victim is chosen from the source with the most connections.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::source::Source;

/// The state of the login of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoginState {
    /// Has proved nothing, since this time.
    Unproven(Instant),
    /// A login is being checked, since this time.
    ChecksLogin(Instant),
    /// A logged-in user waits for an answer, since this time.
    LoggedIn(Instant),
    /// The local administrator waits for an answer.
    LocalAdministrator,
}

/// The claim of a connection among those of its source; the least claim sorts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Claim {
    /// Has waited for its client since this time.
    Waits(Instant),
    /// A login has been checked since this time; `LoginQueue` bounds the number of checks.
    ChecksLogin(Instant),
    /// Has worked for a user since this time; the longer, the nearer is the answer.
    Works(Reverse<Instant>),
}

/// An admitted connection.
#[derive(Debug)]
pub struct Admitted {
    source: Source,
    state: Mutex<LoginState>,
    /// True from the arrival of a whole request until its answer begins.
    is_worked_for: AtomicBool,
    evicted: watch::Sender<bool>,
}

impl Admitted {
    /// Creates a connection from `peer` that has proved nothing.
    pub(crate) fn new(peer: IpAddr) -> Self {
        let state = Mutex::new(LoginState::Unproven(Instant::now()));
        let (is_worked_for, evicted) = (AtomicBool::new(false), watch::Sender::new(false));
        Self { source: Source::from(peer), state, is_worked_for, evicted }
    }

    fn set(&self, state: LoginState) {
        *self.state.lock() = state;
    }

    /// Notes progress: a request arrived, or the client took a byte of an answer.
    pub(crate) fn progressed(&self) {
        if let LoginState::Unproven(since) = &mut *self.state.lock() {
            *since = Instant::now();
        }
    }

    /// Notes that a request has arrived whole: nothing is expected of the client until the answer begins.
    pub(crate) fn works(&self) {
        self.is_worked_for.store(true, Ordering::Relaxed);
    }

    /// True while the client waits for an answer that has not begun.
    pub(crate) fn is_worked_for(&self) -> bool {
        self.is_worked_for.load(Ordering::Relaxed)
    }

    /// Notes that the answer is complete and the connection waits for its client again.
    pub fn waits_for_client(&self) {
        self.is_worked_for.store(false, Ordering::Relaxed);
        self.set(LoginState::Unproven(Instant::now()));
    }

    /// Notes that the login of the request is being checked.
    pub fn checks_login(&self) {
        self.set(LoginState::ChecksLogin(Instant::now()));
    }

    /// Notes that the request belongs to a logged-in user.
    pub fn user_logged_in(&self) {
        self.set(LoginState::LoggedIn(Instant::now()));
    }

    /// Notes that the request belongs to the local administrator.
    pub fn local_administrator(&self) {
        self.set(LoginState::LocalAdministrator);
    }

    /// True if the connection must be closed.
    pub(crate) fn is_evicted(&self) -> bool {
        *self.evicted.borrow()
    }

    /// Waits until the connection must be closed.
    pub(crate) async fn evicted(&self) {
        // The wait cannot fail: the sender lives as long as `self`.
        drop(self.evicted.subscribe().wait_for(|is_evicted| *is_evicted).await);
    }
}

#[derive(Default, Debug)]
struct Entries {
    next: u64,
    by_number: BTreeMap<u64, Arc<Admitted>>,
    counts: BTreeMap<Source, usize>,
}

impl Entries {
    fn remove(&mut self, number: u64) -> Option<Arc<Admitted>> {
        let entry = self.by_number.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&entry.source) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entry.source);
            }
        }
        Some(entry)
    }

    /// The connection to close next: of the source with the most connections, the one that has waited longest
    /// for its client, or else the newest request.
    fn victim(&self) -> Option<u64> {
        let claim = |(number, entry): (&u64, &Arc<Admitted>)| {
            let claim = match *entry.state.lock() {
                LoginState::Unproven(since) => Claim::Waits(since),
                LoginState::ChecksLogin(since) => Claim::ChecksLogin(since),
                LoginState::LoggedIn(since) => Claim::Works(Reverse(since)),
                LoginState::LocalAdministrator => return None,
            };
            let crowd = Reverse(self.counts.get(&entry.source).copied().unwrap_or(0));
            Some((crowd, claim, *number))
        };
        self.by_number.iter().filter_map(claim).min().map(|(_, _, number)| number)
    }
}

/// The connections of one kind.
#[derive(Debug)]
pub(crate) struct Admission {
    max: usize,
    entries: Mutex<Entries>,
}

impl Admission {
    /// Creates an admission with room for `max` connections.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, entries: Mutex::default() }
    }

    /// True if the next connection replaces another.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.lock().by_number.len() >= self.max
    }

    /// Admits a connection from `peer`, and closes another one if there are too many. None if all connections
    /// belong to the local administrator.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Ticket> {
        let mut entries = self.entries.lock();
        let mut is_full = entries.by_number.len() >= self.max;
        if is_full && let Some(victim) = entries.victim() {
            evict(&mut entries, victim);
            is_full = false;
        }
        if is_full {
            return None;
        }
        let (number, entry) = (entries.next, Arc::new(Admitted::new(peer)));
        entries.next += 1;
        entries.by_number.insert(number, Arc::clone(&entry));
        *entries.counts.entry(entry.source).or_default() += 1;
        Some(Ticket { admission: Arc::clone(self), number, entry })
    }

    /// Closes the connection with the least claim; false if there is none to close.
    pub(crate) fn make_room(&self) -> bool {
        let mut entries = self.entries.lock();
        let victim = entries.victim();
        if let Some(victim) = victim {
            evict(&mut entries, victim);
        }
        victim.is_some()
    }
}

fn evict(entries: &mut Entries, victim: u64) {
    if let Some(entry) = entries.remove(victim) {
        entry.evicted.send_replace(true);
    }
}

/// The place of a connection, released when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    number: u64,
    entry: Arc<Admitted>,
}

impl Ticket {
    /// The connection.
    pub(crate) fn connection(&self) -> &Arc<Admitted> {
        &self.entry
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.admission.entries.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn evicted(tickets: &[&Ticket]) -> Vec<bool> {
        tickets.iter().map(|ticket| ticket.connection().is_evicted()).collect()
    }

    #[test]
    fn admit_evicts_the_longest_wait_for_a_client() {
        let admission = Arc::new(Admission::new(3));
        let [first, second, third] = [(); 3].map(|()| admission.admit(HERE).unwrap());
        first.connection().progressed();
        let fourth = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        // A released place is free.
        drop(third);
        let fifth = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&first, &fourth, &fifth]), [false; 3]);
    }

    #[test]
    fn admit_evicts_from_the_source_with_the_most_connections() {
        let admission = Arc::new(Admission::new(3));
        let other = admission.admit(ELSEWHERE).unwrap();
        let crowd = [(); 2].map(|()| admission.admit(HERE).unwrap());
        crowd.iter().for_each(|one| one.connection().user_logged_in());
        let _new = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&other, &crowd[0], &crowd[1]]), [false, false, true]);
    }

    #[test]
    fn admit_spares_requests_of_users() {
        let admission = Arc::new(Admission::new(2));
        let [user, idle] = [(); 2].map(|()| admission.admit(HERE).unwrap());
        user.connection().user_logged_in();
        let next = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&user, &idle, &next]), [false, true, false]);
        // After the answer, the connection is idle like the others.
        user.connection().waits_for_client();
        next.connection().user_logged_in();
        let _last = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&user, &next]), [true, false]);
    }

    #[test]
    fn admit_never_evicts_the_local_administrator() {
        let admission = Arc::new(Admission::new(2));
        let both = [(); 2].map(|()| admission.admit(HERE).unwrap());
        both.iter().for_each(|one| one.connection().local_administrator());
        assert!(admission.admit(HERE).is_none());
        assert!(!admission.make_room());
        assert_eq!(evicted(&[&both[0], &both[1]]), [false; 2]);
    }

    #[tokio::test]
    async fn evicted_resolves_at_eviction() {
        let admission = Arc::new(Admission::new(1));
        let first = admission.admit(HERE).unwrap();
        let waits = {
            let entry = Arc::clone(first.connection());
            async move { entry.evicted().await }
        };
        let _second = admission.admit(HERE).unwrap();
        waits.await;
        assert!(first.connection().is_evicted());
    }
}
