//! The order in which logins are checked: few at the same time, and fair to sources and accounts.
//!
//! Each turn goes to the source with the fewest recent failures, within it to the account with the fewest,
//! and among equals to the one served longest ago. Every fourth turn ignores failures, so that no login waits
//! forever. Logins of one account from one source differ only in their passwords, which are unknown before
//! the check. Turns therefore alternate between the newest login, whose client certainly still waits, and a
//! random one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::auth::login_history::{Account, LoginHistory, RecentLogins};
use crate::limits::{HASHING_MAX, LOGINS_WAITING_HTTP_MAX, LOGINS_WAITING_MAX};
use crate::snapshot::logins::Protocol;
use crate::source::Source;

/// A keyed digest of a user name and a password.
pub(crate) type Digest = [u8; 32];

/// A waiting login.
#[derive(Debug)]
struct Waiting {
    protocol: Protocol,
    source: Source,
    account: Account,
    digest: Digest,
    told: oneshot::Sender<Turn>,
}

/// The result of waiting for a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The login may be checked.
    Check(HashingPermit),
    /// Another login with the same password has been checked meanwhile.
    Known,
}

#[derive(Debug)]
struct State {
    next: u64,
    /// Waiting logins in the order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// New passwords to hash for administrators, which go first.
    urgent: Vec<oneshot::Sender<Turn>>,
    running: usize,
    turns: u64,
    random: u64,
    history: LoginHistory,
    /// The passwords that were hashed or are being hashed.
    #[cfg(test)]
    hashes: usize,
}

/// The queue of logins.
#[derive(Debug)]
pub(crate) struct LoginQueue {
    state: Mutex<State>,
}

impl LoginQueue {
    /// Creates an empty queue; `seed` seeds the random choices.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                next: 0,
                waiting: BTreeMap::new(),
                urgent: Vec::new(),
                running: 0,
                turns: 0,
                random: seed | 1,
                history: LoginHistory::default(),
                #[cfg(test)]
                hashes: 0,
            }),
        }
    }

    /// Waits for the turn of a login. None if too many logins wait and this one, of the largest crowd, was
    /// shed.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        (protocol, source): (Protocol, Source),
        account: Account,
        digest: Digest,
    ) -> Option<Turn> {
        let (told, turn) = oneshot::channel();
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next += 1;
            state.waiting.insert(number, Waiting { protocol, source, account, digest, told });
            if state.count(protocol) > most(protocol) {
                state.shed(protocol);
            }
            self.grant(&mut state);
            number
        };
        let _leaves = Leaves { queue: self, number };
        turn.await.ok()
    }

    /// Waits for the turn of a new password, which precedes all logins.
    pub(crate) async fn urgent_turn(self: &Arc<Self>) -> Option<Turn> {
        let (told, turn) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.urgent.push(told);
            self.grant(&mut state);
        }
        turn.await.ok()
    }

    /// Wakes all logins that wait with the password of `digest`, which has been checked.
    pub(crate) fn checked(
        &self,
        source: Source,
        account: &Account,
        digest: &Digest,
        is_right: bool,
    ) {
        let mut state = self.state.lock();
        if !is_right {
            state.history.failed(source, account, Instant::now());
        }
        let alike: Vec<u64> = state
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.digest == *digest)
            .map(|(number, _)| *number)
            .collect();
        for waiting in alike.iter().filter_map(|number| state.waiting.remove(number)) {
            // The client may have given up.
            let _ = waiting.told.send(Turn::Known);
        }
    }

    /// The number of waiting logins, and the recent failures of this account from this source.
    pub(crate) fn crowd(&self, source: Source, account: &Account) -> (usize, u32) {
        let state = self.state.lock();
        let failures = state.history.of_account(source, account, Instant::now()).failures;
        (state.waiting.len(), failures)
    }

    /// The number of passwords that were hashed or are being hashed.
    #[cfg(test)]
    pub(crate) fn hashes(&self) -> usize {
        self.state.lock().hashes
    }

    /// Grants turns while there are free ones.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while state.running < HASHING_MAX {
            let Some(told) = state.urgent.pop().or_else(|| state.next_login(Instant::now())) else {
                return;
            };
            let permit = HashingPermit { queue: Some(Arc::clone(self)) };
            state.running += 1;
            #[cfg(test)]
            {
                state.hashes += 1;
            }
            if let Err(Turn::Check(mut unused)) = told.send(Turn::Check(permit)) {
                // The client has given up.
                unused.queue = None;
                state.running -= 1;
            }
        }
    }
}

