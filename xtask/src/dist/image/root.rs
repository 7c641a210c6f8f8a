//! The files of the container image: programs, users, and folders for data and configuration; no shell.

use std::fs;

use anyhow::{Context as _, Result};

use super::tar::{Owner, Tar};
use super::{DATA, RABBITMQ_DATA, USER};
use crate::dist::content::Content;
use crate::dist::release::Release;

/// Programs of the image; the load generator has no place in it.
const PROGRAMS: [&str; 2] = ["leveret", "leveretctl"];

/// Names of RabbitMQ's programs, with the program that each stands for.
const LINKS: [(&str, &str); 7] = [
    ("rabbitmq-diagnostics", "leveretctl"),
    ("rabbitmq-plugins", "leveretctl"),
    ("rabbitmq-queues", "leveretctl"),
    ("rabbitmq-server", "leveret"),
    ("rabbitmq-streams", "leveretctl"),
    ("rabbitmq-upgrade", "leveretctl"),
    ("rabbitmqctl", "leveretctl"),
];

/// Folders of root.
const FOLDERS: [&str; 15] = [
    "dev",
    "etc",
    "etc/rabbitmq",
    "etc/rabbitmq/conf.d",
    "proc",
    "root",
    "run",
    "sys",
    "usr",
    "usr/bin",
    "usr/share",
    "usr/share/doc",
    "usr/share/doc/leveret",
    "var",
    "var/lib",
];

/// The only layer of the image, as a tar file.
///
/// # Errors
/// When a program cannot be read.
pub(super) fn layer(release: &Release, content: &Content) -> Result<Vec<u8>> {
    let mut tar = Tar::new(release.time_s);
    for folder in FOLDERS {
        tar.folder(folder, 0o755, Owner::ROOT)?;
    }
    tar.folder("tmp", 0o1777, Owner::ROOT)?;
    for folder in [DATA, RABBITMQ_DATA] {
        // The container may run as another user; the folder for data inside is private.
        tar.folder(folder.trim_start_matches('/'), 0o1777, Owner { uid: USER, gid: USER })?;
    }
    tar.file("etc/passwd", 0o644, passwd().as_bytes())?;
    tar.file("etc/group", 0o644, group().as_bytes())?;
    for path in &content.programs {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if PROGRAMS.contains(&&*name) {
            let program = fs::read(path);
            let program = program.with_context(|| format!("cannot read {}", path.display()))?;
            tar.file(&format!("usr/bin/{name}"), 0o755, &program)?;
        }
    }
    for (name, program) in LINKS {
        tar.link(&format!("usr/bin/{name}"), program)?;
    }
    for file in content.licences.iter().chain([&content.sbom]) {
        tar.file(&format!("usr/share/doc/leveret/{}", file.name), 0o644, &file.bytes)?;
    }
    Ok(tar.finish())
}

/// The user under its own name and under RabbitMQ's.
fn passwd() -> String {
    let user = |name| format!("{name}:x:{USER}:{USER}:{name}:{DATA}:/sbin/nologin\n");
    format!("root:x:0:0:root:/root:/sbin/nologin\n{}{}", user("leveret"), user("rabbitmq"))
}

fn group() -> String {
    format!("root:x:0:\nleveret:x:{USER}:\nrabbitmq:x:{USER}:\n")
}
