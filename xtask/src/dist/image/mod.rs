//! The container image: one tar file that is an OCI layout and, for `docker load`, an archive of Docker.
//!
//! `root` lists the files of the image, `tar` writes them; this file describes the image and the layout. No daemon
//! takes part. A blob is named by its SHA-256, so the same programs give the same names.

mod root;
mod tar;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::tar::{Owner, Tar};
use super::content::Content;
use super::release::{PACKING_TIME_MAX, Release, architecture};
use crate::place::Place;
use crate::process;

/// Number of the user and of its group, as in RabbitMQ's image, so that volumes can be shared.
const USER: u32 = 999;

/// The volume for data.
const DATA: &str = "/var/lib/leveret";

/// The volume of RabbitMQ's image, which is used if something is mounted there.
const RABBITMQ_DATA: &str = "/var/lib/rabbitmq";

/// Ports of AMQP, of HTTP, and of metrics; those for TLS are unused until they are configured.
const PORTS: [u16; 5] = [5671, 5672, 15671, 15672, 15692];

const NANOSECONDS: u64 = 1_000_000_000;

/// Packs the image; returns its path.
///
/// # Errors
/// When a file cannot be read or written, or gzip is missing.
pub(super) fn pack(
    release: &Release,
    content: &Content,
    output: &Path,
    place: &Place<'_>,
) -> Result<PathBuf> {
    let layer = root::layer(release, content)?;
    let compressed = compressed(&layer, release, place)?;
    let created = utc(release.time_s)?;
    let config = json_bytes(&config(release, architecture()?, &created, &sha256(&layer)));
    let image = image(release, architecture()?, &created, config, compressed)?;
    let name = format!("leveret-{}-image-{}.tar", release.version, architecture()?);
    let path = output.join(name);
    fs::write(&path, image)?;
    Ok(path)
}

/// The tar file with the layout.
fn image(
    release: &Release,
    architecture: &str,
    created: &str,
    config: Vec<u8>,
    layer: Vec<u8>,
) -> Result<Vec<u8>> {
    let version = &release.version;
    let described = |kind: &str, bytes: &[u8]| {
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{}", sha256(bytes)),
            "size": bytes.len(),
        })
    };
    let manifest = json_bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", &config),
        "layers": [described("layer.v1.tar+gzip", &layer)],
        "annotations": annotations(version, created),
    }));
    let mut entry = described("manifest.v1+json", &manifest);
    entry["platform"] = json!({"architecture": architecture, "os": "linux"});
    // containerd and podman take the name of the image from the first, others from the second.
    entry["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/leveret:{version}"),
        "org.opencontainers.image.ref.name": version,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let blob = |bytes: &[u8]| format!("blobs/sha256/{}", sha256(bytes));
    let of_docker = json!([{
        "Config": blob(&config),
        "RepoTags": [format!("leveret:{version}")],
        "Layers": [blob(&layer)],
    }]);
    let mut blobs = [config, layer, manifest].map(|bytes| (blob(&bytes), bytes));
    blobs.sort();
    let mut tar = Tar::new(release.time_s);
    tar.folder("blobs", 0o755, Owner::ROOT)?;
    tar.folder("blobs/sha256", 0o755, Owner::ROOT)?;
    for (name, bytes) in &blobs {
        tar.file(name, 0o644, bytes)?;
    }
    tar.file("index.json", 0o644, &json_bytes(&index))?;
    tar.file("manifest.json", 0o644, &json_bytes(&of_docker))?;
    tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(tar.finish())
}

/// The description of the image: what a container runs, and how. `diff_id` is the sum of the uncompressed layer.
fn config(release: &Release, architecture: &str, created: &str, diff_id: &str) -> Value {
    let ports: serde_json::Map<String, Value> =
        PORTS.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
    json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": ports,
            "Env": [
                "PATH=/usr/bin",
                "HOME=/var/lib/leveret",
                "LANG=C.UTF-8",
                // The broker's defaults of this image: see `crates/server/src/config/container.rs`.
                "LEVERET_DEFAULTS=container",
            ],
            // No entry point: `docker run IMAGE rabbitmqctl ..` and `command: rabbitmq-server` work.
            "Cmd": ["leveret"],
            "Volumes": {(DATA): {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", "rabbitmq-diagnostics", "-q", "check_running"],
                "Interval": 10 * NANOSECONDS,
                "Timeout": 10 * NANOSECONDS,
                // The restoration of much data takes minutes.
                "StartPeriod": 300 * NANOSECONDS,
                "Retries": 3,
            },
            "Labels": annotations(&release.version, created),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff_id}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    })
}

fn annotations(version: &str, created: &str) -> Value {
    json!({
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.description": "message broker for the clients of RabbitMQ",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.title": "Leveret",
        "org.opencontainers.image.version": version,
    })
}

/// The layer compressed by gzip, without a name and a time.
fn compressed(layer: &[u8], release: &Release, place: &Place<'_>) -> Result<Vec<u8>> {
    let folder = place.target.join("xtask").join("image");
    fs::create_dir_all(&folder)?;
    let (plain, packed) = (folder.join("layer.tar"), folder.join("layer.tar.gz"));
    fs::write(&plain, layer)?;
    let level = if release.is_quick { "-1" } else { "-9" };
    let mut command = Command::new("gzip");
    command.args(["--no-name", "--force", level]).arg(&plain);
    process::run(command, place.log, PACKING_TIME_MAX)?;
    Ok(fs::read(&packed)?)
}

/// A time in the form of RFC 3339.
fn utc(time_s: u64) -> Result<String> {
    let mut date = Command::new("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"]).arg(format!("--date=@{time_s}"));
    Ok(process::output(date, PACKING_TIME_MAX)?.trim().to_owned())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_names_every_blob_by_its_sum() {
        let release = Release { version: "1.2.3".to_owned(), time_s: 0, is_quick: true };
        let created = utc(release.time_s).unwrap();
        assert_eq!(created, "1970-01-01T00:00:00Z");
        let make = || {
            let config = json_bytes(&config(&release, "amd64", &created, &sha256(b"layer")));
            image(&release, "amd64", &created, config, b"packed".to_vec()).unwrap()
        };
        let bytes = make();
        assert_eq!(bytes, make());
        let text = String::from_utf8(bytes).unwrap();
        let layer = sha256(b"packed");
        assert_eq!(layer, "88cb8a087b6e8cebfc9ae5602f5a2159a6bcf923e7f2c56809bcda6cad1727a7");
        // The name of the file, in the manifest, and in the list for Docker.
        assert_eq!(text.matches(&layer).count(), 3);
        assert!(text.contains(r#""RepoTags":["leveret:1.2.3"]"#));
        assert!(text.contains(&format!(r#""diff_ids":["sha256:{}"]"#, sha256(b"layer"))));
    }
}
