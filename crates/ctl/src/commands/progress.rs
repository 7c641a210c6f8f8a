//! Work that a node does by itself, such as a backup or a redrive: its progress, until it has ended.

use std::time::Duration;

use serde_json::Value;

use crate::command::Call;
use crate::failure::Failure;

/// Longest interval of looks at the progress, and the interval of lines about it.
const INTERVAL: Duration = Duration::from_millis(500);

/// Asks for the work at the path `at` until `has_ended`, and prints the lines about its progress. The work as it is then.
pub(super) fn until(
    call: &Call<'_>,
    at: &str,
    mut work: Value,
    has_ended: impl Fn(&Value) -> bool,
    line: impl Fn(&Value) -> Option<String>,
) -> Result<Value, Failure> {
    let mut pause = Duration::from_millis(20);
    let mut said = None;
    while !has_ended(&work) {
        std::thread::sleep(pause);
        pause = (pause * 2).min(INTERVAL);
        work = call.node.api.get(at)?;
        let now = line(&work);
        if pause == INTERVAL && now.is_some() && now != said {
            now.iter().for_each(|line| call.say(line));
            said = now;
        }
    }
    Ok(work)
}

/// True for work with the time of its end.
pub(super) fn is_over(work: &Value) -> bool {
    work.get("ended_ms").is_some_and(|ended| !ended.is_null())
}
