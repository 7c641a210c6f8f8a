//! The answer to the service manager's watchdog: a report at intervals that the broker lives.
//!
//! A report proves that the runtime polls its tasks, that the timer's thread makes its turns, and that the lock
//! of no vhost is stuck. The disk is no part of it: a disk that hangs would be no better after a restart.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::clock::own_time;
use crate::limits::{OWN_STANDSTILL_TOLD, STUCK_HOLD, WATCHDOG_INTERVAL_MIN};
use crate::node::Node;
use crate::service_state;

/// The serving node, once there is one.
pub(crate) type Watched = Arc<OnceLock<Weak<Node>>>;

/// Reports until the broker stops, at a third of the interval that the service manager asks for; does nothing if
/// the manager asks for no reports.
pub(crate) async fn run(watched: Watched) {
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    let pause = (interval / 3).max(WATCHDOG_INTERVAL_MIN);
    let mut stood_still = own_time::stood_still();
    loop {
        let before = std::mem::replace(&mut stood_still, own_time::stood_still());
        // After a standstill of the process nothing has had the time to move.
        let has_run = stood_still.saturating_sub(before) < OWN_STANDSTILL_TOLD;
        match stuck(&watched, STUCK_HOLD).filter(|_| has_run) {
            Some(problem) => tracing::error!("no report to the watchdog: {problem}"),
            None => {
                // Does not keep the tasks of this worker from running if the manager takes no messages.
                let reported = tokio::task::spawn_blocking(service_state::lives).await;
                if !reported.unwrap_or(false) {
                    return;
                }
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// The part of the node that is stuck, in words; `hold_max` is the longest time that the lock of a vhost may be held.
fn stuck(watched: &OnceLock<Weak<Node>>, hold_max: Duration) -> Option<String> {
    let node = watched.get().and_then(Weak::upgrade)?;
    if *node.lifecycle.stopping.borrow() {
        return None;
    }
    if !node.threads.timer.has_answered() {
        return Some("the timer makes no turns".to_owned());
    }
    let stuck = node.vhosts.all().into_iter().find(|handle| handle.held_for() >= hold_max)?;
    Some(format!("the lock of vhost '{}' is held too long", stuck.name()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::config::Config;

    /// A long hold for a test.
    const HOLD_MAX: Duration = Duration::from_millis(300);

    #[test]
    fn stuck_parts_are_found_and_forgotten_when_they_move_again() {
        let data_dir =
            std::env::temp_dir().join(format!("leveret-watchdog-{}", std::process::id()));
        let config = Config { data_dir: data_dir.clone(), ..Config::default() };
        let node = Arc::new(Node::start(&config, Vec::new()).unwrap());
        let watched = OnceLock::new();
        assert_eq!(stuck(&watched, Duration::ZERO), None, "there is no node yet");
        watched.set(Arc::downgrade(&node)).unwrap();
        let until = |problem: Option<&str>| {
            while stuck(&watched, HOLD_MAX).as_deref() != problem {
                std::thread::yield_now();
            }
        };
        until(None);
        let vhost = node.vhosts.get("/").unwrap();
        let ((end, ends), (begun, begins)) = (channel::<()>(), channel());
        let holder = std::thread::spawn(move || {
            vhost.measure(|_, _| {
                begun.send(()).unwrap();
                ends.recv().unwrap_err();
            });
        });
        begins.recv().unwrap();
        until(Some("the lock of vhost '/' is held too long"));
        drop(end);
        holder.join().unwrap();
        until(None);
        node.threads.timer.stop();
        until(Some("the timer makes no turns"));
        node.begin_stop();
        assert_eq!(stuck(&watched, HOLD_MAX), None, "a stop is no fault");
        node.close();
        drop(node);
        std::fs::remove_dir_all(data_dir).unwrap();
    }
}
