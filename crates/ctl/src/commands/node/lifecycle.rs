//! Lifecycle of the node: waiting for its start, stopping it, resetting it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::status;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, SOFTWARE, TIMEOUT, UNAVAILABLE, USAGE};
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::process::{has_released, is_running};

/// Default time limit of waiting.
pub(in crate::commands) const START_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit for the end of a process.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of checks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "ping",
        "ping [--timeout <timeout>]",
        "Checks that the node answers",
        ping,
    )
    .everywhere()
    .banner(|call| {
        let timeout_ms = call.options.integer("timeout").unwrap_or(60) * 1000;
        format!(
            "Will ping {}. This only checks if the OS process is running and registered with epmd. \
             Timeout: {timeout_ms} ms.",
            call.node.name()
        )
    }),
    Command::new(
        Section::Nodes,
        "await_startup",
        "await_startup [--timeout <timeout>]",
        "Waits until the node has started",
        |call| {
            await_start(call, deadline(call, START_TIMEOUT), "await_startup")?;
            Ok(Output::Done)
        },
    )
    .waits_for_start(),
    Command::new(
        Section::Nodes,
        "wait",
        "wait [<pidfile>] [--pid|-P <pid>] [--timeout <timeout>]",
        "Waits until the node of a process has started",
        wait,
    )
    .everywhere()
    .words(0, 1)
    .switches(&[Switch::integer("pid").or('P')])
    .check(|call| match (call.words.first(), call.options.integer("pid")) {
        (None, None) => Err(Failure::arguments(USAGE, "\"No pid or pidfile specified\"")),
        (Some(_), Some(_)) => {
            let problem = "\"Cannot specify both pid and pidfile\"";
            Err(Failure::arguments(USAGE, problem))
        }
        _ => Ok(()),
    })
    .waits_for_start(),
    Command::new(
        Section::Cluster,
        "await_online_nodes",
        "await_online_nodes <count> [--timeout <timeout>]",
        "Waits until a number of nodes run",
        await_nodes,
    )
    .words(1, 1)
    .check(|call| match call.word(0).parse::<u32>() {
        Ok(count) if count > 0 => Ok(()),
        _ => Err(Failure::bad_argument(Some("Argument must be a positive integer"))),
    })
    .banner(|call| {
        let seconds = call.options.integer("timeout").unwrap_or(300);
        let (count, node) = (call.word(0), call.node.name());
        format!(
            "Will wait for at least {count} nodes to join the cluster of {node}. Timeout: {seconds} \
             seconds."
        )
    }),
    Command::new(Section::Nodes, "stop", "stop [<pidfile>]", "Stops the node and its process", stop)
        .slow()
        .words(0, 1)
        .banner(|call| {
            let node = call.node.name();
            let file = call.words.first();
            let file = file.map_or_else(String::new, |f| format!(" (will monitor pid file {f})"));
            format!("Stopping and halting node {node}{file} ...")
        })
        .waits(),
    Command::new(
        Section::Nodes,
        "shutdown",
        "shutdown [--wait]",
        "Stops the node and its process, and waits for the end of the process",
        shutdown,
    )
    .slow()
    .switches(&[Switch::flag("wait")])
    .waits(),
    Command::new(
        Section::Nodes,
        "stop_app",
        "stop_app",
        "Stops serving clients; the process stays, for start_app or reset",
        |call| change(call, "stop_app", State::Stopped),
    )
    .slow()
    .banner(|call| format!("Stopping rabbit application on node {} ...", call.node.name())),
    Command::new(
        Section::Nodes,
        "start_app",
        "start_app",
        "Serves clients again after stop_app",
        |call| change(call, "start_app", State::Running),
    )
    .slow()
    .banner(|call| format!("Starting node {} ...", call.node.name())),
    Command::new(
        Section::Nodes,
        "reset",
        "reset",
        "Takes the node out of its cluster and deletes all its data, after stop_app",
        |call| act(call, "reset"),
    )
    .slow()
    .banner(|call| format!("Resetting node {} ...", call.node.name())),
    Command::new(
        Section::Cluster,
        "force_reset",
        "force_reset",
        "Deletes all data of the node, after stop_app, without a word to its cluster",
        |call| act(call, "force_reset"),
    )
    .slow()
    .banner(|call| format!("Forcefully resetting node {} ...", call.node.name())),
];