/// The maximum number of waiting logins of a protocol.
const fn most(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Amqp091 => LOGINS_WAITING_MAX,
        Protocol::Http => LOGINS_WAITING_HTTP_MAX,
    }
}

impl State {
    /// Removes and returns the login whose turn it is.
    fn next_login(&mut self, now: Instant) -> Option<oneshot::Sender<Turn>> {
        self.turns += 1;
        let is_rotation = self.turns.is_multiple_of(4);
        let rank = |recent: RecentLogins| {
            (if is_rotation { 0 } else { recent.failures }, recent.served_at_turn)
        };
        let source = *self
            .waiting
            .values()
            .map(|waiting| &waiting.source)
            .min_by_key(|source| (rank(self.history.of_source(**source, now)), **source))?;
        let account = self
            .waiting
            .values()
            .filter(|waiting| waiting.source == source)
            .map(|waiting| &waiting.account)
            .min_by_key(|account| rank(self.history.of_account(source, account, now)))?
            .clone();
        let alike: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.source == source && waiting.account == account)
            .map(|(number, _)| *number)
            .collect();
        let number = match self.turns.is_multiple_of(2) {
            true => *alike.last()?,
            false => {
                let below = alike.len() as u64;
                let at = usize::try_from(self.draw() % below).unwrap_or_default();
                *alike.get(at)?
            }
        };
        self.history.served(source, &account, self.turns, now);
        self.waiting.remove(&number).map(|waiting| waiting.told)
    }

    /// The number of waiting logins of a protocol.
    fn count(&self, protocol: Protocol) -> usize {
        self.waiting.values().filter(|waiting| waiting.protocol == protocol).count()
    }

    /// Sheds a random login of the largest crowd of a protocol: of the source with the most logins, the
    /// account with the most.
    fn shed(&mut self, protocol: Protocol) {
        let mut crowds: BTreeMap<Source, BTreeMap<Account, Vec<u64>>> = BTreeMap::new();
        for (number, waiting) in self.waiting.iter().filter(|(_, one)| one.protocol == protocol) {
            let accounts = crowds.entry(waiting.source).or_default();
            accounts.entry(waiting.account.clone()).or_default().push(*number);
        }
        let size =
            |accounts: &BTreeMap<Account, Vec<u64>>| accounts.values().map(Vec::len).sum::<usize>();
        let largest = crowds.values().max_by_key(|accounts| size(accounts));
        let Some(crowd) = largest.and_then(|accounts| accounts.values().max_by_key(|c| c.len()))
        else {
            return;
        };
        let at = usize::try_from(self.draw() % crowd.len() as u64).unwrap_or_default();
        if let Some(number) = crowd.get(at) {
            self.waiting.remove(number);
        }
    }

    /// The next random number (xorshift).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Removes a login from the queue when its client gives up.
struct Leaves<'a> {
    queue: &'a LoginQueue,
    number: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().waiting.remove(&self.number);
    }
}

/// The right to hash one password; dropping it passes the right to the next login.
pub(crate) struct HashingPermit {
    queue: Option<Arc<LoginQueue>>,
}

impl std::fmt::Debug for HashingPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashingPermit")
    }
}

