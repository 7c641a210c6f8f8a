"""The container image as a file: digests, both descriptions, and the files inside."""

import hashlib
import json
import shutil

import pytest

from conftest import only, run
from container import Image


@pytest.fixture(scope="module")
def image(packages):
    return Image(only(packages / "one", "*-image-*.tar"))


def test_layout_and_list_for_docker_name_the_same_blobs(image):
    assert image.layout == {"imageLayoutVersion": "1.0.0"}
    (entry,) = image.index["manifests"]
    version = entry["annotations"]["org.opencontainers.image.ref.name"]
    assert entry["annotations"]["io.containerd.image.name"] == f"docker.io/library/leveret:{version}"
    assert entry["platform"] == {"architecture": image.config["architecture"], "os": "linux"}
    (listed,) = image.of_docker
    assert listed["RepoTags"] == [f"leveret:{version}"]
    assert image.docker_file(listed["Config"]) == image.blob(image.manifest["config"])
    assert [image.docker_file(name) for name in listed["Layers"]] == [image.blob(image.manifest["layers"][0])]


def test_layer_has_the_digest_in_the_configuration(image):
    (digest,) = image.config["rootfs"]["diff_ids"]
    assert digest == "sha256:" + hashlib.sha256(image.layer).hexdigest()


@pytest.mark.parametrize("form", ["oci-archive", "docker-archive"])
def test_skopeo_reads_both_forms(form, packages, image, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    path = only(packages / "one", "*-image-*.tar")
    # A copy computes every digest again.
    run("skopeo", "--insecure-policy", "--tmpdir", tmp_path, "copy", "--quiet", f"{form}:{path}", f"dir:{tmp_path}/copy")
    seen = json.loads(run("skopeo", "inspect", "--config", f"dir:{tmp_path}/copy"))
    assert seen["config"]["User"] == image.config["config"]["User"]
    assert seen["rootfs"] == image.config["rootfs"]


def test_entries_have_the_time_of_the_commit(image):
    with image.open_layer() as tar:
        members = tar.getmembers()
    assert len({member.mtime for member in [*members, *image.members]}) == 1
    names = [member.name for member in members]
    assert len(names) == len(set(names))
    # A folder comes before the files in it.
    for place, name in enumerate(names):
        assert "/" not in name or name.rsplit("/", 1)[0] in names[:place], name


def test_image_has_the_programs_and_no_shell(image):
    with image.open_layer() as tar:
        members = {member.name: member for member in tar}
    assert {name for name in members if name.startswith("usr/bin/")} == {
        "usr/bin/leveret", "usr/bin/leveretctl", "usr/bin/rabbitmqctl", "usr/bin/rabbitmq-diagnostics",
        "usr/bin/rabbitmq-plugins", "usr/bin/rabbitmq-queues", "usr/bin/rabbitmq-streams", "usr/bin/rabbitmq-upgrade",
        "usr/bin/rabbitmq-server"}
    assert members["usr/bin/rabbitmqctl"].linkname == "leveretctl"
    writable = {name for name, member in members.items() if member.mode & 0o022 and not member.issym()}
    assert writable == {"tmp", "var/lib/leveret", "var/lib/rabbitmq"}
    assert {member.uid for name, member in members.items() if name not in writable} == {0}
    assert (members["var/lib/leveret"].uid, members["var/lib/leveret"].gid) == (999, 999)
    assert {"usr/share/doc/leveret/LICENSE-MIT", "usr/share/doc/leveret/LICENSE-APACHE"} <= set(members)
    assert [name for name in members if name.endswith(".cdx.json")]


def test_image_says_how_it_runs(image):
    settings = image.config["config"]
    assert (settings["User"], settings["StopSignal"]) == ("999:999", "SIGTERM")
    assert set(settings["ExposedPorts"]) == {f"{port}/tcp" for port in (5671, 5672, 15671, 15672, 15692)}
    assert set(settings["Volumes"]) == {"/var/lib/leveret"}
    assert settings["Healthcheck"]["Test"][0] == "CMD"
