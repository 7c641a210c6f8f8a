//! Recent failed logins, by source and by account of a source.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::limits::{LOGIN_FAILURES_HALF_LIFE, LOGIN_HISTORY_MAX};
use crate::source::Source;

/// Groups of names that no user has. Each group counts as one account, so that invented names get no turns of
/// their own.
const UNKNOWN_ACCOUNTS: u8 = 64;

/// The account that a login is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Account {
    /// The user of this name.
    Known(String),
    /// A group of names that no user has.
    Unknown(u8),
}

impl Account {
    /// The group of a name that no user has, from a keyed digest of the name.
    pub(crate) fn unknown(digest: &[u8; 32]) -> Self {
        Self::Unknown(digest[0] % UNKNOWN_ACCOUNTS)
    }
}

/// The recent history of a source or an account.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RecentLogins {
    /// Wrong passwords, decaying with [`LOGIN_FAILURES_HALF_LIFE`].
    pub(crate) failures: u32,
    /// The turn of the last served login; 0 if there was none.
    pub(crate) served_at_turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    failures: f64,
    served_at_turn: u64,
    at: Instant,
}

impl Remembered {
    /// The entry with its failures decayed until `now`.
    fn faded(self, now: Instant) -> Self {
        let age = now.saturating_duration_since(self.at);
        let halves = age.as_secs_f64() / LOGIN_FAILURES_HALF_LIFE.as_secs_f64();
        Self { failures: self.failures * (-halves).exp2(), at: now, ..self }
    }

    fn recent(self, now: Instant) -> RecentLogins {
        // Rounded; the cast saturates.
        let failures = self.faded(now).failures.round() as u32;
        RecentLogins { failures, served_at_turn: self.served_at_turn }
    }
}

/// Remembered sources and accounts; a key without an account stands for the source itself.
#[derive(Default, Debug)]
pub(crate) struct LoginHistory {
    by_key: BTreeMap<(Source, Option<Account>), Remembered>,
}

impl LoginHistory {
    /// The recent logins of a source.
    pub(crate) fn of_source(&self, source: Source, now: Instant) -> RecentLogins {
        self.by_key.get(&(source, None)).map(|known| known.recent(now)).unwrap_or_default()
    }

    /// The recent logins of an account of a source.
    pub(crate) fn of_account(
        &self,
        source: Source,
        account: &Account,
        now: Instant,
    ) -> RecentLogins {
        let known = self.by_key.get(&(source, Some(account.clone())));
        known.map(|known| known.recent(now)).unwrap_or_default()
    }

    /// Records a wrong password.
    pub(crate) fn failed(&mut self, source: Source, account: &Account, now: Instant) {
        self.change(source, account, now, |known| known.failures += 1.0);
    }

    /// Records that a login is served.
    pub(crate) fn served(&mut self, source: Source, account: &Account, turn: u64, now: Instant) {
        self.change(source, account, now, |known| known.served_at_turn = turn);
    }

    fn change(
        &mut self,
        source: Source,
        account: &Account,
        now: Instant,
        change: impl Fn(&mut Remembered),
    ) {
        for key in [(source, None), (source, Some(account.clone()))] {
            if self.by_key.len() >= LOGIN_HISTORY_MAX && !self.by_key.contains_key(&key) {
                self.forget_half();
            }
            let fresh = Remembered { failures: 0.0, served_at_turn: 0, at: now };
            let known = self.by_key.entry(key).or_insert(fresh);
            *known = known.faded(now);
            change(known);
        }
    }

    /// Forgets the half of the entries that have been unchanged for longest.
    fn forget_half(&mut self) {
        let mut times: Vec<Instant> = self.by_key.values().map(|known| known.at).collect();
        times.sort_unstable();
        let Some(middle) = times.get(times.len() / 2).copied() else { return };
        self.by_key.retain(|_, known| known.at > middle);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use super::*;

    #[test]
    fn login_failures_fade_and_count_by_source_and_account() {
        let (source, now) = (Source::from(IpAddr::from([10, 0, 0, 1])), Instant::now());
        let (anna, bob) = (Account::Known("anna".to_owned()), Account::Unknown(1));
        let mut history = LoginHistory::default();
        (0..8).for_each(|_| history.failed(source, &anna, now));
        history.served(source, &bob, 5, now);
        assert_eq!(history.of_source(source, now).failures, 8);
        assert_eq!(history.of_account(source, &bob, now).failures, 0);
        assert_eq!(history.of_account(source, &anna, now + LOGIN_FAILURES_HALF_LIFE).failures, 4);
        let later = now + 100 * LOGIN_FAILURES_HALF_LIFE;
        assert_eq!(history.of_account(source, &anna, later).failures, 0);
    }

    #[test]
    fn login_history_is_bounded() {
        let now = Instant::now();
        let mut history = LoginHistory::default();
        for n in 0..u16::try_from(LOGIN_HISTORY_MAX).unwrap() {
            let [high, low] = n.to_be_bytes();
            let source = Source::from(IpAddr::from([10, 0, high, low]));
            let at = now + Duration::from_millis(u64::from(n));
            history.failed(source, &Account::Unknown(0), at);
        }
        assert!(history.by_key.len() <= LOGIN_HISTORY_MAX);
        let last = Source::from(IpAddr::from([10, 0, 31, 255]));
        assert_eq!(history.of_source(last, now).failures, 1);
    }
}
