//! The order of steps: which of them run beside each other.
//!
//! Decides when a step may begin, and runs each on a thread of its own. A step begins when all steps it
//! needs have ended, its lane has room, and no running step uses one of its resources. Of several that may begin,
//! the first of the table does. After a failure the run goes on: only what needs the failed step is left out.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::actions::Outcome;
use super::steps::{Lane, Step};
use crate::process;

/// Suites beside each other and beside compilers: one alone keeps about one processor busy.
const SUITES_MAX: usize = 2;

/// Suites beside each other once nothing compiles. Those with clusters and browsers mostly wait. Four were not quicker on two
/// processors, and messages of black-box tests expired before they were counted.
const TIMED_SUITES_MAX: usize = 3;

/// Compilers beside each other: one alone leaves processors idle while it links.
const COMPILERS_MAX: usize = 2;

/// Progress of one step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Waiting,
    Running,
    Ended,
}

/// A step that has ended, and how.
#[derive(Debug)]
pub(super) struct StepResult {
    pub(super) step: &'static Step,
    pub(super) end: End,
    pub(super) elapsed: Duration,
    /// Processor time of its programs.
    pub(super) cpu_time: Duration,
}

/// The end of a step.
#[derive(Debug)]
pub(super) enum End {
    Ran(Result<Outcome>),
    /// The step did not begin: because this one, which it needs, has not passed, or the user has interrupted.
    LeftOut(Option<&'static str>),
}

impl StepResult {
    /// True if the step ran and did not fail.
    pub(super) fn has_passed(&self) -> bool {
        matches!(self.end, End::Ran(Ok(_)))
    }

    /// The error of a step that has failed.
    pub(super) fn error(&self) -> Option<&anyhow::Error> {
        match &self.end {
            End::Ran(result) => result.as_ref().err(),
            End::LeftOut(_) => None,
        }
    }
}

/// An event of a run, for the progress lines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    Began(&'static Step),
    Ended(&'a StepResult),
    /// Some time has passed; with the steps that run, and for how long.
    Tick(&'a [(&'static Step, Duration)]),
}

