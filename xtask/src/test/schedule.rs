//! The order of steps: which of them run beside each other.
//!
//! Decides when a step may begin, and runs each on a thread of its own. A step begins when all steps it
//! needs have ended, its lane has room, and no running step uses one of its resources. Of several that may begin,
//! the first of the table does. After a failure no step begins; the running ones are the caller's to end.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::actions::Outcome;
use super::steps::{Lane, Step};
use crate::process;

/// Suites beside each other. They mostly wait: one alone keeps about one processor busy.
const SUITES_MAX: usize = 2;

/// Progress of one step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Waiting,
    Running,
    Ended,
}

/// A step that has ended, and its result.
#[derive(Debug)]
pub(super) struct StepResult {
    pub(super) step: &'static Step,
    pub(super) result: Result<Outcome>,
    pub(super) elapsed: Duration,
}

/// An event of a run, for the progress lines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    Began(&'static Step),
    Ended(&'a StepResult),
}

/// Runs `steps` with `action`, beside each other unless `is_serial`, and reports each event to `tell`.
///
/// The result has the steps that ran, in the order of their ends.
pub(super) fn run(
    steps: &[&'static Step],
    is_serial: bool,
    action: impl Fn(&'static Step) -> Result<Outcome> + Sync,
    mut tell: impl FnMut(Event<'_>),
) -> Vec<StepResult> {
    let mut progress = vec![Progress::Waiting; steps.len()];
    let mut ended: Vec<StepResult> = Vec::with_capacity(steps.len());
    let (sender, receiver) = mpsc::channel();
    let action = &action;
    thread::scope(|scope| {
        loop {
            let has_failed = ended.iter().any(|ended| ended.result.is_err());
            while let Some(at) = next(steps, &progress, is_serial).filter(|_| !has_failed) {
                progress[at] = Progress::Running;
                let (step, sender) = (steps[at], sender.clone());
                tell(Event::Began(step));
                scope.spawn(move || {
                    if step.lane == Lane::Compile {
                        process::lower_own_priority();
                    }
                    let start = Instant::now();
                    let result = action(step);
                    // The receiver lives as long as this scope.
                    let _ =
                        sender.send((at, StepResult { step, result, elapsed: start.elapsed() }));
                });
            }
            if !progress.contains(&Progress::Running) {
                return;
            }
            let Ok((at, step)) = receiver.recv() else { return };
            progress[at] = Progress::Ended;
            tell(Event::Ended(&step));
            ended.push(step);
        }
    });
    ended
}

/// Index of the step that may begin now.
fn next(steps: &[&Step], progress: &[Progress], is_serial: bool) -> Option<usize> {
    let in_progress = |wanted: Progress| {
        let states = progress.iter().zip(steps);
        states.filter(move |(progress, _)| **progress == wanted).map(|(_, step)| *step)
    };
    let running: Vec<&Step> = in_progress(Progress::Running).collect();
    if is_serial && !running.is_empty() {
        return None;
    }
    let has_ended = |need: &&str| {
        // A step that was left out of the run has nothing to wait for.
        steps.iter().all(|step| step.name != *need)
            || in_progress(Progress::Ended).any(|step| step.name == *need)
    };
    let may_begin = |step: &Step| {
        step.needs.iter().all(has_ended)
            && running.iter().all(|other| may_be_beside(step, other))
            && running.iter().filter(|other| other.lane == step.lane).count() < room(step.lane)
    };
    steps
        .iter()
        .zip(progress)
        .position(|(step, progress)| *progress == Progress::Waiting && may_begin(step))
}

/// True if the two steps may run at the same time.
fn may_be_beside(step: &Step, other: &Step) -> bool {
    let share = step.resources.iter().any(|resource| other.resources.contains(resource));
    !share && step.lane != Lane::Alone && other.lane != Lane::Alone
}

/// Number of steps that may be in a lane at the same time.
fn room(lane: Lane) -> usize {
    match lane {
        Lane::Build | Lane::Compile | Lane::Fetch | Lane::Alone => 1,
        Lane::Suite => SUITES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anyhow::bail;

    use super::super::steps::{PLAIN, Resource};
    use super::*;

    const BUILD: Step = Step { name: "build", ..PLAIN };
    const LINT: Step = Step { name: "lint", ..PLAIN };
    const FETCH: Step = Step { name: "fetch", lane: Lane::Fetch, ..PLAIN };
    const A: Step = Step { name: "a", lane: Lane::Suite, needs: &["build", "fetch"], ..PLAIN };
    const B: Step = Step { name: "b", ..A };
    const C: Step = Step { name: "c", ..A };
    const ALONE: Step = Step { name: "alone", lane: Lane::Alone, ..PLAIN };
    const FULL: Step =
        Step { name: "full", lane: Lane::Suite, resources: &[Resource::SharedMemory], ..PLAIN };

    /// Names of the steps that begin when those of `ended` have ended and those of `running` run.
    fn begun(steps: &[&Step], running: &[&str], ended: &[&str]) -> Vec<&'static str> {
        let progress = steps.iter().map(|step| match step.name {
            name if running.contains(&name) => Progress::Running,
            name if ended.contains(&name) => Progress::Ended,
            _ => Progress::Waiting,
        });
        let mut progress: Vec<Progress> = progress.collect();
        let mut begun = Vec::new();
        while let Some(at) = next(steps, &progress, false) {
            progress[at] = Progress::Running;
            begun.push(steps[at].name);
        }
        begun
    }

    #[test]
    fn lanes_run_beside_each_other() {
        let steps = [&BUILD, &FETCH, &LINT, &A, &B, &C];
        assert_eq!(begun(&steps, &[], &[]), ["build", "fetch"]);
        assert_eq!(begun(&steps, &["fetch"], &["build"]), ["lint"]);
        assert_eq!(begun(&steps, &[], &["build", "fetch"]), ["lint", "a", "b"]);
        assert_eq!(begun(&steps, &["lint", "b"], &["build", "fetch", "a"]), ["c"]);
    }

    #[test]
    fn need_that_does_not_run_is_not_waited_for() {
        assert_eq!(begun(&[&FETCH, &A], &[], &["fetch"]), ["a"]);
    }

    #[test]
    fn alone_is_alone() {
        let steps = [&ALONE, &LINT];
        assert_eq!(begun(&steps, &[], &[]), ["alone"]);
        assert_eq!(begun(&steps, &["lint"], &[]), [] as [&str; 0]);
        assert_eq!(begun(&steps, &[], &["alone"]), ["lint"]);
    }

    #[test]
    fn resource_is_used_by_one_step_at_a_time() {
        const OTHER: Step = Step { name: "other", ..FULL };
        assert_eq!(begun(&[&FULL, &OTHER, &A], &[], &[]), ["full", "a"]);
    }

    #[test]
    fn serial_run_has_one_step_at_a_time() {
        let progress = [Progress::Running, Progress::Waiting];
        assert_eq!(next(&[&BUILD, &FETCH], &progress, true), None);
        let progress = [Progress::Ended, Progress::Waiting];
        assert_eq!(next(&[&BUILD, &FETCH], &progress, true), Some(1));
    }

    #[test]
    fn run_has_every_step_once_and_needs_first() {
        let order = Mutex::new(Vec::new());
        let action = |step: &'static Step| {
            order.lock().unwrap().push(step.name);
            Ok(Outcome::Done)
        };
        let ended = run(&[&BUILD, &FETCH, &LINT, &A, &B, &C], false, action, |_| {});
        assert_eq!(ended.len(), 6);
        let order = order.into_inner().unwrap();
        let at = |name: &str| order.iter().position(|ran| *ran == name).unwrap();
        assert!(["a", "b", "c"].iter().all(|suite| at(suite) > at("build").max(at("fetch"))));
    }

    #[test]
    fn no_step_begins_after_a_failure() {
        let action = |_: &'static Step| bail!("broken");
        let mut events = Vec::new();
        let ended = run(&[&BUILD, &LINT, &A], true, action, |event| {
            events.push(match event {
                Event::Began(step) => format!("{} began", step.name),
                Event::Ended(ended) => format!("{} ended", ended.step.name),
            });
        });
        assert_eq!(events, ["build began", "build ended"]);
        assert_eq!(ended[0].result.as_ref().unwrap_err().to_string(), "broken");
    }
}
