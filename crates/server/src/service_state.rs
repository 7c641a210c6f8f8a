//! Messages for the service manager that has started the broker, as systemd's `sd_notify` defines them.
//!
//! The messages go to the socket in the environment variable `NOTIFY_SOCKET`; without one nothing is sent.
//! They are about the whole process, and so is the state in this file. Until [`starting`] is called nothing is
//! sent, so that a broker inside another program says nothing about that program. A text is sent in one line: behind a
//! line end another message would begin.

use std::io;

use line::one_line;
use parking_lot::Mutex;
use sd_notify::NotifyState;

use crate::limits::START_STEP_TIME_MAX;

/// The state of the process that the service manager knows.
#[derive(Debug)]
struct Service {
    phase: Phase,
    /// Description of a broker that serves without a problem.
    status: String,
    /// The problem of the broker, also one that began during the start.
    problem: Option<String>,
}

impl Service {
    /// The text for the operator while the broker serves.
    fn shown(&self) -> &str {
        self.problem.as_ref().unwrap_or(&self.status)
    }
}

/// The phase of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The broker is part of another program.
    Embedded,
    /// No client is served yet.
    Starting,
    /// Clients are served.
    Serving,
    /// The broker ends.
    Stopping,
}

static SERVICE: Mutex<Service> =
    Mutex::new(Service { phase: Phase::Embedded, status: String::new(), problem: None });

/// Begins a start: from now on messages are sent.
pub(crate) fn starting() {
    SERVICE.lock().phase = Phase::Starting;
}

/// Reports a step of the start, and asks for [`START_STEP_TIME_MAX`] until the next report. Does nothing when
/// the broker serves already.
pub(crate) fn start_step(status: &str) {
    if SERVICE.lock().phase == Phase::Starting {
        let time_max_us = u32::try_from(START_STEP_TIME_MAX.as_micros())
            .expect("a step of the start may take less than an hour");
        let status = one_line(status);
        send(&[NotifyState::Status(&status), NotifyState::ExtendTimeoutUsec(time_max_us)]);
    }
}

/// Reports that every vhost is restored and that all listeners accept clients.
pub(crate) fn ready(status: &str) {
    let mut service = SERVICE.lock();
    if service.phase == Phase::Starting {
        service.phase = Phase::Serving;
        service.status = one_line(status).into_owned();
        send(&[NotifyState::Ready, NotifyState::Status(service.shown())]);
    }
}

/// Reports a problem of the broker, or the end of all problems.
pub(crate) fn problem(problem: Option<&str>) {
    let mut service = SERVICE.lock();
    service.problem = problem.map(|text| one_line(text).into_owned());
    if service.phase == Phase::Serving {
        send(&[NotifyState::Status(service.shown())]);
    }
}

/// Reports that the broker does not serve clients, and waits to be started by an operator.
pub(crate) fn stopped(status: &str) {
    if SERVICE.lock().phase == Phase::Starting {
        // The service runs: a stopped node answers `leveretctl`.
        send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
    }
}

/// Runs `reload`; a broker that serves reports its begin and its end.
pub(crate) fn reload(reload: impl FnOnce()) {
    // Held meanwhile: a broker that stops must not be reported as ready again.
    let service = SERVICE.lock();
    let serves = service.phase == Phase::Serving;
    if serves {
        // `Type=notify-reload` requires the time; without a clock the manager is told nothing.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(error) => warn(&error),
        }
    }
    reload();
    if serves {
        send(&[NotifyState::Ready]);
    }
}

/// Reports that the broker stops.
pub(crate) fn stopping() {
    let mut service = SERVICE.lock();
    if service.phase != Phase::Embedded {
        service.phase = Phase::Stopping;
        send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }
}

/// Reports that the broker lives; false if it stops, so that no further report is expected.
pub(crate) fn lives() -> bool {
    let is_expected = matches!(SERVICE.lock().phase, Phase::Starting | Phase::Serving);
    if is_expected {
        send(&[NotifyState::Watchdog]);
    }
    is_expected
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn(&error);
    }
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "cannot send a message to the service manager");
}
