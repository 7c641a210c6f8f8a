//! The memory that HTTP may take: for bodies while they are read, and for answers until they are sent.
//!
//! Three pools have a share each, so that uploads, answers and scrapers do not take each other's room. When a pool is
//! full, the slowest transfer in it gives way, or else the request that needs room is answered with 503.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::limits::{
    HTTP_BUDGET_BYTES_MAX, HTTP_BUDGET_BYTES_MIN, HTTP_BUDGET_SHARE, HTTP_LONG_ANSWERS_AT_ONCE,
    HTTP_ROOM_CHECK_INTERVAL, HTTP_ROOM_TIMEOUT, LOCAL_BODY_BYTES_MAX,
};

/// The use of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
    /// Bodies of requests, and the values in them.
    Bodies,
    /// Answers of the API.
    Answers,
    /// Answers on the listener of scrapers, which need no login.
    Metrics,
}

impl Pool {
    /// The pool's part of `bytes`.
    const fn share(self, bytes: usize) -> usize {
        match self {
            Self::Bodies => bytes / 2,
            Self::Answers | Self::Metrics => bytes / 4,
        }
    }
}

/// The memory that HTTP may take, on all listeners and for other nodes.
#[derive(Debug)]
pub struct HttpBudget {
    bytes: AtomicUsize,
    body_bytes_max: usize,
    pools: [PoolState; 3],
    /// Permits for answers that are made as a whole.
    long_answers: Semaphore,
}

#[derive(Default, Debug)]
struct PoolState {
    room: Mutex<Room>,
    /// Notified when room is given back.
    given_back: Notify,
}

#[derive(Default, Debug)]
struct Room {
    taken: usize,
    /// The requests that send or get something, and may have to give way.
    transfers: Vec<Weak<dyn GivesWay>>,
}

/// A request whose body comes, or whose answer goes, over a socket.
pub trait GivesWay: Send + Sync {
    /// Time for which the transfer has been too slow; none if it is fast enough.
    fn behind(&self, now: Instant) -> Option<Duration>;

    /// Ends the transfer, for others who need the room. False if the room comes later, or the transfer moves just now.
    fn give_way(&self) -> bool;
}

/// A pool has no room.
///
/// COMPAT: memory of HTTP: requests without room get 503; RabbitMQ gives HTTP all memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverBudget(
    /// The pool.
    pub Pool,
);

impl HttpBudget {
    /// A budget for a process with this memory watermark; none for unlimited. A body has `body_bytes_max` bytes at most.
    pub fn new(watermark_bytes: Option<u64>, body_bytes_max: usize) -> Self {
        let budget = Self {
            bytes: AtomicUsize::new(HTTP_BUDGET_BYTES_MAX),
            body_bytes_max,
            pools: Default::default(),
            long_answers: Semaphore::new(HTTP_LONG_ANSWERS_AT_ONCE),
        };
        budget.follow(watermark_bytes);
        budget
    }

    /// Follows a change of the memory watermark.
    pub fn follow(&self, watermark_bytes: Option<u64>) {
        let share = watermark_bytes.map_or(u64::MAX, |bytes| bytes / HTTP_BUDGET_SHARE);
        let bytes = usize::try_from(share).unwrap_or(usize::MAX);
        let bytes = bytes.clamp(HTTP_BUDGET_BYTES_MIN, HTTP_BUDGET_BYTES_MAX);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of a body, at most; more for a tool of the machine itself.
    pub fn body_bytes_max(&self, is_local_tool: bool) -> usize {
        if is_local_tool { LOCAL_BODY_BYTES_MAX } else { self.body_bytes_max }
    }

    /// Waits for the turn of an answer that is made as a whole. Must not be kept while other nodes are asked.
    pub async fn long_answer(&self) -> impl Drop + use<'_> {
        self.long_answers.acquire().await.expect("the semaphore is never closed")
    }

    const fn pool(&self, pool: Pool) -> &PoolState {
        let [bodies, answers, metrics] = &self.pools;
        match pool {
            Pool::Bodies => bodies,
            Pool::Answers => answers,
            Pool::Metrics => metrics,
        }
    }

    fn room(&self, pool: Pool) -> MutexGuard<'_, Room> {
        self.pool(pool).room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room. A transfer that is too slow gives way.
    ///
    /// # Errors
    /// [`OverBudget`] if there is no room.
    pub fn take(&self, pool: Pool, bytes: usize) -> Result<(), OverBudget> {
        let bytes_max = pool.share(self.bytes.load(Ordering::Relaxed));
        loop {
            // Each gives its room back when it is dropped here: the lock is not held then.
            let transfers: Vec<_> = {
                let mut room = self.room(pool);
                if bytes <= bytes_max.saturating_sub(room.taken) {
                    room.taken += bytes;
                    return Ok(());
                }
                if bytes > bytes_max {
                    return Err(OverBudget(pool));
                }
                room.transfers.iter().filter_map(Weak::upgrade).collect()
            };
            if !slowest(&transfers, Instant::now()).is_some_and(GivesWay::give_way) {
                return Err(OverBudget(pool));
            }
        }
    }