/// Runs `steps` with `action`, which tells the result and the processor time, beside each other unless `is_serial`, and reports each event to `tell`; a tick each time
/// that nothing has happened for `tick`.
///
/// The result has every step, in the order of their ends.
pub(super) fn run(
    steps: &[&'static Step],
    is_serial: bool,
    tick: Duration,
    action: impl Fn(&'static Step) -> (Result<Outcome>, Duration) + Sync,
    mut tell: impl FnMut(Event<'_>),
) -> Vec<StepResult> {
    let mut progress = vec![Progress::Waiting; steps.len()];
    let mut begun_at: Vec<Option<Instant>> = vec![None; steps.len()];
    let mut ended: Vec<StepResult> = Vec::with_capacity(steps.len());
    let (sender, receiver) = mpsc::channel();
    let action = &action;
    thread::scope(|scope| {
        loop {
            while let Some((at, need)) = left_out(steps, &progress, &ended) {
                progress[at] = Progress::Ended;
                let end = End::LeftOut(need);
                let (elapsed, cpu_time) = (Duration::ZERO, Duration::ZERO);
                let end = StepResult { step: steps[at], end, elapsed, cpu_time };
                tell(Event::Ended(&end));
                ended.push(end);
            }
            while let Some(at) = next(steps, &progress, is_serial) {
                progress[at] = Progress::Running;
                let (step, sender, start) = (steps[at], sender.clone(), Instant::now());
                begun_at[at] = Some(start);
                tell(Event::Began(step));
                scope.spawn(move || {
                    let (result, cpu_time) = action(step);
                    let (end, elapsed) = (End::Ran(result), start.elapsed());
                    // The receiver lives as long as this scope.
                    let _ = sender.send((at, StepResult { step, end, elapsed, cpu_time }));
                });
            }
            if !progress.contains(&Progress::Running) {
                return;
            }
            match receiver.recv_timeout(tick) {
                Ok((at, end)) => {
                    progress[at] = Progress::Ended;
                    tell(Event::Ended(&end));
                    ended.push(end);
                }
                Err(_) => tell(Event::Tick(&running(steps, &progress, &begun_at))),
            }
        }
    });
    ended
}

/// The steps that run, and for how long.
fn running(
    steps: &[&'static Step],
    progress: &[Progress],
    begun_at: &[Option<Instant>],
) -> Vec<(&'static Step, Duration)> {
    let states = steps.iter().zip(progress).zip(begun_at);
    let running = states.filter(|((_, progress), _)| **progress == Progress::Running);
    running
        .filter_map(|((step, _), begun_at)| Some((*step, begun_at.as_ref()?.elapsed())))
        .collect()
}

/// Index of a waiting step that cannot begin any more, and the step that it needs and that has not passed; any step
/// after an interrupt.
fn left_out(
    steps: &[&Step],
    progress: &[Progress],
    ended: &[StepResult],
) -> Option<(usize, Option<&'static str>)> {
    let failed = |step: &Step| {
        let is_needed = |end: &&StepResult| step.needs.contains(&end.step.name);
        ended.iter().filter(is_needed).find(|end| !end.has_passed()).map(|end| end.step.name)
    };
    let waiting = steps.iter().zip(progress).enumerate();
    waiting.filter(|(_, (_, progress))| **progress == Progress::Waiting).find_map(
        |(at, (step, _))| match failed(step) {
            None if !process::is_interrupted() => None,
            need => Some((at, need)),
        },
    )
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
    let compiles = |step: &Step| step.lane == Lane::Compile;
    // Also those that wait: compilers would otherwise never get the processors back.
    let is_compiling =
        running.iter().any(|step| compiles(step)) || in_progress(Progress::Waiting).any(compiles);
    let may_begin = |step: &Step| {
        step.needs.iter().all(has_ended)
            && running.iter().all(|other| may_be_beside(step, other))
            && running.iter().filter(|other| share_room(step.lane, other.lane)).count()
                < room(step.lane)
            && (step.lane != Lane::Timed || !is_compiling)
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

/// True if the number of steps in both lanes together is bounded.
fn share_room(lane: Lane, other: Lane) -> bool {
    let is_suite = |lane| matches!(lane, Lane::Suite | Lane::Timed);
    lane == other || is_suite(lane) && is_suite(other)
}

/// Number of steps that may be in a lane at the same time.
fn room(lane: Lane) -> usize {
    match lane {
        Lane::Fetch | Lane::Alone => 1,
        Lane::Compile => COMPILERS_MAX,
        Lane::Suite => SUITES_MAX,
        Lane::Timed => TIMED_SUITES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anyhow::anyhow;

    use super::super::steps::{PLAIN, Resource};
    use super::*;

    const BUILD: Step = Step { name: "build", ..PLAIN };
    const LINT: Step = Step { name: "lint", ..PLAIN };
    const THIRD: Step = Step { name: "third", ..PLAIN };
    const FETCH: Step = Step { name: "fetch", lane: Lane::Fetch, ..PLAIN };
    const A: Step = Step { name: "a", lane: Lane::Suite, needs: &["build", "fetch"], ..PLAIN };
    const B: Step = Step { name: "b", ..A };
    const C: Step = Step { name: "c", ..A };
    const TIMED: Step = Step { name: "timed", lane: Lane::Timed, ..A };
    const ALONE: Step = Step { name: "alone", lane: Lane::Alone, ..PLAIN };
    const FULL: Step =
        Step { name: "full", lane: Lane::Suite, resources: &[Resource::SharedMemory], ..PLAIN };

    /// Long beside a test.
    const TICK: Duration = Duration::from_hours(1);

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
        let steps = [&BUILD, &FETCH, &LINT, &THIRD, &A, &B, &C];
        assert_eq!(begun(&steps, &[], &[]), ["build", "fetch", "lint"]);
        assert_eq!(begun(&steps, &["fetch"], &["build"]), ["lint", "third"]);
        assert_eq!(begun(&steps, &["lint", "third"], &["build", "fetch"]), ["a", "b"]);
        assert_eq!(begun(&steps, &["b"], &["build", "fetch", "lint", "third", "a"]), ["c"]);
    }

    #[test]
    fn timed_suite_runs_beside_no_compiler() {
        let steps = [&BUILD, &FETCH, &LINT, &TIMED, &A];
        assert_eq!(begun(&steps, &["lint"], &["build", "fetch"]), ["a"]);
        assert_eq!(begun(&steps, &[], &["build", "fetch"]), ["lint", "a"]);
        assert_eq!(begun(&steps, &[], &["build", "fetch", "lint"]), ["timed", "a"]);
        assert_eq!(begun(&[&TIMED, &A, &B], &["timed"], &[]), ["a"]);
        assert_eq!(begun(&[&TIMED, &A, &B], &["a", "b"], &[]), ["timed"]);
        assert_eq!(begun(&[&TIMED, &A, &B, &C], &["a", "b", "c"], &[]), [] as [&str; 0]);
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
            (Ok(Outcome::Done), Duration::ZERO)
        };
        let ended = run(&[&BUILD, &FETCH, &LINT, &A, &B, &C], false, TICK, action, |_| {});
        assert_eq!(ended.len(), 6);
        let order = order.into_inner().unwrap();
        let at = |name: &str| order.iter().position(|ran| *ran == name).unwrap();
        assert!(["a", "b", "c"].iter().all(|suite| at(suite) > at("build").max(at("fetch"))));
    }

    #[test]
    fn run_goes_on_after_a_failure_without_what_needs_it() {
        let action = |step: &'static Step| {
            let result =
                if step.name == "build" { Err(anyhow!("broken")) } else { Ok(Outcome::Done) };
            (result, Duration::ZERO)
        };
        let mut events = Vec::new();
        let ended = run(&[&BUILD, &LINT, &A], true, TICK, action, |event| match event {
            Event::Began(step) => events.push(format!("{} began", step.name)),
            Event::Ended(ended) => events.push(format!("{} ended", ended.step.name)),
            Event::Tick(_) => {}
        });
        assert_eq!(events, ["build began", "build ended", "a ended", "lint began", "lint ended"]);
        assert_eq!(ended[0].error().unwrap().to_string(), "broken");
        assert!(matches!(ended[1].end, End::LeftOut(Some("build"))), "{:?}", ended[1]);
        assert!(ended[2].has_passed());
    }

    #[test]
    fn need_that_did_not_begin_is_missing_too() {
        const LAST: Step = Step { name: "last", lane: Lane::Suite, needs: &["a"], ..PLAIN };
        let action = |_: &'static Step| (Err(anyhow!("broken")), Duration::ZERO);
        let ended = run(&[&BUILD, &A, &LAST], true, TICK, action, |_| {});
        assert_eq!(ended.len(), 3);
        assert!(matches!(ended[2].end, End::LeftOut(Some("a"))), "{:?}", ended[2]);
    }

    #[test]
    fn ticks_name_what_runs() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let receiver = Mutex::new(receiver);
        let action = |_: &'static Step| {
            receiver.lock().unwrap().recv().unwrap();
            (Ok(Outcome::Done), Duration::ZERO)
        };
        let mut is_seen = false;
        run(&[&BUILD], false, Duration::from_millis(1), action, |event| {
            if let Event::Tick(running) = event
                && !is_seen
            {
                assert_eq!(running[0].0.name, "build");
                is_seen = true;
                sender.send(()).unwrap();
            }
        });
        assert!(is_seen);
    }
}
