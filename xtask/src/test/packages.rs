//! Debian packages that the tests need and the machine lacks.
//!
//! Asks dpkg what is there and apt-get for the rest, as root or through a sudo that asks no
//! password. Where neither works, the error is the command to type.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::geteuid;

use crate::place::Place;
use crate::process::{self, QUESTION_TIME_MAX};

/// Tells the packages' scripts to ask nothing; sudo does not pass the environment on by itself.
const NO_QUESTIONS: &str = "DEBIAN_FRONTEND=noninteractive";

/// Installs what the list in the file names.
///
/// # Errors
/// When the list cannot be read, or as [`install`].
pub(super) fn install_list(list: &str, place: &Place<'_>) -> Result<()> {
    install_missing(&missing_of_list(list, place.root)?, place)
}

/// The packages that the list in the file names and the machine lacks.
///
/// # Errors
/// When the list cannot be read.
pub(super) fn missing_of_list(list: &str, root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(list));
    let text = text.with_context(|| format!("cannot read {list}"))?;
    let has = |program: &str| succeeds("sh", &["-c", &format!("command -v {program}")]);
    let packages: Vec<&str> = text.lines().flat_map(|line| names(line, has)).collect();
    Ok(missing(&packages))
}

/// Installs those of the packages that are missing.
///
/// # Errors
/// When something is missing and cannot be installed from here; the message ends in the command
/// that a person would type.
pub(super) fn install(packages: &[&str], place: &Place<'_>) -> Result<()> {
    install_missing(&missing(packages), place)
}

fn missing(packages: &[&str]) -> Vec<String> {
    let installed = installed();
    let missing = packages.iter().filter(|&&name| !installed.contains(name));
    missing.map(|&name| name.to_owned()).collect()
}

/// The names of all installed packages; none where there is no dpkg.
fn installed() -> BTreeSet<String> {
    let mut command = Command::new("dpkg-query");
    command.args(["--show", "--showformat=${db:Status-Status} ${Package}\\n"]);
    let text = process::output(command, QUESTION_TIME_MAX).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("installed ")).map(str::to_owned).collect()
}

fn install_missing(missing: &[String], place: &Place<'_>) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !succeeds("apt-get", &["--version"]) {
        bail!("this machine has no apt-get: install by hand what Debian calls {list}");
    }
    let by_hand = format!("run by hand: sudo apt-get update && sudo apt-get install {list}");
    let sudo = with_rights(&list).map_err(|error| anyhow!("{error}; {by_hand}"))?;
    apt_get(sudo, &["update"], place)
        .and_then(|()| {
            let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
            arguments.extend(missing.iter().map(String::as_str));
            apt_get(sudo, &arguments, place)
        })
        .map_err(|error| anyhow!("cannot install {list} ({error:#}); {by_hand}"))
}

/// Fetches a package and unpacks it below the target folder, once, without installing it.
///
/// # Errors
/// When there is no apt-get, or it finds no such package; the message ends in the command that a
/// person would type.
pub(super) fn unpack(package: &str, place: &Place<'_>) -> Result<()> {
    let folder = place.target.join("xtask").join("debian").join(package);
    if folder.is_dir() {
        return Ok(());
    }
    let by_hand = format!("run by hand: apt-get download {package}");
    if !succeeds("apt-get", &["--version"]) {
        bail!("this machine has no apt-get, which {package} is fetched with");
    }
    let fetched = folder.with_extension("fetched");
    fs::create_dir_all(&fetched).with_context(|| format!("cannot create {}", fetched.display()))?;
    let download = || {
        let mut command = Command::new("apt-get");
        // As root the files would else be fetched by a user who may not write here.
        command.args(["--quiet", "--option", "APT::Sandbox::User=root", "download", package]);
        command.current_dir(&fetched);
        process::run_while_active(command, place)
    };
    // The lists of packages may never have been fetched on this machine, or long ago.
    download()
        .or_else(|_| {
            with_rights("update").and_then(|sudo| {
                apt_get(sudo, &["update"], place)?;
                download()
            })
        })
        .map_err(|error| anyhow!("cannot fetch {package} ({error:#}); {by_hand}"))?;
    for file in fs::read_dir(&fetched)? {
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(file?.path()).arg(&folder);
        process::run_while_active(command, place)?;
    }
    Ok(())
}

/// Words before a command that changes the machine.
///
/// # Errors
/// When we are neither root nor have a sudo that asks for no password.
fn with_rights(what: &str) -> Result<&'static [&'static str]> {
    if geteuid().is_root() {
        Ok(&[])
    } else if succeeds("sudo", &["-n", "true"]) {
        Ok(&["sudo", "-n", "env", NO_QUESTIONS])
    } else {
        bail!("{what}: neither root nor a sudo without password")
    }
}

fn apt_get(sudo: &[&str], arguments: &[&str], place: &Place<'_>) -> Result<()> {
    // Another apt may be at work for a while, as on a machine that has just started.
    let apt_get = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300"];
    let words = [sudo, &apt_get, arguments].concat();
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(place.root);
    command.envs(NO_QUESTIONS.split_once('='));
    process::run_while_active(command, place)
}

/// True if the program exists and exits with 0.
pub(super) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments);
    process::output(command, QUESTION_TIME_MAX).is_ok()
}

/// The packages that a line of a list asks for.
///
/// One or more, with comments behind `#`; with `unless PROGRAM` behind them none when that program is
/// there, wherever it came from.
fn names(line: &str, has: impl Fn(&str) -> bool) -> Vec<&str> {
    let words = || line.split('#').next().unwrap_or("").split_whitespace();
    let mut condition = words().skip_while(|word| *word != "unless").skip(1);
    if condition.next().is_some_and(has) {
        return Vec::new();
    }
    words().take_while(|word| *word != "unless").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_names_and_comments() {
        let has = |program: &str| program == "javac";
        assert!(names("# the client", has).is_empty());
        let two = names("librabbitmq-client-java  junit4 # unless javac", has);
        assert_eq!(two, ["librabbitmq-client-java", "junit4"]);
        assert!(names("default-jdk-headless unless javac", has).is_empty());
        assert_eq!(names("nodejs npm unless node", has), ["nodejs", "npm"]);
    }

    #[test]
    fn missing_programs_say_no() {
        assert!(succeeds("sh", &["-c", "true"]));
        assert!(!succeeds("sh", &["-c", "false"]));
        assert!(!succeeds("no-such-program", &[]));
    }
}
