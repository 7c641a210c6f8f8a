//! Lifecycle of the process: a node that serves, and one that is stopped and may be reset.
//!
//! A serving node has threads, logs and connections all over the process. Replacing the image of the process
//! (`exec`) ends all of them for certain: the new image begins stopped, or starts anew, on the same addresses, with the
//! same process id and standard streams.

pub(crate) mod addresses;
pub(crate) mod joining;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::watch;

use crate::sockets::amqp_listeners::AmqpListeners;

/// The reason why a serving or stopped phase ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExitReason {
    /// The process exits.
    Stop,
    /// The process stays, stopped.
    StopApp,
    /// The process serves again.
    StartApp,
    /// The process stays and starts anew.
    Restart,
}

/// The request to end the current phase.
#[derive(Debug)]
pub(crate) struct ShutdownRequest(watch::Sender<Option<ExitReason>>);

impl ShutdownRequest {
    /// Creates a value without a request.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Requests the end of the current phase.
    pub(crate) fn request(&self, reason: ExitReason) {
        self.0.send_replace(Some(reason));
    }

    /// Waits for a request.
    pub(crate) async fn requested(&self) -> ExitReason {
        let mut requests = self.0.subscribe();
        loop {
            if let Some(reason) = *requests.borrow_and_update() {
                return reason;
            }
            if requests.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The lifecycle of a serving node, for every task to watch.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) started: Instant,
    pub(crate) shutdown: ShutdownRequest,
    /// True once the node stops.
    pub(crate) stopping: watch::Sender<bool>,
    /// True once the node closes its clients, because it stops and accepts none any more.
    pub(crate) closing_clients: watch::Sender<bool>,
    pub(crate) listeners: AmqpListeners,
    /// True while the node leads only what no other node can.
    pub(crate) is_drained: AtomicBool,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            shutdown: ShutdownRequest::new(),
            stopping: watch::Sender::new(false),
            closing_clients: watch::Sender::new(false),
            listeners: AmqpListeners::new(),
            is_drained: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requested_returns_an_earlier_request() {
        let shutdown = ShutdownRequest::new();
        shutdown.request(ExitReason::StopApp);
        assert_eq!(shutdown.requested().await, ExitReason::StopApp);
    }
}
