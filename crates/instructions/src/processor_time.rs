//! The processor time of a case: instructions do not show what waits for memory, as where a million messages wait.

use std::fs;

use crate::case::Case;
use crate::commands::BATCH;

/// Parts of the messages that are timed one by one.
const PARTS: u64 = 10;

/// Handles so many messages, and prints the processor time of each tenth of them, for one message.
pub(crate) fn print(case: &Case, messages: u64) {
    let part = (messages / PARTS).next_multiple_of(BATCH);
    let mut run = (case.begin)();
    for number in 1..=PARTS {
        let before_ns = used_ns();
        run(part);
        println!("{} ns for each, up to {}", (used_ns() - before_ns) / part, number * part);
    }
    // The end of the program frees everything at once.
    std::mem::forget(run);
}

/// The processor time that the program has had, as Linux counts it; 0 elsewhere.
fn used_ns() -> u64 {
    let statistics = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let used = statistics.split(' ').next();
    used.and_then(|used| used.parse().ok()).unwrap_or_default()
}
