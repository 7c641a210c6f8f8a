//! The files that every package installs, with the places that a format gives them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::release::{PACKING_TIME_MAX, PROGRAMS, Release};
use super::roff;
use crate::place::Place;
use crate::process;

/// The page that the manual of the configuration is made of.
const CONFIGURATION: &str = "docs/reference/configuration.md";

/// Commands of the programs that have a manual page of their own.
const COMMAND_PAGES: [(&str, &str); 5] = [
    ("leveret", "check"),
    ("leveret-perf", "throughput"),
    ("leveret-perf", "expiry"),
    ("leveret-perf", "backlog"),
    ("leveret-perf", "churn"),
];

/// A file, under a name without a folder.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The files of a package, by kind.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) programs: Vec<PathBuf>,
    pub(super) manual: Vec<Named>,
    /// Scripts for shells: bash, zsh, fish.
    pub(super) completions: [Vec<u8>; 3],
    pub(super) configuration: Vec<u8>,
    pub(super) unit: Vec<u8>,
    /// The script that installs the archive.
    pub(super) installer: Vec<u8>,
    pub(super) changelog: Vec<u8>,
    /// Both licences.
    pub(super) licences: Vec<Named>,
    /// The list of what is inside.
    pub(super) sbom: Named,
}

impl Content {
    /// Collects the files; asks the programs in a folder for their manual pages and completions.
    ///
    /// # Errors
    /// When a file is missing, or a program does not answer.
    pub(super) fn of(
        release: &Release,
        programs: &Path,
        sbom: &Path,
        place: &Place<'_>,
    ) -> Result<Self> {
        let read = |path: &str| {
            fs::read(place.root.join(path)).with_context(|| format!("cannot read {path}"))
        };
        let ask = |program: &str, words: &[&str]| {
            let mut command = Command::new(programs.join(program));
            command.args(words);
            process::output(command, PACKING_TIME_MAX).map(String::into_bytes)
        };
        let mut manual = Vec::new();
        for program in PROGRAMS {
            manual.push(Named { name: format!("{program}.1"), bytes: ask(program, &["man"])? });
        }
        for (program, command) in COMMAND_PAGES {
            let name = format!("{program}-{command}.1");
            manual.push(Named { name, bytes: ask(program, &["man", command])? });
        }
        let text = String::from_utf8(read(CONFIGURATION)?)?;
        let page = roff::page("leveret.conf", "configuration of Leveret", &text, release);
        manual.push(Named { name: "leveret.conf.5".to_owned(), bytes: page.into_bytes() });
        let script = |shell| ask("leveretctl", &["completion", shell]);
        let licence = |name: &str| anyhow::Ok(Named { name: name.to_owned(), bytes: read(name)? });
        let sbom_name = sbom.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            programs: PROGRAMS.iter().map(|program| programs.join(program)).collect(),
            manual,
            completions: [script("bash")?, script("zsh")?, script("fish")?],
            configuration: read("packaging/leveret.conf")?,
            unit: read("packaging/leveret.service")?,
            installer: read("packaging/install.sh")?,
            changelog: read("CHANGELOG.md")?,
            licences: vec![licence("LICENSE-APACHE")?, licence("LICENSE-MIT")?],
            sbom: Named {
                name: sbom_name.context("the list of components has no name")?,
                bytes: fs::read(sbom)?,
            },
        })
    }
}

/// A folder that becomes a package.
#[derive(Debug)]
pub(super) struct Staged(PathBuf);

impl Staged {
    /// An empty folder at this path.
    ///
    /// # Errors
    /// When an earlier one cannot be removed, or the folder cannot be created.
    pub(super) fn empty(path: PathBuf) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot empty {}", path.display()))?;
        }
        let staged = Self(path);
        staged.folder("")?;
        Ok(staged)
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a folder, with those above it.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn folder(&self, path: &str) -> Result<()> {
        let mut folder = self.0.clone();
        for part in Path::new(path).iter().map(Path::new).chain([Path::new("")]) {
            folder = folder.join(part);
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            // Whatever the umask of the user.
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Writes a file with these bytes and permissions.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn write(&self, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder)?;
        }
        let file = self.0.join(path);
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Writes the programs into a folder.
    ///
    /// # Errors
    /// When a program is missing, or the system refuses.
    pub(super) fn programs(&self, folder: &str, content: &Content) -> Result<()> {
        for program in &content.programs {
            let bytes = fs::read(program);
            let bytes = bytes.with_context(|| format!("cannot read {}", program.display()))?;
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            self.write(&format!("{folder}/{name}"), &bytes, 0o755)?;
        }
        Ok(())
    }

    /// Writes a file compressed by gzip, without its name and time.
    ///
    /// # Errors
    /// When gzip is missing, or the system refuses.
    pub(super) fn write_gz(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.write(path, bytes, 0o644)?;
        let mut command = Command::new("gzip");
        command.args(["--no-name", "--best", "--force"]).arg(self.0.join(path));
        process::output(command, PACKING_TIME_MAX)?;
        Ok(())
    }
}
