//! One case under callgrind: how it is run, and what is read in what it writes.
//!
//! Knows the few lines of callgrind's format that say how many instructions there were and who called
//! whom how often. An allocation is a call of mimalloc from outside mimalloc. Everything is
//! counted from the call of `measured` on: callgrind's own switch for one function leaves out what came
//! before it from the instructions, but not from the calls.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::figures::Count;
use crate::process;

/// Longest time for one case, which takes a second on an idle machine.
const CASE_TIME_MAX: Duration = Duration::from_mins(30);

/// Counts one case, which handles so many messages; callgrind's output stays in `outputs`.
///
/// # Errors
/// When valgrind or the case fails.
pub(super) fn count(program: &Path, name: &str, messages: u64, outputs: &Path) -> Result<Count> {
    let file: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let output = outputs.join(format!("{file}.out"));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--zero-before=instructions::measured*"]);
    // Names as they are, for the reader below.
    command.args(["--compress-strings=no", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", output.display()));
    command.arg(program).args(["run", name]);
    process::output(command, CASE_TIME_MAX).with_context(|| format!("case `{name}`"))?;
    let text = fs::read_to_string(&output);
    let text = text.with_context(|| format!("cannot read {}", output.display()))?;
    let (instructions, allocations) =
        totals(&text).with_context(|| format!("{} has no totals", output.display()))?;
    let per_message = |total: u64| total as f64 / messages as f64;
    Ok(Count {
        name: name.to_owned(),
        instructions: per_message(instructions).round(),
        allocations: (per_message(allocations) * 100.0).round() / 100.0,
    })
}

/// Instructions and allocations.
fn totals(text: &str) -> Option<(u64, u64)> {
    let (mut caller, mut called) = ("", "");
    let (mut instructions, mut allocations) = (None, 0);
    let mut is_measured = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = name;
        } else if let Some(name) = line.strip_prefix("cfn=") {
            called = name;
        } else if let Some(calls) = line.strip_prefix("calls=") {
            if allocates(called) && !is_allocator(caller) {
                allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
            }
            is_measured = called == "instructions::measured";
        } else if is_measured {
            // The line below a call: where it stands, and what it cost with all that it called.
            instructions = line.split(' ').next_back()?.parse().ok();
            is_measured = false;
        }
    }
    Some((instructions?, allocations))
}

fn is_allocator(function: &str) -> bool {
    function.trim_start_matches('_').starts_with("mi_")
}

fn allocates(function: &str) -> bool {
    is_allocator(function) && function.contains("alloc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_calls_of_the_allocator_from_elsewhere() {
        let text = "events: Ir\nfn=main\ncfn=instructions::measured\ncalls=1 55\n41 645\n\
                    fn=broker::publish\n10 5\ncfi=alloc.c\ncfn=mi_malloc_aligned\n\
                    calls=20 0\n11 400\ncfn=mi_free\ncalls=20 0\n12 100\n\
                    fn=mi_malloc_aligned\ncfn=_mi_malloc_generic\ncalls=7 0\n3 70\n\
                    fn=broker::grow\ncfn=mi_realloc_aligned\ncalls=1 0\n3 70\ntotals: 9645\n";
        assert_eq!(totals(text), Some((645, 21)));
        assert_eq!(totals("events: Ir\n"), None);
    }
}
