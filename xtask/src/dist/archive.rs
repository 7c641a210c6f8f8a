//! The archive for every Linux: static programs, with everything that a package installs beside them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::content::{Content, Staged};
use super::release::{PACKING_TIME_MAX, Release};
use crate::place::Place;
use crate::process;

/// Packs the archive; returns its path.
///
/// # Errors
/// When a file cannot be written, or tar and gzip are missing.
pub(super) fn pack(
    release: &Release,
    content: &Content,
    output: &Path,
    place: &Place<'_>,
) -> Result<PathBuf> {
    let name = format!("leveret-{}-linux-{}", release.version, std::env::consts::ARCH);
    let staged = Staged::empty(place.target.join("xtask").join("archive"))?;
    let at = |path: &str| format!("{name}/{path}");
    staged.programs(&at("bin"), content)?;
    for page in &content.manual {
        let section = page.name.rsplit('.').next().unwrap_or_default();
        staged.write(&at(&format!("man/man{section}/{}", page.name)), &page.bytes, 0o644)?;
    }
    let [bash, zsh, fish] = &content.completions;
    staged.write(&at("completion/leveretctl.bash"), bash, 0o644)?;
    staged.write(&at("completion/_leveretctl_complete"), zsh, 0o644)?;
    staged.write(&at("completion/leveretctl.fish"), fish, 0o644)?;
    staged.write(&at("leveret.conf"), &content.configuration, 0o644)?;
    staged.write(&at("leveret.service"), &content.unit, 0o644)?;
    staged.write(&at("install.sh"), &content.installer, 0o755)?;
    staged.write(&at("CHANGELOG.md"), &content.changelog, 0o644)?;
    for file in content.licences.iter().chain([&content.sbom]) {
        staged.write(&at(&file.name), &file.bytes, 0o644)?;
    }
    let archive = output.join(format!("{name}.tar.gz"));
    let level = if release.is_quick { "-1" } else { "-9" };
    let mut command = Command::new("tar");
    command.args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"]);
    command.args(["--owner=0", "--group=0"]).arg(format!("--mtime=@{}", release.time_s));
    command.arg(format!("--use-compress-program=gzip --no-name {level}"));
    command.arg("--file").arg(&archive).arg("--directory").arg(staged.path()).arg(&name);
    process::run(command, place.log, PACKING_TIME_MAX)?;
    Ok(archive)
}
