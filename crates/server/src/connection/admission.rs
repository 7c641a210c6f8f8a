//! Admission of connections: a new connection always gets in, and where there is no room the connection
//! that has the least claim to its place is closed.
//!
//! The claim of a connection follows from what it has proved. The least claim has a connection that waits
//! for its client, while that shakes hands, sends a request, reads an answer or is idle; more has one whose
//! login is checked, then the request of a user who has logged in; the administrator of this machine is
//! never closed. The connection that is closed is one of the source with the most connections.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::source::Source;

/// What a connection has proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Nothing, since then.
    Unproven(Instant),
    /// Its login is checked, since then.
    ChecksLogin(Instant),
    /// A user who has logged in waits for an answer, since then.
    LoggedIn(Instant),
    /// The administrator of this machine waits for an answer.
    LocalAdministrator,
}

/// The claim of a connection among those of its source, the least one first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Claim {
    /// It has waited for its client since then.
    Waits(Instant),
    /// Its login is checked since then; how many are is bounded elsewhere.
    ChecksLogin(Instant),
    /// It works for a user since then; the longer, the nearer is the answer.
    Works(Reverse<Instant>),
}

/// A connection that was admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    source: Source,
    standing: Mutex<Standing>,
    evicted: watch::Sender<bool>,
}

impl Admitted {
    /// A connection from `peer` that has proved nothing.
    pub(crate) fn new(peer: IpAddr) -> Self {
        let standing = Mutex::new(Standing::Unproven(Instant::now()));
        Self { source: Source::from(peer), standing, evicted: watch::Sender::new(false) }
    }

    fn set(&self, standing: Standing) {
        *self.standing.lock() = standing;
    }

    /// The connection has moved on: a request came, an octet of an answer was taken.
    pub(crate) fn progressed(&self) {
        if let Standing::Unproven(since) = &mut *self.standing.lock() {
            *since = Instant::now();
        }
    }

    /// The answer is made: the connection waits for its client again.
    pub(crate) fn waits_for_client(&self) {
        self.set(Standing::Unproven(Instant::now()));
    }

    /// The login of the request is checked.
    pub(crate) fn checks_login(&self) {
        self.set(Standing::ChecksLogin(Instant::now()));
    }

    /// The request is that of a user who has logged in.
    pub(crate) fn user_logged_in(&self) {
        self.set(Standing::LoggedIn(Instant::now()));
    }

    /// The request is that of the administrator of this machine.
    pub(crate) fn local_administrator(&self) {
        self.set(Standing::LocalAdministrator);
    }

    /// Whether the connection has to go.
    pub(crate) fn is_evicted(&self) -> bool {
        *self.evicted.borrow()
    }

    /// Waits until the connection has to go.
    pub(crate) async fn evicted(&self) {
        // The sender lives as long as `self`.
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

    /// The connection that is closed next: of the source with the most connections the one that has
    /// waited longest for its client, and without such a one the newest request.
    fn victim(&self) -> Option<u64> {
        let claim = |(number, entry): (&u64, &Arc<Admitted>)| {
            let claim = match *entry.standing.lock() {
                Standing::Unproven(since) => Claim::Waits(since),
                Standing::ChecksLogin(since) => Claim::ChecksLogin(since),
                Standing::LoggedIn(since) => Claim::Works(Reverse(since)),
                Standing::LocalAdministrator => return None,
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
    /// Room for `max` connections.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, entries: Mutex::default() }
    }

    /// Whether the next connection takes the place of another.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.lock().by_number.len() >= self.max
    }

    /// Admits a connection from `peer`, and closes another one if there are too many. None if all are
    /// those of the administrator of this machine.
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

    /// Closes the connection with the least claim; false if there is none.
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

/// The place of a connection, which is free again when this is dropped.
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
    fn the_connection_that_has_waited_longest_for_its_client_goes_first() {
        let admission = Arc::new(Admission::new(3));
        let [first, second, third] = [(); 3].map(|()| admission.admit(HERE).unwrap());
        first.connection().progressed();
        let fourth = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&first, &second, &third, &fourth]), [false, true, false, false]);
        // A place that is given back is free.
        drop(third);
        let fifth = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&first, &fourth, &fifth]), [false; 3]);
    }

    #[test]
    fn the_source_with_the_most_connections_makes_room() {
        let admission = Arc::new(Admission::new(3));
        let innocent = admission.admit(ELSEWHERE).unwrap();
        let crowd = [(); 2].map(|()| admission.admit(HERE).unwrap());
        crowd.iter().for_each(|one| one.connection().user_logged_in());
        let _new = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&innocent, &crowd[0], &crowd[1]]), [false, false, true]);
    }

    #[test]
    fn requests_of_users_outlive_connections_that_wait_for_their_clients() {
        let admission = Arc::new(Admission::new(2));
        let [user, idle] = [(); 2].map(|()| admission.admit(HERE).unwrap());
        user.connection().user_logged_in();
        let next = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&user, &idle, &next]), [false, true, false]);
        // Answered, it is idle like the others.
        user.connection().waits_for_client();
        next.connection().user_logged_in();
        let _last = admission.admit(HERE).unwrap();
        assert_eq!(evicted(&[&user, &next]), [true, false]);
    }

    #[test]
    fn the_administrator_of_this_machine_is_never_closed() {
        let admission = Arc::new(Admission::new(2));
        let both = [(); 2].map(|()| admission.admit(HERE).unwrap());
        both.iter().for_each(|one| one.connection().local_administrator());
        assert!(admission.admit(HERE).is_none());
        assert!(!admission.make_room());
        assert_eq!(evicted(&[&both[0], &both[1]]), [false; 2]);
    }

    #[tokio::test]
    async fn a_connection_learns_that_it_has_to_go() {
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
