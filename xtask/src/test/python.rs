//! The virtual environment in which the black-box suites run.
//!
//! Lies below the target folder and is made again when a list of packages changes or it no longer
//! works. Nothing is installed outside it but Python itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::packages;
use crate::place::Place;
use crate::process;

/// Python with the modules that make an environment, as Debian packages.
const PYTHON_PACKAGES: &[&str] = &["python3", "python3-venv"];

/// The interpreter of the environment.
pub(super) fn interpreter(place: &Place<'_>) -> PathBuf {
    folder(place).join("bin").join("python")
}

fn folder(place: &Place<'_>) -> PathBuf {
    place.target.join("xtask").join("venv")
}

/// Makes the environment hold what the lists name. A list that does not exist names nothing.
///
/// # Errors
/// When there is no usable Python and none can be installed, or pip fails.
pub(super) fn install(lists: &[&str], place: &Place<'_>) -> Result<()> {
    let lists: Vec<PathBuf> =
        lists.iter().map(|list| place.root.join(list)).filter(|list| list.is_file()).collect();
    if lists.is_empty() {
        bail!("no list of Python packages found");
    }
    let wanted = contents(&lists)?;
    let record = folder(place).join("installed.txt");
    let interpreter = interpreter(place);
    let pytest = ["-m", "pytest", "--version"];
    let works = || packages::succeeds(&interpreter.to_string_lossy(), &pytest);
    if fs::read_to_string(&record).is_ok_and(|installed| installed == wanted) && works() {
        return Ok(());
    }
    if !packages::succeeds("python3", &["-c", "import ensurepip, venv"]) {
        packages::install(PYTHON_PACKAGES, place)?;
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(folder(place));
    process::run_while_active(create, place)?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(lists.iter().flat_map(|list| [Path::new("--requirement"), list]));
    process::run_while_active(pip, place)?;
    fs::write(&record, wanted).with_context(|| format!("cannot write {}", record.display()))?;
    Ok(())
}

/// The lists one behind the other: when this changes, the environment is made again.
fn contents(lists: &[PathBuf]) -> Result<String> {
    let read = |list: &PathBuf| {
        fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))
    };
    lists.iter().map(read).collect()
}
