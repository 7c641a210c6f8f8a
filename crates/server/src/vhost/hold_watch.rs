//! A watch over long holds of vhosts' locks: it keeps the runtime serving the sockets of everybody else.
//!
//! The workers of the runtime take turns in watching the sockets. A worker that finds one ready task runs it, and wakes no
//! other worker for the watch. If that task holds the lock of a vhost for seconds, nobody hears the clients of the other
//! vhosts, although the other workers have nothing to do. A task that comes from this thread wakes one of them, and it
//! watches the sockets from then on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::{io, thread};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::limits::{HOLD_LOOK_INTERVAL, HOLD_LOOKS_IDLE};

/// Counts of the holds, and the thread that looks at them.
#[derive(Default, Debug)]
pub(crate) struct HoldWatch {
    begun: AtomicU64,
    ended: AtomicU64,
    /// True while the thread waits for the next hold.
    rests: AtomicBool,
    thread: OnceLock<Thread>,
    runtimes: Mutex<Vec<Handle>>,
    is_ending: AtomicBool,
}

/// The next step of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Look again after the interval.
    LookAgain,
    /// Wake a worker, because the only hold is a long one.
    WakeWorker,
    /// Wait for the next hold: there was none for a while.
    Rest,
}

/// The looks so far.
#[derive(Default, Debug)]
struct Looks {
    /// Holds that had begun at the last look.
    begun: u64,
    /// Looks in a row that found nothing.
    idle: u32,
}

impl Looks {
    /// Looks at the numbers of holds that have begun and ended so far.
    fn look(&mut self, begun: u64, ended: u64) -> Step {
        let is_new = std::mem::replace(&mut self.begun, begun) != begun;
        if is_new || begun != ended {
            self.idle = 0;
            // With a new hold, some worker has just been awake, and looks after the sockets when it has nothing to do.
            return if is_new { Step::LookAgain } else { Step::WakeWorker };
        }
        self.idle += 1;
        if self.idle < HOLD_LOOKS_IDLE { Step::LookAgain } else { Step::Rest }
    }
}

impl HoldWatch {
    /// Starts the thread, which ends with [`HoldWatch::end`].
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let watch = Arc::new(Self::default());
        let run = Arc::clone(&watch);
        let thread =
            thread::Builder::new().name("hold-watch".to_owned()).spawn(move || run.run())?;
        watch.thread.get_or_init(|| thread.thread().clone());
        Ok(watch)
    }

    /// Adds a runtime whose workers take the locks.
    pub(crate) fn watch_over(&self, runtime: Handle) {
        self.runtimes.lock().push(runtime);
    }

    /// A hold begins.
    #[inline]
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if self.rests.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// A hold ends.
    #[inline]
    pub(super) fn end_hold(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.wake();
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn run(&self) {
        let mut looks = Looks::default();
        while !self.is_ending.load(Ordering::SeqCst) {
            // In this order: a hold counts as over only if it had begun.
            let ended = self.ended.load(Ordering::SeqCst);
            let begun = self.begun.load(Ordering::SeqCst);
            match looks.look(begun, ended) {
                Step::LookAgain => thread::sleep(HOLD_LOOK_INTERVAL),
                Step::WakeWorker => {
                    for runtime in &*self.runtimes.lock() {
                        runtime.spawn(std::future::ready(()));
                    }
                    thread::sleep(HOLD_LOOK_INTERVAL);
                }
                Step::Rest => {
                    self.rests.store(true, Ordering::SeqCst);
                    // A hold that has begun since the look has not seen that the thread rests.
                    while self.begun.load(Ordering::SeqCst) == begun
                        && !self.is_ending.load(Ordering::SeqCst)
                    {
                        thread::park();
                    }
                    self.rests.store(false, Ordering::SeqCst);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn looks_wake_a_worker_during_the_only_hold_and_rest_without_any() {
        let mut looks = Looks::default();
        assert_eq!(looks.look(1, 0), Step::LookAgain, "it has just begun");
        assert_eq!(looks.look(1, 0), Step::WakeWorker);
        assert_eq!(looks.look(1, 0), Step::WakeWorker, "as long as it lasts");
        assert_eq!(looks.look(2, 0), Step::LookAgain, "another worker is awake");
        assert_eq!(looks.look(2, 1), Step::WakeWorker);
        for _ in 1..HOLD_LOOKS_IDLE {
            assert_eq!(looks.look(2, 2), Step::LookAgain);
        }
        assert_eq!(looks.look(2, 2), Step::Rest);
        assert_eq!(looks.look(3, 3), Step::LookAgain);
        assert_eq!(looks.look(3, 3), Step::LookAgain, "the rest begins anew");
    }

    /// Work for long: told when it begins, and over when the other end is dropped.
    type LongWork = Arc<Mutex<(Sender<()>, Receiver<()>)>>;

    /// Answers each byte of a client with the same one, a zero after the long work.
    async fn echo(mut socket: tokio::net::TcpStream, watch: Arc<HoldWatch>, long: LongWork) {
        let mut byte = [1];
        while socket.read_exact(&mut byte).await.is_ok() {
            watch.begin();
            if byte == [0] {
                let (begun, ends) = &*long.lock();
                begun.send(()).unwrap();
                ends.recv().unwrap_err();
            }
            watch.end_hold();
            socket.write_all(&byte).await.unwrap();
        }
    }

    #[test]
    fn sockets_are_served_while_a_task_works_for_long() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let watch = HoldWatch::start().unwrap();
        watch.watch_over(runtime.handle().clone());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ((end, ends), (begun, begins)) = (channel(), channel());
        let long = Arc::new(Mutex::new((begun, ends)));
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let (served, _) = listener.accept().unwrap();
            served.set_nonblocking(true).unwrap();
            let (watch, long) = (Arc::clone(&watch), Arc::clone(&long));
            runtime.spawn(async move {
                echo(tokio::net::TcpStream::from_std(served).unwrap(), watch, long).await;
            });
            client
        };
        let (mut busy, mut other) = (connect(), connect());
        let round = |client: &mut TcpStream| {
            let mut answer = [0];
            client.write_all(&[7]).unwrap();
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [7]);
        };
        round(&mut busy);
        round(&mut other);
        busy.write_all(&[0]).unwrap();
        begins.recv().unwrap();
        // Without the watch, the worker that serves the busy client is the one that has watched the sockets, and this is
        // never answered.
        for _ in 0..3 {
            round(&mut other);
        }
        drop(end);
        let mut answer = [9];
        busy.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0]);
        watch.end();
    }
}
