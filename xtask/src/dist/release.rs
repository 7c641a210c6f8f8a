//! The release that packages are made of, and what all of them need to know.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::{process, repository};

/// Names of the programs.
pub(super) const PROGRAMS: [&str; 3] = ["leveret", "leveretctl", "leveret-perf"];

/// Longest time that a program may take which packs files, on a slow machine.
pub(super) const PACKING_TIME_MAX: Duration = Duration::from_mins(5);

/// The release that packages are made of.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The version, without a revision of a package.
    pub(super) version: String,
    /// Time of the commit, in seconds since 1970: the time of every packed file.
    pub(super) time_s: u64,
    /// Quick and large instead of slow and small.
    pub(super) is_quick: bool,
}

impl Release {
    /// The release of the commit that is checked out. `SOURCE_DATE_EPOCH` replaces the time of the commit.
    ///
    /// # Errors
    /// When cargo or git cannot be asked.
    pub(super) fn of_commit() -> Result<Self> {
        let metadata = repository::metadata(false)?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let broker = packages.iter().find(|package| package["name"] == "leveret");
        let version = broker.and_then(|package| package["version"].as_str());
        let version = version.context("there is no package leveret")?.to_owned();
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => {
                let mut git = Command::new("git");
                git.args(["log", "-1", "--format=%ct"]).current_dir(repository::root());
                process::output(git, PACKING_TIME_MAX)?
            }
        };
        let time_s = time.trim().parse().context("SOURCE_DATE_EPOCH is no number of seconds")?;
        Ok(Self { version, time_s, is_quick: false })
    }
}

/// Debian's name of this machine's architecture.
///
/// # Errors
/// When there is none.
pub(super) fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("packages are made on x86_64 and aarch64, not on {other}"),
    }
}
