//! Steps of the system's clock. The broker's own time does not follow them; operators should know of them, because
//! times of messages and of the log do.

use broker::time::{Now, Time};
use parking_lot::Mutex;

use crate::limits::CLOCK_STEP_MS_MIN;
use crate::snapshot::condition::ClockStep;

/// Compares the system's clock with the broker's time.
#[derive(Default, Debug)]
pub(crate) struct ClockWatch(Mutex<Watched>);

#[derive(Default, Debug)]
struct Watched {
    /// Milliseconds of the system's clock ahead of the broker's time at the last look.
    ahead_ms: Option<i64>,
    last_step: Option<(Time, i64)>,
    /// Number of steps since the start.
    steps: u64,
}

/// Milliseconds by which the system's clock is ahead of the broker's time.
fn ahead_ms(now: Now) -> i64 {
    let [wall, time] = [now.wall_ms(), now.time.as_micros() / 1000]
        .map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
    wall.saturating_sub(time)
}

impl ClockWatch {
    /// Looks at both clocks. Returns the step since the last look, in milliseconds, if the system's clock was set.
    pub(crate) fn look(&self, now: Now) -> Option<i64> {
        let mut watched = self.0.lock();
        let ahead = ahead_ms(now);
        let before = watched.ahead_ms.replace(ahead)?;
        let step = ahead.saturating_sub(before);
        if step.unsigned_abs() < CLOCK_STEP_MS_MIN {
            return None;
        }
        watched.last_step = Some((now.time, step));
        watched.steps += 1;
        Some(step)
    }

    /// Number of steps since the start.
    pub(crate) fn steps(&self) -> u64 {
        self.0.lock().steps
    }

    /// The last step.
    pub(crate) fn last_step(&self, now: Time) -> Option<ClockStep> {
        let last = self.0.lock().last_step;
        last.map(|(at, step_ms)| ClockStep { step_ms, ago_ms: now.micros_since(at) / 1000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ms: u64, wall_ms: u64) -> Now {
        Now { time: Time::from_micros(time_ms * 1000), wall_us: wall_ms.saturating_mul(1000) }
    }

    #[test]
    fn step_is_found_and_drift_is_not() {
        let watch = ClockWatch::default();
        assert_eq!(watch.look(at(10_000, 70_000)), None, "the first look compares nothing");
        assert_eq!(watch.look(at(11_000, 71_100)), None);
        assert_eq!(watch.last_step(Time::from_micros(0)), None);
        assert_eq!(watch.look(at(12_000, 42_100)), Some(-30_000));
        assert_eq!(watch.look(at(13_000, 43_100)), None);
        let step = watch.last_step(Time::from_micros(17_000_000));
        assert_eq!(step, Some(ClockStep { step_ms: -30_000, ago_ms: 5000 }));
        let latest_ms = i64::try_from(u64::MAX / 1000).unwrap();
        assert_eq!(watch.look(at(14_000, u64::MAX)), Some(latest_ms - 14_000 - 30_100));
        assert_eq!(watch.steps(), 2);
    }
}
