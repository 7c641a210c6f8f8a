//! Every check with its seeds, and with random changes of them: what a test run has of fuzzing.
//!
//! Nothing guides the changes; `cargo xtask fuzz` is the campaign that coverage guides. The changes are the same in every
//! run. `FUZZ_RANDOM` is a number for others, `FUZZ_TIMES` makes so many times as many, `FUZZ_TARGET` names one target.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// The number that all changes of the test run come from.
const RANDOM: u64 = 1;

/// Changed inputs of each target: each takes a processor for half a second to two, without optimisation.
const CHANGED_INPUTS: &[(&str, u64)] = &[
    ("cluster_adopt", 100_000),
    ("cluster_frame", 10_000),
    ("cluster_hello", 60_000),
    ("configuration", 100),
    ("death_lines", 4000),
    ("definitions", 40),
    ("frames", 50_000),
    ("http", 200),
    ("log_recovery", 1000),
    ("login", 100_000),
    ("methods", 60_000),
    ("patterns", 2000),
    ("session", 300),
    ("tables", 60_000),
    ("topic", 700),
];

/// Failed inputs after which a target has enough.
const FAILED_MAX: usize = 3;

/// Longest changed input, in bytes.
const INPUT_BYTES_MAX: usize = 8192;

/// Most changes of one input.
const CHANGES_MAX: usize = 4;

/// Numbers that limits and lengths are made of.
const NUMBERS: &[u64] =
    &[0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX];

#[test]
fn checks_hold_for_seeds_and_changed_seeds() {
    let only = std::env::var("FUZZ_TARGET").ok();
    let random = number_from("FUZZ_RANDOM").unwrap_or(RANDOM);
    let times = number_from("FUZZ_TIMES").unwrap_or(1);
    std::thread::scope(|scope| {
        for (name, check) in checks::TARGETS {
            if only.as_deref().is_none_or(|only| only == *name) {
                scope.spawn(move || hold(name, *check, random, times));
            }
        }
    });
}

/// A number from the environment.
fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Runs the check of a target with all its inputs.
///
/// # Panics
/// When the check fails; the inputs are then files in `artifacts`.
fn hold(target: &str, check: checks::Check, random: u64, times: u64) {
    let holds = |input: &[u8]| panic::catch_unwind(AssertUnwindSafe(|| check(input))).is_ok();
    let (names, seeds): (Vec<PathBuf>, Vec<Vec<u8>>) = seeds(target).into_iter().unzip();
    let words = words(target);
    let mut numbers = Numbers(random);
    let (_, inputs) = CHANGED_INPUTS.iter().find(|(name, _)| *name == target).unwrap();
    let failed_seeds = names.into_iter().zip(&seeds).filter(|(_, seed)| !holds(seed));
    let mut failed: Vec<PathBuf> = failed_seeds.map(|(name, _)| name).collect();
    for _ in 0..inputs * times {
        if failed.len() >= FAILED_MAX {
            break;
        }
        let input = change(&seeds, &words, &mut numbers);
        if !holds(&input) {
            failed.push(keep(target, &input));
        }
    }
    // One on a line, for those who read it.
    for file in &failed {
        eprintln!("{target}: the check fails for {}", file.display());
    }
    let again = format!("FUZZ_TARGET={target} FUZZ_RANDOM={random} FUZZ_TIMES={times}");
    assert!(failed.is_empty(), "{target}: {} inputs have failed, with {again}", failed.len());
}

/// Seeds of a target, in the order of their names.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder("corpus", target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Words of a target's dictionary: a quoted text on each line, with bytes as `\xNN`.
fn words(target: &str) -> Vec<Vec<u8>> {
    let file = folder("dictionaries", target).with_extension("dict");
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"')).map(word).collect()
}

fn word(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (number, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(number, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn folder(of: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of).join(target)
}

/// Writes an input to the folder of those that have failed.
fn keep(target: &str, input: &[u8]) -> PathBuf {
    let folder = folder("artifacts", target);
    fs::create_dir_all(&folder).unwrap();
    // The same input has the same name (FNV-1a).
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let file = folder.join(format!("found-{:016x}", input.iter().fold(0xcbf2_9ce4_8422_2325, mix)));
    fs::write(&file, input).unwrap();
    file
}

/// A seed with some changes.
fn change(seeds: &[Vec<u8>], words: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut input = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(CHANGES_MAX) {
        let at = numbers.below(input.len() + 1);
        let end = (at + 1 + numbers.below(16)).min(input.len());
        match numbers.below(7) {
            0 if at < end => input[at] ^= 1 << numbers.below(8),
            1 if at < end => input[at] = numbers.byte(),
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            4 => {
                let width = 1 << numbers.below(4);
                let number = NUMBERS[numbers.below(NUMBERS.len())].to_be_bytes();
                let end = (at + width).min(input.len());
                input.splice(at..end, number[8 - width..].iter().copied());
            }
            5 if !words.is_empty() => {
                input.splice(at..at, words[numbers.below(words.len())].iter().copied());
            }
            _ => {
                let other = &seeds[numbers.below(seeds.len())];
                let from = numbers.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Pseudo-random numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// A number less than `bound`, which is at least 1.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
