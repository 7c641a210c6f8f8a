//! The AMQP listeners of a node, suspended and resumed together: <https://www.rabbitmq.com/docs/upgrade>, on
//! maintenance mode.

use tokio::sync::watch;

/// The listeners: whether they are to be suspended, and how far they are.
#[derive(Debug)]
pub(crate) struct AmqpListeners {
    are_suspended: watch::Sender<bool>,
    progress: watch::Sender<Progress>,
}

#[derive(Default, Debug)]
struct Progress {
    all: usize,
    suspended: usize,
    /// The reason why a listener could not be resumed, since the last request.
    error: Option<String>,
}

impl AmqpListeners {
    pub(crate) fn new() -> Self {
        let progress = watch::Sender::new(Progress::default());
        Self { are_suspended: watch::Sender::new(false), progress }
    }

    /// True from the request to suspend the listeners until the request to resume them.
    pub(crate) fn are_suspended(&self) -> bool {
        *self.are_suspended.borrow()
    }

    /// Suspends or resumes the listeners, and waits until each has followed or the opposite was requested.
    ///
    /// # Errors
    /// If a listener cannot be resumed; it tries again.
    pub(crate) async fn set_suspended(&self, are_suspended: bool) -> Result<(), String> {
        self.progress.send_modify(|progress| progress.error = None);
        self.are_suspended.send_replace(are_suspended);
        let (mut requested, mut progress) =
            (self.are_suspended.subscribe(), self.progress.subscribe());
        let done = progress.wait_for(|Progress { all, suspended, error }| {
            *suspended == if are_suspended { *all } else { 0 } || error.is_some()
        });
        tokio::select! {
            progress = done => match progress.ok().and_then(|progress| progress.error.clone()) {
                Some(error) => Err(error),
                None => Ok(()),
            },
            _ = requested.wait_for(|requested| *requested != are_suspended) => Ok(()),
        }
    }

    /// Counts one more listener, for as long as the returned value lives.
    pub(crate) fn add(&self) -> ListenerState<'_> {
        self.progress.send_modify(|progress| progress.all += 1);
        let requested = self.are_suspended.subscribe();
        ListenerState { progress: &self.progress, requested, is_suspended: false }
    }
}

/// One listener of the node.
#[derive(Debug)]
pub(crate) struct ListenerState<'a> {
    progress: &'a watch::Sender<Progress>,
    /// True while the listener is to be suspended.
    pub(crate) requested: watch::Receiver<bool>,
    is_suspended: bool,
}

impl ListenerState<'_> {
    /// The listener is closed, or listens again.
    pub(crate) fn set_suspended(&mut self, is_suspended: bool) {
        if std::mem::replace(&mut self.is_suspended, is_suspended) == is_suspended {
            return;
        }
        self.progress.send_modify(|progress| {
            if is_suspended {
                progress.suspended += 1;
            } else {
                progress.suspended -= 1;
            }
        });
    }

    /// The listener could not be resumed.
    pub(crate) fn failed(&self, error: String) {
        self.progress.send_modify(|progress| progress.error = Some(error));
    }
}

impl Drop for ListenerState<'_> {
    fn drop(&mut self) {
        self.set_suspended(false);
        self.progress.send_modify(|progress| progress.all -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn request_is_done_once_each_listener_has_followed() {
        let listeners = AmqpListeners::new();
        let (mut plain, mut tls) = (listeners.add(), listeners.add());
        let mut suspend = pin!(listeners.set_suspended(true));
        assert_eq!(poll(suspend.as_mut()), Poll::Pending);
        assert!(*plain.requested.borrow());
        plain.set_suspended(true);
        assert_eq!(poll(suspend.as_mut()), Poll::Pending);
        tls.set_suspended(true);
        assert_eq!(poll(suspend.as_mut()), Poll::Ready(Ok(())));
        let mut resume = pin!(listeners.set_suspended(false));
        assert_eq!(poll(resume.as_mut()), Poll::Pending);
        plain.set_suspended(false);
        assert_eq!(poll(resume.as_mut()), Poll::Pending);
        drop(tls);
        assert_eq!(poll(resume.as_mut()), Poll::Ready(Ok(())));
    }

    #[test]
    fn failure_to_resume_is_told_until_the_next_request() {
        let listeners = AmqpListeners::new();
        let mut one = listeners.add();
        one.set_suspended(true);
        let mut resume = pin!(listeners.set_suspended(false));
        assert_eq!(poll(resume.as_mut()), Poll::Pending);
        one.failed("taken".to_owned());
        assert_eq!(poll(resume.as_mut()), Poll::Ready(Err("taken".to_owned())));
        let mut again = pin!(listeners.set_suspended(false));
        assert_eq!(poll(again.as_mut()), Poll::Pending);
        one.set_suspended(false);
        assert_eq!(poll(again.as_mut()), Poll::Ready(Ok(())));
    }

    #[test]
    fn opposite_request_ends_the_wait() {
        let listeners = AmqpListeners::new();
        let mut one = listeners.add();
        let mut suspend = pin!(listeners.set_suspended(true));
        assert_eq!(poll(suspend.as_mut()), Poll::Pending);
        let mut resume = pin!(listeners.set_suspended(false));
        assert_eq!(poll(resume.as_mut()), Poll::Ready(Ok(())));
        assert_eq!(poll(suspend.as_mut()), Poll::Ready(Ok(())));
        one.set_suspended(false);
    }
}
