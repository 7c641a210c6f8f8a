//! The programs of packages: the profile `dist`, without paths of this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::libraries;
use super::release::{PROGRAMS, Release};
use crate::place::Place;
use crate::{process, repository};

/// Longest build of a program, on a slow machine with nothing built.
const BUILD_TIME_MAX: Duration = Duration::from_mins(90);

/// The way in which the programs use the system's libraries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Linking {
    /// With the libraries of the system, whose package manager updates them.
    Dynamic,
    /// Without any library.
    Static,
}

impl Linking {
    /// The name of the linking, also of the folder of its programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::Static => "static",
        }
    }
}

/// Builds the programs; returns the folder with them.
///
/// # Errors
/// When the build fails, or a program that is to need no library needs one.
pub(super) fn build(linking: Linking, release: &Release, place: &Place<'_>) -> Result<PathBuf> {
    let built = place.target.join("xtask").join("programs").join(linking.name());
    let triple = target_triple(linking)?;
    let flags = flags(linking, &triple, place)?;
    // The broker alone: with the tools beside it, cargo would give its dependencies more features.
    for packages in [repository::BROKER_PACKAGE, repository::TOOL_PACKAGES] {
        let mut command = Command::new(repository::cargo());
        // With `--target` the flags do not reach build scripts and procedural macros.
        command.args(["build", "--locked", "--profile", "dist", "--target", &triple]);
        command.arg("--target-dir").arg(&built).args(packages).current_dir(place.root);
        command.env("SOURCE_DATE_EPOCH", release.time_s.to_string());
        command.env("RUSTFLAGS", &flags.rust).env("CFLAGS", &flags.c);
        command.env("CARGO_TERM_COLOR", "never");
        process::run(command, place.log, BUILD_TIME_MAX)?;
    }
    let folder = built.join(triple).join("dist");
    if linking == Linking::Static {
        for program in PROGRAMS {
            let needed = libraries::needed(&folder.join(program))?;
            ensure!(needed.names.is_empty(), "{program} needs {}", needed.names.join(", "));
        }
    }
    Ok(folder)
}

/// Copies programs without their debug information, for packages of a build that has it.
///
/// # Errors
/// When a program is missing or cannot be copied.
pub(super) fn stripped(programs: &[PathBuf], folder: &Path, place: &Place<'_>) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for program in programs {
        let name = program.file_name().with_context(|| format!("{}", program.display()))?;
        let mut command = Command::new("strip");
        command.arg("--strip-debug").arg("-o").arg(folder.join(name)).arg(program);
        process::run(command, place.log, BUILD_TIME_MAX)?;
    }
    Ok(())
}

/// The target: for programs without libraries musl where it is installed, else glibc.
fn target_triple(linking: Linking) -> Result<String> {
    let arch = env::consts::ARCH;
    let musl = format!("{arch}-unknown-linux-musl");
    let libraries = repository::ask_compiler(&["--print", "target-libdir", "--target", &musl]);
    let has_musl = libraries.is_ok_and(|folder| Path::new(folder.trim()).is_dir());
    // Two dependencies are in C.
    let has_compiler = process::output(
        {
            let mut command = Command::new("musl-gcc");
            command.arg("--version");
            command
        },
        Duration::from_secs(30),
    )
    .is_ok();
    Ok(match linking == Linking::Static && has_musl && has_compiler {
        true => musl,
        false => format!("{arch}-unknown-linux-gnu"),
    })
}

/// Flags of the compilers.
#[derive(Debug)]
struct Flags {
    rust: String,
    c: String,
}

/// Flags that replace paths of this machine by fixed ones.
fn flags(linking: Linking, triple: &str, place: &Place<'_>) -> Result<Flags> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set")?;
    // Of several that match, the compilers take the last.
    let replaced =
        [(place.root, "/leveret"), (cargo.as_path(), "/cargo"), (place.target, "/leveret/target")];
    let mut flags = Flags { rust: String::new(), c: String::new() };
    for (path, name) in replaced {
        let path = path.to_str().with_context(|| format!("{} is no text", path.display()))?;
        ensure!(!path.contains(' '), "{path}: flags of compilers are separated by spaces");
        flags.rust.push_str(&format!("--remap-path-prefix={path}={name} "));
        flags.c.push_str(&format!("-ffile-prefix-map={path}={name} "));
    }
    if linking == Linking::Static && triple.ends_with("-gnu") {
        flags.rust.push_str("-C target-feature=+crt-static");
    }
    Ok(flags)
}