    /// Takes room, and waits a moment for it.
    ///
    /// # Errors
    /// [`OverBudget`] if there is no room.
    pub async fn take_soon(&self, pool: Pool, bytes: usize) -> Result<(), OverBudget> {
        let deadline = Instant::now() + HTTP_ROOM_TIMEOUT;
        loop {
            let given_back = self.pool(pool).given_back.notified();
            match self.take(pool, bytes) {
                Err(over) if Instant::now() >= deadline => return Err(over),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
            // Transfers become too slow without a notice.
            let next_check = deadline.min(Instant::now() + HTTP_ROOM_CHECK_INTERVAL);
            drop(timeout_at(next_check, given_back).await);
        }
    }

    /// Gives room back.
    pub fn give_back(&self, pool: Pool, bytes: usize) {
        if bytes > 0 {
            self.room(pool).taken -= bytes;
            self.pool(pool).given_back.notify_waiters();
        }
    }

    /// Adds a transfer to those that give way when they are too slow.
    pub fn follow_transfer(&self, pool: Pool, transfer: Weak<dyn GivesWay>) {
        let mut room = self.room(pool);
        room.transfers.retain(|one| one.strong_count() > 0);
        room.transfers.push(transfer);
    }

    /// Bytes that a pool has taken.
    #[must_use]
    pub fn taken(&self, pool: Pool) -> usize {
        self.room(pool).taken
    }

    /// A budget of exactly this size, for a test.
    #[must_use]
    pub fn of(bytes: usize) -> Arc<Self> {
        let budget = Self::new(None, bytes);
        budget.bytes.store(bytes, Ordering::Relaxed);
        Arc::new(budget)
    }
}

/// The transfer that has been too slow for the longest time.
fn slowest(transfers: &[Arc<dyn GivesWay>], now: Instant) -> Option<&dyn GivesWay> {
    let late = transfers.iter().filter_map(|one| Some((one.behind(now)?, one)));
    late.max_by_key(|(behind, _)| *behind).map(|(_, one)| &**one)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// A transfer that ends while somebody looks at it.
    struct Ends {
        budget: Arc<HttpBudget>,
        connection: Mutex<Option<Arc<Self>>>,
    }

    impl GivesWay for Ends {
        fn behind(&self, _now: Instant) -> Option<Duration> {
            drop(self.connection.lock().unwrap().take());
            None
        }

        fn give_way(&self) -> bool {
            false
        }
    }

    impl Drop for Ends {
        fn drop(&mut self) {
            self.budget.give_back(Pool::Answers, 100);
        }
    }

    #[test]
    fn transfer_may_end_while_room_is_looked_for() {
        let budget = HttpBudget::of(400);
        budget.take(Pool::Answers, 100).unwrap();
        let transfer = Arc::new(Ends { budget: Arc::clone(&budget), connection: Mutex::default() });
        *transfer.connection.lock().unwrap() = Some(Arc::clone(&transfer));
        let weak = Arc::downgrade(&transfer);
        budget.follow_transfer(Pool::Answers, weak);
        drop(transfer);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let tries = [(); 2].map(|()| budget.take(Pool::Answers, 1).is_ok());
            sender.send(tries).unwrap();
        });
        let tries = receiver.recv_timeout(Duration::from_secs(60));
        assert_eq!(tries, Ok([false, true]), "nobody gets room any more");
    }

    #[test]
    fn budget_follows_the_watermark_within_bounds() {
        let bytes = |watermark| HttpBudget::new(watermark, 1).bytes.load(Ordering::Relaxed);
        assert_eq!(bytes(None), HTTP_BUDGET_BYTES_MAX);
        assert_eq!(bytes(Some(0)), HTTP_BUDGET_BYTES_MIN);
        let watermark = HTTP_BUDGET_SHARE * (HTTP_BUDGET_BYTES_MIN as u64 + 1);
        assert_eq!(bytes(Some(watermark)), HTTP_BUDGET_BYTES_MIN + 1);
        let budget = HttpBudget::new(None, 1);
        budget.follow(Some(watermark));
        assert_eq!(budget.bytes.load(Ordering::Relaxed), HTTP_BUDGET_BYTES_MIN + 1);
    }

    #[test]
    fn pools_have_room_of_their_own() {
        let budget = HttpBudget::of(400);
        assert!(budget.take(Pool::Metrics, 100).is_ok());
        assert_eq!(budget.take(Pool::Metrics, 1), Err(OverBudget(Pool::Metrics)));
        assert!(budget.take(Pool::Answers, 60).is_ok() && budget.take(Pool::Bodies, 200).is_ok());
        assert_eq!(budget.take(Pool::Answers, 41), Err(OverBudget(Pool::Answers)));
        budget.give_back(Pool::Answers, 1);
        assert!(budget.take(Pool::Answers, 41).is_ok());
        assert_eq!(budget.taken(Pool::Answers), 100);
    }
}
