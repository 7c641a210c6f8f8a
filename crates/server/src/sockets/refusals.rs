//! Logins and connections refused within the last minutes, for findings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use parking_lot::Mutex;

use crate::limits::{REFUSALS_MAX, REFUSALS_WINDOW};
use crate::snapshot::condition::{ConnectionRefusal, RefusedConnections, RefusedLogins};

/// Counts of refusals, readable by other threads.
#[derive(Default, Debug)]
pub(crate) struct Refusals(Mutex<Windows>);

#[derive(Default, Debug)]
struct Windows {
    /// Start of the current window; none before the first refusal.
    began: Option<Instant>,
    current: Counts,
    /// The window before.
    before: Counts,
}

#[derive(Default, Debug)]
struct Counts {
    /// Logins by address of the client and name of the user.
    logins: BTreeMap<(IpAddr, String), u64>,
    /// Connections by the reason and by what it is about.
    connections: BTreeMap<(ConnectionRefusal, String), u64>,
}

impl Windows {
    /// Starts another window when the current one is over.
    fn turn(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let windows = now.saturating_duration_since(began).as_secs() / REFUSALS_WINDOW.as_secs();
        if windows > 0 {
            let last = std::mem::take(&mut self.current);
            self.before = if windows == 1 { last } else { Counts::default() };
            self.began = Some(now);
        }
    }
}

/// Adds one to the count of a key. Beyond [`REFUSALS_MAX`], further keys are not counted.
fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    if counts.len() < REFUSALS_MAX || counts.contains_key(&key) {
        *counts.entry(key).or_default() += 1;
    }
}

/// The counts of two windows together.
fn sum<K: Ord + Clone>(windows: [&BTreeMap<K, u64>; 2]) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (key, count) in windows.into_iter().flatten() {
        *sums.entry(key.clone()).or_default() += count;
    }
    sums
}

impl Refusals {
    /// Counts a refused login.
    pub(crate) fn login(&self, peer: IpAddr, user: &str, now: Instant) {
        let mut windows = self.0.lock();
        windows.turn(now);
        count(&mut windows.current.logins, (peer.to_canonical(), user.to_owned()));
    }

    /// Counts a refused connection. `of` is the vhost or the user of the limit, or the listener.
    pub(crate) fn connection(&self, reason: ConnectionRefusal, of: &str, now: Instant) {
        let mut windows = self.0.lock();
        windows.turn(now);
        count(&mut windows.current.connections, (reason, of.to_owned()));
    }

    /// The refused logins of the current window and the window before.
    pub(crate) fn logins(&self, now: Instant) -> Vec<RefusedLogins> {
        let mut windows = self.0.lock();
        windows.turn(now);
        let all = sum([&windows.current.logins, &windows.before.logins]).into_iter();
        all.map(|((source, user), count)| RefusedLogins { source, user, count }).collect()
    }

    /// The refused connections of the current window and the window before.
    pub(crate) fn connections(&self, now: Instant) -> Vec<RefusedConnections> {
        let mut windows = self.0.lock();
        windows.turn(now);
        let all = sum([&windows.current.connections, &windows.before.connections]).into_iter();
        all.map(|((reason, of), count)| RefusedConnections { reason, of, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn refusals_are_forgotten_after_two_windows() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        refusals.login(HERE, "ada", start);
        refusals.login(HERE, "ada", start + REFUSALS_WINDOW);
        refusals.connection(ConnectionRefusal::VhostLimit, "shop", start + REFUSALS_WINDOW);
        let count = |windows| {
            let now = start + windows * REFUSALS_WINDOW;
            let logins = refusals.logins(now).first().map(|one| one.count);
            (logins, refusals.connections(now).len())
        };
        assert_eq!(count(1), (Some(2), 1));
        assert_eq!(count(2), (Some(1), 1));
        assert_eq!(count(3), (None, 0));
    }

    #[test]
    fn refusals_of_many_sources_are_bounded() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        for n in 0..2 * REFUSALS_MAX {
            refusals.login(HERE, &n.to_string(), now);
        }
        assert_eq!(refusals.logins(now).len(), REFUSALS_MAX);
        refusals.login(HERE, "0", now);
        assert_eq!(refusals.logins(now).first().map(|one| one.count), Some(2));
    }
}