impl Drop for HashingPermit {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let mut state = queue.state.lock();
            state.running -= 1;
            queue.grant(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn source(last: u8) -> Source {
        Source::from(IpAddr::from([10, 0, 0, last]))
    }

    fn account(name: &str) -> Account {
        Account::Known(name.to_owned())
    }

    /// A queue in which all turns are taken, and the permits that hold them.
    async fn busy() -> (Arc<LoginQueue>, Vec<HashingPermit>) {
        let queue = Arc::new(LoginQueue::new(7));
        let mut permits = Vec::new();
        for _ in 0..HASHING_MAX {
            match queue.urgent_turn().await {
                Some(Turn::Check(permit)) => permits.push(permit),
                other => panic!("{other:?}"),
            }
        }
        (queue, permits)
    }

    /// A login that waits in the queue.
    fn waiting(
        queue: &LoginQueue,
        source: Source,
        name: &str,
        digest: u8,
    ) -> oneshot::Receiver<Turn> {
        let (told, turn) = oneshot::channel();
        let mut state = queue.state.lock();
        let number = state.next;
        state.next += 1;
        let (protocol, account, digest) = (Protocol::Amqp091, account(name), [digest; 32]);
        state.waiting.insert(number, Waiting { protocol, source, account, digest, told });
        turn
    }

    #[tokio::test]
    async fn sources_and_accounts_take_turns() {
        let (queue, _permits) = busy().await;
        let crowd: Vec<_> = (0..100).map(|n| waiting(&queue, source(1), "guest", n)).collect();
        let same_source = waiting(&queue, source(1), "anna", 200);
        let same_account = waiting(&queue, source(2), "guest", 201);
        let mut state = queue.state.lock();
        for _ in 0..4 {
            let told = state.next_login(Instant::now()).unwrap();
            told.send(Turn::Known).unwrap();
        }
        drop(state);
        for mut other in [same_source, same_account] {
            assert!(matches!(other.try_recv(), Ok(Turn::Known)));
        }
        assert_eq!(crowd.len(), 100);
    }

    #[tokio::test]
    async fn failed_sources_wait_for_others() {
        let (queue, _permits) = busy().await;
        for _ in 0..10 {
            queue.checked(source(1), &account("guest"), &[255; 32], false);
        }
        let _crowd: Vec<_> = (0..50).map(|n| waiting(&queue, source(1), "guest", n)).collect();
        let mut others: Vec<_> =
            (0..6).map(|n| waiting(&queue, source(1), &format!("user {n}"), 100 + n)).collect();
        let mut state = queue.state.lock();
        for _ in 0..9 {
            state.next_login(Instant::now()).unwrap().send(Turn::Known).unwrap();
        }
        drop(state);
        // Two of nine turns belong to the rotation.
        let is_served =
            |one: &mut oneshot::Receiver<Turn>| matches!(one.try_recv(), Ok(Turn::Known));
        assert!(others.iter_mut().all(is_served));
    }

    #[tokio::test]
    async fn full_queue_drops_from_the_largest_source() {
        let (queue, _permits) = busy().await;
        let mut other = waiting(&queue, source(2), "anna", 0);
        let crowd: Vec<_> =
            (0..LOGINS_WAITING_MAX + 5).map(|_| waiting(&queue, source(1), "guest", 1)).collect();
        let mut state = queue.state.lock();
        while state.waiting.len() > LOGINS_WAITING_MAX {
            state.shed(Protocol::Amqp091);
        }
        drop(state);
        let mut gone = 0;
        for mut one in crowd {
            gone +=
                usize::from(matches!(one.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        }
        assert_eq!(gone, 6);
        assert!(matches!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
    }

    #[tokio::test]
    async fn checked_password_answers_every_login_that_waits_with_it() {
        let (queue, permits) = busy().await;
        let mut alike: Vec<_> = (0..3).map(|n| waiting(&queue, source(n), "anna", 9)).collect();
        let mut other = waiting(&queue, source(1), "anna", 8);
        queue.checked(source(7), &account("anna"), &[9; 32], true);
        assert!(alike.iter_mut().all(|one| matches!(one.try_recv(), Ok(Turn::Known))));
        assert!(other.try_recv().is_err());
        drop(permits);
        assert!(matches!(other.try_recv(), Ok(Turn::Check(_))));
    }

    #[tokio::test]
    async fn dropped_login_gives_its_turn_away() {
        let (queue, permits) = busy().await;
        drop(waiting(&queue, source(1), "anna", 1));
        let mut second = waiting(&queue, source(1), "anna", 2);
        drop(permits);
        assert!(matches!(second.try_recv(), Ok(Turn::Check(_))));
        drop(second);
        assert_eq!(queue.state.lock().running, 0);
        assert!(matches!(queue.urgent_turn().await, Some(Turn::Check(_))));
    }
}
