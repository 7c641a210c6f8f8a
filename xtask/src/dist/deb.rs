//! The Debian package, packed by dpkg-deb.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::content::{Content, Staged};
use super::libraries::{self, Needed};
use super::release::{PACKING_TIME_MAX, PROGRAMS, Release, architecture};
use crate::place::Place;
use crate::process;

/// The contact in the package. The domain belongs to nobody.
const MAINTAINER: &str = "The Leveret authors <maintainers@leveret.invalid>";

/// Packages that the maintainer scripts use.
const SCRIPT_PACKAGES: [&str; 3] =
    ["adduser", "debconf (>= 0.5) | debconf-2.0", "init-system-helpers (>= 1.54)"];

const DESCRIPTION: &str = "\
message broker for the clients of RabbitMQ
 Leveret speaks AMQP 0-9-1 and RabbitMQ's management API. Messages expire, are
 dead-lettered, delayed and retried at exact times.
 .
 The package has the broker as a service, leveretctl (which also works as
 rabbitmqctl and rabbitmq-diagnostics) and the load generator leveret-perf.
";

/// Packs the package; returns its path.
///
/// # Errors
/// When a file cannot be written, or dpkg-deb is missing.
pub(super) fn pack(
    release: &Release,
    programs: &Path,
    content: &Content,
    output: &Path,
    place: &Place<'_>,
) -> Result<PathBuf> {
    let staged = Staged::empty(place.target.join("xtask").join("deb"))?;
    stage_files(release, content, &staged, place)?;
    stage_control(release, programs, &staged, place)?;
    let name = format!("leveret_{}-1_{}.deb", release.version, architecture()?);
    let package = output.join(name);
    let mut command = Command::new("dpkg-deb");
    // With one thread, because the bytes must not depend on the number of processors.
    command.args(["--root-owner-group", "--threads-max=1", "-Zxz"]);
    command.arg(if release.is_quick { "-z0" } else { "-z6" });
    command.arg("--build").arg(staged.path()).arg(&package);
    command.env("SOURCE_DATE_EPOCH", release.time_s.to_string());
    process::run(command, place.log, PACKING_TIME_MAX)?;
    Ok(package)
}

/// Writes the files that are installed.
fn stage_files(
    release: &Release,
    content: &Content,
    staged: &Staged,
    place: &Place<'_>,
) -> Result<()> {
    staged.programs("usr/bin", content)?;
    for page in &content.manual {
        let section = page.name.rsplit('.').next().unwrap_or_default();
        staged.write_gz(&format!("usr/share/man/man{section}/{}", page.name), &page.bytes)?;
    }
    let [bash, zsh, fish] = &content.completions;
    for program in PROGRAMS {
        // The shells load the script of a program by the name of the program.
        staged.write(&format!("usr/share/bash-completion/completions/{program}"), bash, 0o644)?;
        staged.write(
            &format!("usr/share/fish/vendor_completions.d/{program}.fish"),
            fish,
            0o644,
        )?;
    }
    staged.write("usr/share/zsh/vendor-completions/_leveretctl_complete", zsh, 0o644)?;
    staged.write("etc/leveret/leveret.conf", &content.configuration, 0o644)?;
    staged.folder("etc/leveret/conf.d")?;
    staged.write("lib/systemd/system/leveret.service", &content.unit, 0o644)?;
    let document = |name: &str| format!("usr/share/doc/leveret/{name}");
    staged.write_gz(&document("changelog"), &content.changelog)?;
    staged.write_gz(&document("changelog.Debian"), debian_changelog(release)?.as_bytes())?;
    staged.write(&document(&content.sbom.name), &content.sbom.bytes, 0o644)?;
    let copyright = fs::read(place.root.join("packaging/debian/copyright"))?;
    staged.write(&document("copyright"), &copyright, 0o644)?;
    let overrides = fs::read(place.root.join("packaging/debian/lintian-overrides"))?;
    staged.write("usr/share/lintian/overrides/leveret", &overrides, 0o644)
}

/// Writes the description of the package and the maintainer scripts.
fn stage_control(
    release: &Release,
    programs: &Path,
    staged: &Staged,
    place: &Place<'_>,
) -> Result<()> {
    let files = files(staged.path(), staged.path())?;
    let (mut sums, mut bytes) = (String::new(), 0);
    for file in &files {
        let mut command = Command::new("md5sum");
        command.arg("--").arg(file).current_dir(staged.path());
        sums.push_str(&process::output(command, PACKING_TIME_MAX)?);
        bytes += fs::metadata(staged.path().join(file))?.len();
    }
    let mut needed = Needed::default();
    for program in PROGRAMS {
        needed = needed.and(libraries::needed(&programs.join(program))?);
    }
    let mut depends: Vec<String> = SCRIPT_PACKAGES.map(str::to_owned).to_vec();
    depends.extend(needed.packages()?);
    depends.sort();
    let mut control = format!(
        "Package: leveret\nVersion: {}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\n",
        release.version,
        architecture()?
    );
    // Writing to a string cannot fail.
    let _ = write!(
        control,
        "Installed-Size: {}\nDepends: {}\nSection: net\nPriority: optional\nDescription: {DESCRIPTION}",
        bytes.div_ceil(1024),
        depends.join(", ")
    );
    staged.write("DEBIAN/control", control.as_bytes(), 0o644)?;
    staged.write("DEBIAN/md5sums", sums.as_bytes(), 0o644)?;
    staged.write("DEBIAN/conffiles", b"/etc/leveret/leveret.conf\n", 0o644)?;
    for (file, mode) in
        [("postinst", 0o755), ("prerm", 0o755), ("postrm", 0o755), ("templates", 0o644)]
    {
        let text = fs::read(place.root.join("packaging/debian").join(file));
        let text = text.with_context(|| format!("cannot read packaging/debian/{file}"))?;
        staged.write(&format!("DEBIAN/{file}"), &text, mode)?;
    }
    Ok(())
}

/// The changelog of the package, as Debian wants it.
fn debian_changelog(release: &Release) -> Result<String> {
    let mut command = Command::new("date");
    command.args(["--utc", "--rfc-email"]).arg(format!("--date=@{}", release.time_s));
    command.env("LC_ALL", "C");
    let date = process::output(command, PACKING_TIME_MAX)?;
    let version = &release.version;
    Ok(format!(
        "leveret ({version}-1) stable; urgency=medium\n\n  * Leveret {version}: see changelog.gz.\n\n -- \
         {MAINTAINER}  {date}"
    ))
}

/// The files below a folder, relative to `root`, by name.
fn files(folder: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path, root)?),
            false => found.push(path.strip_prefix(root)?.to_path_buf()),
        }
    }
    found.sort();
    Ok(found)
}
