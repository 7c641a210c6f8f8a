//! Dialogues with a session: a client's frames in, the server's frames out.
//!
//! `tests/dialogues` holds them as text; `world` and `say` document the notation.
//! `UPDATE=1 cargo test -p leveret-session --test dialogue` writes what was answered into the files;
//! read the difference before you commit it.
//!
//! Every dialogue is played three times, because a client's bytes may come in any pieces: a line at
//! a time, an byte at a time, and as many lines at once as nothing stands between. `split` does the
//! same with generated streams.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the dialogues are files")]

mod hear;
mod methods;
mod peer;
mod resumed;
mod say;
mod split;
mod words;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use world::Feeding;

/// Every file of dialogues, by name.
fn files() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    files.into_iter().map(read).collect()
}

/// Compares every file with what `play` makes of it.
fn compare(play: impl Fn(&str) -> String) -> String {
    let mut wrong = String::new();
    for (path, expected) in files() {
        let actual = play(&expected);
        if actual != expected {
            let name = path.file_name().unwrap().display();
            writeln!(wrong, "{name}\n{}", world::difference(&expected, &actual)).unwrap();
        }
    }
    wrong
}

#[test]
fn dialogues_run_as_written() {
    if std::env::var_os("UPDATE").is_some() {
        for (path, text) in files() {
            std::fs::write(path, world::play(&text, Feeding::Lines).text).unwrap();
        }
        return;
    }
    let wrong = compare(|text| world::play(text, Feeding::Lines).text);
    assert!(wrong.is_empty(), "{wrong}");
    let scenarios: usize = files().iter().map(|(_, text)| text.matches("== ").count()).sum();
    assert!(scenarios > 250, "only {scenarios} dialogues were found");
}

#[test]
fn dialogues_run_the_same_byte_by_byte() {
    let wrong = compare(|text| world::play(text, Feeding::Bytes).text);
    assert!(wrong.is_empty(), "{wrong}");
}

/// Channels do not wait for each other, so that only the order on each of them must stay.
#[test]
fn dialogues_run_the_same_with_all_input_at_once() {
    for (path, text) in files() {
        let lines = world::play(&text, Feeding::Lines).said;
        let together = world::play(&text, Feeding::Together).said;
        for ((title, one), (_, other)) in lines.iter().zip(&together) {
            assert_eq!(by_channel(one), by_channel(other), "{} {title}", path.display());
        }
    }
}

/// The payloads of frames, by channel.
fn by_channel(mut bytes: &[u8]) -> BTreeMap<u16, Vec<(u8, String)>> {
    let mut channels: BTreeMap<u16, Vec<(u8, String)>> = BTreeMap::new();
    if bytes.starts_with(b"AMQP") {
        bytes = &bytes[8..];
    }
    while let Some((frame_type, channel, payload)) = hear::whole_frame(&mut bytes) {
        channels.entry(channel).or_default().push((frame_type, words::shown(payload)));
    }
    channels
}
