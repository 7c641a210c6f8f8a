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

use self::content::Content;
use self::programs::Linking;
use self::release::{PACKING_TIME_MAX, Release};
use crate::place::Place;
use crate::{process, repository};

/// A version before every release.
const OLD_VERSION: &str = "0.0.1";

/// Options of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
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
    println!("building, with the log in {}", log.display());
    let dynamic = programs::build(Linking::Dynamic, &release, &place)?;
    let fixed = programs::build(Linking::Static, &release, &place)?;
    for file in pack(&release, &dynamic, &fixed, &output, &place)? {
        let bytes = fs::metadata(&file)?.len();
        println!("{bytes:>10} bytes  {}", file.display());
    }
    if options.verify {
        println!("building a second time, in a new clone");
        let files = verify::verify(&output, &place)?;
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
    let mut release = Release { is_quick: true, ..Release::of_commit()? };
    for name in ["one", "two"] {
        pack(&release, &stripped, &stripped, &folder.join(name), place)?;
    }
    OLD_VERSION.clone_into(&mut release.version);
    pack(&release, &stripped, &stripped, &folder.join("old"), place)?;
    Ok(folder)
}

/// Packs programs: those in `dynamic`, which use the libraries of the system, for the package managers, and those
/// in `fixed`, which need none, for the archive and the image. Returns the packages and the list of their checksums.
///
/// # Errors
/// When something cannot be read, packed or written.
fn pack(
    release: &Release,
    dynamic: &Path,
    fixed: &Path,
    output: &Path,
    place: &Place<'_>,
) -> Result<Vec<PathBuf>> {
    if output.exists() {
        fs::remove_dir_all(output).with_context(|| format!("cannot empty {}", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let list = output.join(format!("leveret-{}.cdx.json", release.version));
    fs::write(&list, sbom::list(release, place)?)?;
    let deb = {
        let content = Content::of(release, dynamic, &list, place)?;
        deb::pack(release, dynamic, &content, output, place)?
    };
    let content = Content::of(release, fixed, &list, place)?;
    let archive = archive::pack(release, &content, output, place)?;
    let image = image::pack(release, &content, output, place)?;
    let mut files = vec![archive, deb, image, list];
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
