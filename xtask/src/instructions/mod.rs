//! `cargo xtask instructions`: the cost of a message, in instructions and allocations.
//!
//! Decides what the command prints and writes. `cases` builds and counts them, one at a time in `callgrind`;
//! `figures` compares. Instructions are counted and not time, because they are the same again on a busy
//! machine: a change of a few percent shows.

mod callgrind;
mod cases;
mod figures;

use std::fs;

use anyhow::{Context as _, Result, ensure};

use self::cases::{FIGURES, compare, count, outputs};
pub(crate) use self::cases::{build, check};
use crate::place::Place;
use crate::{process, repository, test};

/// Options of `cargo xtask instructions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Count only the cases whose name contains this text
    #[arg(conflicts_with = "write")]
    filter: Option<String>,

    /// Write the figures down instead of comparing them
    #[arg(long)]
    write: bool,
}

/// Counts what the options ask for, and compares or writes it.
///
/// # Errors
/// When something cannot be counted, or costs more than is written down.
pub(crate) fn run(options: &Options) -> Result<()> {
    test::install_packages("crates/instructions/packages.txt")?;
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("instructions.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let place = Place::new(&root, &target, &log);
    let figures = count(&place, options.filter.as_deref().unwrap_or_default())?;
    if options.write {
        let file = root.join(FIGURES);
        fs::write(&file, figures.page())
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("{} cases are in {FIGURES}", figures.counts.len());
        return Ok(());
    }
    let (table, faults) = compare(&place, &figures, options.filter.is_none())?;
    println!("{table}");
    println!("where they go: callgrind_annotate {}/CASE.out", outputs(&place).display());
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
