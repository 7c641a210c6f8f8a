//! Script tests of the core: text in, effects out.
//!
//! Each file in `tests/scripts` holds scenarios. A scenario starts with `== ` and the sentence it
//! proves; its lines are commands, and the effects of each command stand below it, indented. Time
//! only moves where a script says so. After every command the invariants of the vhost are checked.
//! `UPDATE=1 cargo test -p leveret-broker --test core scripts` writes the effects as they are; read the
//! difference before you commit it.
//!
//! Beside what is written down there are random histories of the same lines. Nothing is compared with
//! a second implementation there, as in `model`: what is checked after every line is what must always
//! hold (`Vhost::broken_invariants`), that the log's replay gives the durable messages there are, and
//! that nothing panics. A history that breaks something is printed as a script.

#![allow(clippy::disallowed_methods, reason = "the scripts are files")]

use std::fmt::Write as _;
use std::path::Path;

use broker::page::Paging;
use proptest::prelude::*;

use crate::disk::SMALL_PAGES;
use crate::script;

#[test]
fn scripts_have_their_expected_effects() {
    let (wrong, scenarios, _) = run_all(Paging::default());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(scenarios > 150, "only {scenarios} scenarios were found");
}

/// Messages on disk behave like messages in memory.
#[test]
fn scripts_have_the_same_effects_with_paged_queues() {
    let (wrong, _, pages) = run_all(SMALL_PAGES);
    assert!(wrong.is_empty(), "{wrong}");
    assert!(pages > 100, "only {pages} pages were written");
}

/// Runs all scripts: what is wrong, how many scenarios there are, how many pages were written.
fn run_all(paging: Paging) -> (String, usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let update = std::env::var_os("UPDATE").is_some() && paging == Paging::default();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut scenarios = 0;
    let mut pages = 0;
    let mut wrong = String::new();
    for file in files {
        let expected = std::fs::read_to_string(&file).unwrap();
        let (actual, count, written) = script::replay(&expected, paging);
        scenarios += count;
        pages += written;
        if actual == expected {
            continue;
        }
        if update {
            std::fs::write(&file, actual).unwrap();
        } else {
            let name = file.file_name().unwrap().display();
            writeln!(wrong, "{name}:\n{}", script::difference(&expected, &actual)).unwrap();
        }
    }
    (wrong, scenarios, pages)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..Default::default() })]

    #[test]
    fn invariants_hold_through_any_history(
        beginning in script::beginning(),
        lines in prop::collection::vec(script::line(), 1..100),
        is_paged: bool,
    ) {
        let paging = if is_paged { SMALL_PAGES } else { Paging::default() };
        script::survive(&[beginning, lines].concat(), paging);
    }
}
