//! Script tests of the core: text in, effects out.
//!
//! Each file in `tests/scripts` holds scenarios. A scenario starts with `== ` and the sentence it
//! proves; its lines are commands, and the effects of each command stand below it, indented. Time
//! only moves where a script says so. After every command the invariants of the vhost are checked.
//! `UPDATE=1 cargo test -p leveret-broker --test core scripts` writes the effects as they are; read the
//! difference before you commit it. `tests/blackbox/test_scripts.py` plays what a socket can show against a real broker;
//! comments that begin with `# RabbitMQ` are for it.
//!
//! Beside what is written down there are random histories of the same lines. Nothing is compared with
//! a second implementation there, as in `model`: what is checked after every line is what must always
//! hold (`Vhost::broken_invariants`), that the log's replay gives the durable messages there are, and
//! that nothing panics. A history that breaks something is printed as a script.

#![allow(clippy::disallowed_methods, reason = "the scripts are files")]

use std::fmt::Write as _;
use std::path::Path;

use broker::VhostOptions;
use proptest::prelude::*;

use crate::disk::{SMALL_PAGES, replicated};
use crate::script;

#[test]
fn scripts_have_their_expected_effects() {
    let (wrong, scenarios, _) = run_all(VhostOptions::default());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(scenarios > 150, "only {scenarios} scenarios were found");
}

/// Messages on disk behave like messages in memory.
#[test]
fn scripts_have_the_same_effects_with_paged_queues() {
    let (wrong, _, pages) = run_all(paged(VhostOptions::default()));
    assert!(wrong.is_empty(), "{wrong}");
    assert!(pages > 100, "only {pages} pages were written");
}

/// Each restart is a failover: a replica that has followed all along holds the same at the end.
#[test]
fn scripts_have_the_same_effects_in_a_replicated_vhost() {
    let (wrong, _, _) = run_all(replicated());
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn scripts_have_the_same_effects_in_a_replicated_vhost_with_paged_queues() {
    let (wrong, _, pages) = run_all(paged(replicated()));
    assert!(wrong.is_empty(), "{wrong}");
    assert!(pages > 100, "only {pages} pages were written");
}

fn paged(options: VhostOptions) -> VhostOptions {
    VhostOptions { paging: SMALL_PAGES, ..options }
}

/// Runs all scripts: what is wrong, how many scenarios there are, how many pages were written.
fn run_all(options: VhostOptions) -> (String, usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let update = std::env::var_os("UPDATE").is_some() && options == VhostOptions::default();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut scenarios = 0;
    let mut pages = 0;
    let mut wrong = String::new();
    for file in files {
        let expected = std::fs::read_to_string(&file).unwrap();
        let (actual, count, written) = script::replay(&expected, options);
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
        let options = VhostOptions::default();
        let options = if is_paged { paged(options) } else { options };
        script::survive(&[beginning, lines].concat(), options);
    }

    /// No message is lost or doubled, and nothing else breaks, where replicas take over at any moment.
    #[test]
    fn invariants_hold_through_any_history_with_failovers(
        beginning in script::beginning(),
        lines in prop::collection::vec(prop_oneof![
            12 => script::line(),
            1 => prop::sample::select(&["transfer", "failover", "digest"][..]).prop_map(str::to_owned),
        ], 1..100),
        is_paged: bool,
    ) {
        let options = if is_paged { paged(replicated()) } else { replicated() };
        script::survive(&[beginning, lines].concat(), options);
    }
}
