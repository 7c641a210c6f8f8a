//! The lines of JSON of the history of dead letters: damaged lines are left out, and the others are the same after they
//! are written and read again.

/// Checks the content of a file of deaths.
pub fn check(input: &[u8]) {
    let deaths = server::check_death_lines(input);
    let lines = input.split(|byte| *byte == b'\n').count();
    assert!(deaths <= lines, "{deaths} deaths in {lines} lines");
}
