//! The answer to the service manager's watchdog: a report at intervals that the broker lives.
//!
//! A report proves that the runtime polls its tasks, that the timer's thread makes its turns, and that the lock
//! of no vhost is stuck. The disk is no part of it: a disk that hangs would be no better after a restart.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::limits::{STUCK_HOLD, WATCHDOG_INTERVAL_MIN};
use crate::node::Node;
use crate::service_state;

/// The serving node, once there is one.
pub(crate) type Watched = Arc<OnceLock<Weak<Node>>>;

/// Reports until the broker stops, at a third of the interval that the service manager asks for; does nothing if
/// the manager asks for no reports.
pub(crate) async fn run(watched: Watched) {
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    let pause = (interval / 3).max(WATCHDOG_INTERVAL_MIN);
    loop {
        match stuck(&watched) {
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

/// The part of the node that is stuck, in words.
fn stuck(watched: &OnceLock<Weak<Node>>) -> Option<String> {
    let node = watched.get().and_then(Weak::upgrade)?;
    if *node.lifecycle.stopping.borrow() {
        return None;
    }
    if !node.threads.timer.has_answered() {
        return Some("the timer makes no turns".to_owned());
    }
    let held = |hold: Duration| hold >= STUCK_HOLD;
    let stuck = node.vhosts.all().into_iter().find(|handle| held(handle.held_for()))?;
    Some(format!("the lock of vhost '{}' is held too long", stuck.name()))
}
