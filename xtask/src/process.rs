//! External programs with a bound on their time, or on their silence.
//!
//! Decides how a program is started, waited for and ended; does not know what any of them does.
//! Every program runs in a process group of its own, so that a bound or an interrupt also ends
//! the programs it started. An interrupt of xtask is a flag that every wait looks at: no program outlives the command.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::activity::Activity;
use crate::place::Place;

/// Interval between two looks at a running program: short beside any step, long beside the cost of
/// looking.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Longest wait for an answer to a question that takes a moment on an idle machine.
pub(crate) const QUESTION_TIME_MAX: Duration = Duration::from_mins(5);

/// Time for a group to end by itself after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Makes Ctrl-C and SIGTERM end what was started instead of only xtask itself.
///
/// # Errors
/// When the system refuses the signal handlers.
pub(crate) fn watch_for_interrupts() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("cannot watch signals")?;
    }
    Ok(())
}

/// True if the user has asked xtask to end.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Fails if the user has interrupted xtask.
fn check_for_interrupt() -> Result<()> {
    ensure!(!is_interrupted(), "interrupted");
    Ok(())
}

/// A running program and its process group; killed when dropped before its end.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    has_ended: bool,
}

impl Process {
    /// Starts `command` with both its outputs appended to `log`, after a line that names it.
    ///
    /// # Errors
    /// When the log cannot be written or the program cannot be started.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let name = name(&command);
        let mut file = append(log)?;
        writeln!(file, "$ {}", line(&command)).context("cannot write the log")?;
        let errors = file.try_clone().context("cannot write the log")?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child, has_ended: false })
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits at most `limit` for the end.
    ///
    /// # Errors
    /// When the time is over or the user interrupts; the group has been killed by then.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > limit {
                self.kill();
                bail!("{} was stopped: it ran longer than {} s", self.name, limit.as_secs());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the end as long as the program makes progress: a slow one may take as long as it needs.
    ///
    /// # Errors
    /// When the program neither prints nor works any more, or the user interrupts; the group has been killed by then.
    fn wait_while_active(&mut self, activity: &mut Activity) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            if let Err(hung) = activity.look() {
                self.kill();
                bail!("{} was stopped: {hung}", self.name);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        ensure!(status.success(), "{} failed: {status}", self.name);
        Ok(())
    }

    /// The exit status when the program has ended already.
    ///
    /// # Errors
    /// When the user interrupts (the group has been killed by then) or the system cannot tell.
    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        if let Err(error) = check_for_interrupt() {
            self.kill();
            return Err(error);
        }
        self.reap()
    }

    fn reap(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().with_context(|| format!("lost {}", self.name))?;
        self.has_ended |= status.is_some();
        Ok(status)
    }

    /// Asks the program (not its group) to end with SIGTERM and waits at most `limit`.
    ///
    /// # Errors
    /// As [`Process::wait`].
    pub(crate) fn terminate(mut self, limit: Duration) -> Result<ExitStatus> {
        if let Some(id) = pid(&self.child) {
            kill_process(id, Signal::TERM).with_context(|| format!("{} is gone", self.name))?;
        }
        self.wait(limit)
    }

    /// Ends the whole group: politely, then by force.
    fn kill(&mut self) {
        let Some(group) = pid(&self.child) else {
            return;
        };
        // A group that has ended meanwhile is what is wanted, so a refusal is no error.
        let _ = kill_process_group(group, Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE && test_kill_process_group(group).is_ok() {
            // Reaps the leader, which otherwise would count as alive.
            let _ = self.reap();
            thread::sleep(POLL_INTERVAL);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        self.has_ended = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended {
            self.kill();
        }
    }
}

/// Runs `command` to a successful end with its outputs appended to `log`.
///
/// # Errors
/// When it cannot be started, fails, or runs longer than `limit`.
pub(crate) fn run(command: Command, log: &Path, limit: Duration) -> Result<()> {
    let mut process = Process::start(command, log)?;
    let status = process.wait(limit)?;
    process.check(status)
}

/// As [`run`], with a bound on the silence of the program instead of its time, for steps of a test run, whose processor
/// time it adds up.
///
/// # Errors
/// When it cannot be started, fails, or neither prints nor works for long.
pub(crate) fn run_while_active(command: Command, place: &Place<'_>) -> Result<()> {
    let mut process = Process::start(command, place.log)?;
    let mut activity = Activity::new(place.log, pid(&process.child));
    let status = process.wait_while_active(&mut activity);
    place.add_cpu_time(activity.cpu_time());
    process.check(status?)
}

/// Output of `command` on stdout, when it succeeds within `limit`.
///
/// # Errors
/// When it cannot be started, fails (with what it printed on stderr), takes too long, or the user
/// interrupts.
pub(crate) fn output(mut command: Command, limit: Duration) -> Result<String> {
    let name = name(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let group = pid(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let start = Instant::now();
    let result = loop {
        if let Ok(result) = receiver.recv_timeout(POLL_INTERVAL) {
            break result;
        }
        let end = check_for_interrupt();
        if end.is_ok() && start.elapsed() <= limit {
            continue;
        }
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        end?;
        bail!("{name} was stopped: it ran longer than {} s", limit.as_secs());
    };
    let output = result.with_context(|| format!("lost {name}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}: {}", output.status, errors.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` with the terminal as its own; its exit code is to be this command's.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn hand_over(mut command: Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("cannot start {}", line(&command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn append(log: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(log);
    file.with_context(|| format!("cannot open {}", log.display()))
}

/// The program's own name, for messages: `/usr/bin/git` is `git`.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// A log of its own for each test.
    fn log(test: &str) -> PathBuf {
        let log = std::env::temp_dir().join(format!("xtask-{}-{test}.log", std::process::id()));
        let _ = std::fs::remove_file(&log);
        log
    }

    fn await_text(log: &Path, text: &str) {
        while !std::fs::read_to_string(log).unwrap().contains(text) {
            thread::yield_now();
        }
    }

    #[test]
    fn output_is_logged_in_order_behind_the_command() {
        let log = log("order");
        run(shell("echo one; echo two >&2"), &log, GRACE).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text, "$ sh -c echo one; echo two >&2\none\ntwo\n");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn failure_names_the_program_and_its_code() {
        let log = log("failure");
        let error = run(shell("exit 3"), &log, GRACE).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: exit status: 3");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn time_out_asks_the_grandchildren_too() {
        let log = log("group");
        let grandchild = "trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.01; done";
        let mut process = Process::start(shell(&format!("({grandchild}) & wait")), &log).unwrap();
        await_text(&log, "\nready\n");
        let error = process.wait(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "sh was stopped: it ran longer than 0 s");
        assert!(std::fs::read_to_string(&log).unwrap().contains("\nasked\n"));
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn terminate_reports_the_code_the_program_chose() {
        let log = log("terminate");
        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let process = Process::start(shell(script), &log).unwrap();
        await_text(&log, "\nready\n");
        assert_eq!(process.terminate(GRACE).unwrap().code(), Some(7));
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn output_returns_stdout_and_reports_stderr() {
        assert_eq!(output(shell("echo out; echo err >&2"), GRACE).unwrap(), "out\n");
        let error = output(shell("echo reason >&2; exit 1"), GRACE).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: exit status: 1: reason");
    }

    #[test]
    fn output_is_not_waited_for_longer_than_its_limit() {
        let error = output(shell("sleep 60"), Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "sh was stopped: it ran longer than 0 s");
    }
}