/// State of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Stopped,
}

/// Requests a change of the node's state, and waits for it.
fn change(call: &Call<'_>, action: &str, wanted: State) -> Result<Output, Failure> {
    act(call, action)?;
    let look = || {
        // The node has another token after each start.
        let node = (call.find)().ok()?;
        let state = match node.api.get("/api/whoami") {
            Ok(_) => State::Running,
            Err(HttpError::Refused { status: 503, .. }) => State::Stopped,
            Err(_) => return None,
        };
        (state == wanted).then_some(())
    };
    let reached = poll(deadline(call, START_TIMEOUT), look);
    let why = format!("{} has not done it", call.node.api.url());
    reached.map(|()| Output::Done).ok_or_else(|| timed_out(call, action, &why))
}

/// Requests an action of the node, for example a change of its state.
pub(in crate::commands) fn act(call: &Call<'_>, action: &str) -> Result<Output, Failure> {
    let at = path(&["nodes", call.node.name(), "actions"]);
    call.node.api.post(&at, &json!({"action": action}))?;
    Ok(Output::Done)
}

fn ping(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.get("/api/whoami") {
        // Any answer is enough.
        Ok(_) | Err(HttpError::Refused { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let done = "Ping succeeded";
    Ok(Output::message(done))
}

/// End of the time limit of the caller.
pub(in crate::commands) fn deadline(call: &Call<'_>, usual: Duration) -> Instant {
    let seconds = call.options.integer("timeout").and_then(|s| u64::try_from(s).ok());
    Instant::now() + seconds.map_or(usual, Duration::from_secs)
}

/// Checks repeatedly; `None` when the time is over.
pub(crate) fn poll<T>(deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The end of the time limit: as RabbitMQ's tools say it, and a line about what was waited for.
pub(in crate::commands) fn timed_out(call: &Call<'_>, operation: &str, why: &str) -> Failure {
    let timeout_ms = call.options.integer("timeout").map_or(300_000, |seconds| seconds * 1000);
    let node = call.options.text("node").unwrap_or("rabbit@localhost");
    let text = format!(
        "Error: operation {operation} on node {node} timed out. Timeout value used: {timeout_ms}"
    );
    Failure::lines(TIMEOUT, [text.as_str(), why])
}

/// A node that has not started.
enum NotStarted {
    /// A node that may start later, and its state now.
    Yet(String),
    /// A node that refuses the caller.
    Refusing(HttpError),
}

/// Looks whether the node has started. A node that has just started has a new token, so it is found again each time.
fn look_for_start(call: &Call<'_>) -> Result<(), NotStarted> {
    let node = (call.find)().map_err(|failure| NotStarted::Yet(failure.sentence()))?;
    let url = node.api.url();
    let Err(error) = node.api.get("/api/whoami") else { return Ok(()) };
    Err(match error {
        // With an invalid token: the file of the next start is not written yet. Without one: the node accepted the
        // connection before it wrote the file, and answered afterwards.
        HttpError::Refused { status: 401, .. }
            if node.api.has_token() || (call.find)().is_ok_and(|again| again.api.has_token()) =>
        {
            NotStarted::Yet(format!("{url} refuses the token of its ctl.json"))
        }
        HttpError::Refused { status: 503, reason } => NotStarted::Yet(format!("{url}: {reason}")),
        error @ HttpError::Refused { .. } => NotStarted::Refusing(error),
        HttpError::Unreachable(why) => NotStarted::Yet(node.unanswered(&why)),
        HttpError::TimedOut => NotStarted::Yet(format!("{url} has not answered in time")),
    })
}

fn await_start(call: &Call<'_>, deadline: Instant, operation: &str) -> Result<(), Failure> {
    let mut last = String::new();
    let look = || match look_for_start(call) {
        Ok(()) => Some(Ok(())),
        Err(NotStarted::Refusing(error)) => Some(Err(error.into())),
        Err(NotStarted::Yet(why)) => {
            last = why;
            None
        }
    };
    poll(deadline, look).unwrap_or_else(|| Err(timed_out(call, operation, &last)))
}

fn wait(call: &Call<'_>) -> Result<Output, Failure> {
    let deadline = deadline(call, START_TIMEOUT);
    let pid = match call.words.first() {
        Some(file) => {
            call.say(&format!("Waiting for pid file '{file}' to appear"));
            let read = || std::fs::read_to_string(file).ok()?.trim().parse::<i64>().ok();
            let missing = || timed_out(call, "wait", &format!("'{file}' names no process"));
            let pid = poll(deadline, read).ok_or_else(missing)?;
            call.say(&format!("pid is {pid}"));
            pid
        }
        None => call.options.integer("pid").unwrap_or_default(),
    };
    let node =
        (call.find)().map_or_else(|_| "rabbit@localhost".to_owned(), |n| n.name().to_owned());
    call.say(&format!(
        "Waiting for erlang distribution on node '{node}' while OS process '{pid}' is running"
    ));
    let not_running = || Failure::error(UNAVAILABLE, "process_not_running");
    if !is_running(pid) {
        return Err(not_running());
    }
    call.say(&format!("Waiting for applications 'rabbit_and_plugins' to start on node '{node}'"));
    loop {
        match await_start(call, Instant::now(), "wait") {
            Ok(()) => break,
            Err(_) if !is_running(pid) => return Err(not_running()),
            Err(failure) if Instant::now() >= deadline => return Err(failure),
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
    call.say(&format!("Applications 'rabbit_and_plugins' are running on node '{node}'"));
    Ok(Output::Done)
}

fn await_nodes(call: &Call<'_>) -> Result<Output, Failure> {
    let wanted: usize = call.word(0).parse().unwrap_or(usize::MAX);
    let enough = || {
        let running =
            |nodes: Vec<Value>| nodes.iter().filter(|node| status::is_running(node)).count();
        match status::all_nodes(call).map(running) {
            Ok(count) if count < wanted => None,
            Ok(_) => Some(Ok(())),
            Err(failure) => Some(Err(failure)),
        }
    };
    if let Some(found) = poll(deadline(call, START_TIMEOUT), enough) {
        return found.map(|()| Output::Done);
    }
    let node = call.node.name();
    let text = format!("Error: timed out while waiting. Not enough nodes joined {node}'s cluster.");
    Err(Failure::error(SOFTWARE, text))
}

/// Stops the node. Returns the id of its process, if it runs on this machine.
fn begin_to_stop(call: &Call<'_>) -> Result<Option<i64>, Failure> {
    let node = status::own_node(call)?;
    let pid = node.get("os_pid").and_then(|pid| pid.as_str()?.parse().ok());
    // Asked before the request: the process of a small node has ended when the answer is here.
    let pid = pid.filter(|pid| is_running(*pid));
    act(call, "stop")?;
    Ok(pid)
}

/// Waits until a process has ended and released its data directory, or the node does not answer, if it runs on another
/// machine.
fn await_end(call: &Call<'_>, pid: Option<i64>, operation: &str) -> Result<(), Failure> {
    let has_ended = || match pid {
        Some(pid) => has_released(pid),
        None => !call.node.answers(),
    };
    let ended = poll(deadline(call, STOP_TIMEOUT), || has_ended().then_some(()));
    let still = || match pid {
        Some(pid) => format!("process {pid} still runs"),
        None => format!("{} still answers", call.node.api.url()),
    };
    ended.ok_or_else(|| timed_out(call, operation, &still()))
}

// COMPAT: end of stop: the command ends when the node has, whether or not it is given a pid file.
fn stop(call: &Call<'_>) -> Result<Output, Failure> {
    let pid = begin_to_stop(call)?;
    await_end(call, pid, "stop")?;
    Ok(Output::Done)
}

fn shutdown(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.node.name().to_owned();
    let pid = begin_to_stop(call)?;
    let process = pid.map_or_else(String::new, |pid| format!(" running at PID {pid}"));
    call.say(&format!("Shutting down RabbitMQ node {node}{process}"));
    if let Some(pid) = pid.filter(|_| call.options.flag("wait") != Some(false)) {
        call.say(&format!("Waiting for PID {pid} to terminate"));
        await_end(call, Some(pid), "shutdown")?;
        call.say(&format!("RabbitMQ node {node} running at PID {pid} successfully shut down"));
    }
    Ok(Output::Done)
}
