//! `cargo xtask dist`: packages for users, from the programs of this commit.
//!
//! Decides which packages there are and where they go. `programs` builds, `content` lists the files that every
//! package installs, and each format has a module of its own: `deb`, `archive`, `image`. Nothing that a package contains
//! depends on the time, the folder or the machine of its build.

mod archive;
mod content;
mod deb;
mod image;
mod libraries;
mod programs;
mod release;
mod roff;
mod sbom;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use self::content::Content;
use self::programs::Linking;
use self::release::{PACKING_TIME_MAX, Release};
use crate::place::Place;
use crate::{process, repository};

/// A version before every release.
const OLD_VERSION: &str = "0.0.1";

/// A form of the programs for users.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Package {
    /// The Debian package
    Deb,
    /// The archive of static programs
    Archive,
    /// The container image
    Image,
}

impl Package {
    fn linking(self) -> Linking {
        match self {
            Self::Deb => Linking::Dynamic,
            Self::Archive | Self::Image => Linking::Static,
        }
    }
}

/// Options of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Make only these packages; the Debian package needs one build, archive and image together another one
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',')]
    only: Vec<Package>,

    /// Folder for the packages [default: target/packages]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Build everything a second time, in a new clone, and fail unless the bytes are the same
    #[arg(long)]
    verify: bool,
}

/// Builds the programs and packs them.
///
/// # Errors
/// When something cannot be built or packed.
pub(crate) fn run(options: &Options) -> Result<()> {
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let logs = target.join("xtask").join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let log = logs.join("dist-programs.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let place = Place::new(&root, &target, &log);
    if options.verify {
        verify::check_tree(&place)?;
    }
    let release = Release::of_commit()?;
    let output = options.output.clone().unwrap_or_else(|| target.join("packages"));
    let is_wanted = |package: &Package| options.only.is_empty() || options.only.contains(package);
    let wanted: Vec<_> = Package::value_variants().iter().copied().filter(is_wanted).collect();
    let mut builds = Vec::new();
    for linking in linkings(&wanted) {
        println!("building {} programs, with the log in {}", linking.name(), log.display());
        builds.push((linking, programs::build(linking, &release, &place)?));
    }
    for file in pack(&release, &wanted, &builds, &output, &place)? {
        let bytes = fs::metadata(&file)?.len();
        println!("{bytes:>10} bytes  {}", file.display());
    }
    if options.verify {
        println!("building a second time, in a new clone");
        let files = verify::verify(&wanted, &output, &place)?;
        println!("all {files} files have the same bytes");
    }
    Ok(())
}

/// Packs programs of a build that has its debug information: twice as they are, and once as an older version.
/// Returns the folder with the folders `one`, `two` and `old`.
///
/// # Errors
/// When something cannot be read, packed or written.
pub(crate) fn pack_for_test(programs: &[PathBuf], place: &Place<'_>) -> Result<PathBuf> {
    let folder = place.target.join("xtask").join("packages");
    let stripped = folder.join("programs");
    programs::stripped(programs, &stripped, place)?;
    let wanted = Package::value_variants();
    let builds: Vec<_> = linkings(wanted).map(|linking| (linking, stripped.clone())).collect();
    let mut release = Release { is_quick: true, ..Release::of_commit()? };
    for name in ["one", "two"] {
        pack(&release, wanted, &builds, &folder.join(name), place)?;
    }
    OLD_VERSION.clone_into(&mut release.version);
    pack(&release, wanted, &builds, &folder.join("old"), place)?;
    Ok(folder)
}

/// The builds that packages need, each once.
fn linkings(wanted: &[Package]) -> impl Iterator<Item = Linking> {
    let is_needed = |linking: &Linking| wanted.iter().any(|package| package.linking() == *linking);
    [Linking::Dynamic, Linking::Static].into_iter().filter(is_needed)
}

/// Packs the programs of these builds, whose folders are given: those that use the libraries of the system for the
/// package managers, and those that need none for the archive and the image. Returns the packages and the list of their
/// checksums.
///
/// # Errors
/// When something cannot be read, packed or written.
fn pack(
    release: &Release,
    wanted: &[Package],
    builds: &[(Linking, PathBuf)],
    output: &Path,
    place: &Place<'_>,
) -> Result<Vec<PathBuf>> {
    if output.exists() {
        fs::remove_dir_all(output).with_context(|| format!("cannot empty {}", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let list = output.join(format!("leveret-{}.cdx.json", release.version));
    fs::write(&list, sbom::list(release, place)?)?;
    let mut files = Vec::new();
    for (linking, programs) in builds {
        let content = Content::of(release, programs, &list, place)?;
        for package in wanted.iter().filter(|package| package.linking() == *linking) {
            files.push(match package {
                Package::Deb => deb::pack(release, programs, &content, output, place)?,
                Package::Archive => archive::pack(release, &content, output, place)?,
                Package::Image => image::pack(release, &content, output, place)?,
            });
        }
    }
    files.push(list);
    files.sort();
    let sums = output.join(verify::SUMS);
    fs::write(&sums, checksums(&files, output)?)?;
    files.push(sums);
    Ok(files)
}

/// Checksums in the form that `sha256sum --check` reads.
fn checksums(files: &[PathBuf], folder: &Path) -> Result<String> {
    let mut command = Command::new("sha256sum");
    command.current_dir(folder);
    for file in files {
        let name = file.file_name().with_context(|| format!("{} is no file", file.display()))?;
        command.arg(name);
    }
    process::output(command, PACKING_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkings_are_those_that_the_wanted_packages_need() {
        let of = |wanted: &[Package]| linkings(wanted).collect::<Vec<_>>();
        assert_eq!(of(&[Package::Deb]), [Linking::Dynamic]);
        assert_eq!(of(&[Package::Image, Package::Archive]), [Linking::Static]);
        assert_eq!(of(Package::value_variants()), [Linking::Dynamic, Linking::Static]);
    }
}
