"""What is in the packages: the same bytes for the same programs, the usual places, manual pages, the list of components."""

import shutil
import subprocess
import tarfile

import pytest

from conftest import run

PROGRAMS = ["leveret", "leveret-perf", "leveretctl"]


def test_packages_of_the_same_programs_have_the_same_bytes(packages):
    names = sorted(file.name for file in (packages / "one").iterdir())
    assert names == sorted(file.name for file in (packages / "two").iterdir()) and len(names) == 5
    for name in names:
        assert (packages / "one" / name).read_bytes() == (packages / "two" / name).read_bytes(), name


def test_checksums_are_those_of_all_packages(packages):
    told = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=packages / "one").splitlines()
    others = {file.name for file in (packages / "one").iterdir()} - {"SHA256SUMS"}
    assert {line.removesuffix(": OK") for line in told} == others


def members(deb):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as tar:
        with tarfile.open(fileobj=tar.stdout, mode="r|") as opened:
            return list(opened)


def test_files_belong_to_root_and_have_the_time_of_the_commit(deb, archive):
    with tarfile.open(archive) as opened:
        for member in [*members(deb), *opened]:
            # A folder of the Debian package may be older than the commit only by a clock that was set.
            assert (member.uid, member.gid) == (0, 0), member.name
            assert member.mode & 0o022 == 0, (member.name, oct(member.mode))
        times = {member.mtime for member in opened.getmembers()}
    assert len(times) == 1 and {member.mtime for member in members(deb)} == times


def test_debian_package_has_the_usual_places(deb):
    modes = {member.name.removeprefix("./"): member.mode & 0o7777 for member in members(deb) if member.isfile()}
    for program in PROGRAMS:
        assert modes[f"usr/bin/{program}"] == 0o755
        assert modes[f"usr/share/man/man1/{program}.1.gz"] == 0o644
    assert {"etc/leveret/leveret.conf", "lib/systemd/system/leveret.service", "usr/share/man/man5/leveret.conf.5.gz",
            "usr/share/doc/leveret/copyright", "usr/share/doc/leveret/changelog.gz",
            "usr/share/bash-completion/completions/leveretctl",
            "usr/share/zsh/vendor-completions/_leveretctl_complete",
            "usr/share/fish/vendor_completions.d/leveretctl.fish"} <= set(modes)
    # Nothing in the data directory, which outlives the package, and no name of RabbitMQ's tools.
    assert not [name for name in modes if name.startswith("var/") or "rabbitmq" in name]


def test_debian_package_depends_on_the_libraries_of_its_programs(deb):
    depends = run("dpkg-deb", "--field", deb, "Depends")
    assert "libc6 (>= 2." in depends and "adduser" in depends


def test_lintian_finds_nothing(deb):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    assert run("lintian", "--allow-root", "--fail-on", "error,warning", deb).strip() == ""


def test_archive_has_the_programs_and_the_documents(archive):
    with tarfile.open(archive) as opened:
        modes = {member.name.split("/", 1)[1]: member.mode for member in opened if "/" in member.name}
    assert all(modes[file] == 0o755 for file in ["install.sh", *[f"bin/{program}" for program in PROGRAMS]])
    assert {"leveret.conf", "leveret.service", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "man/man1/leveretctl.1",
            "man/man5/leveret.conf.5", "completion/leveretctl.bash"} <= set(modes)


def test_manual_pages_are_without_faults(unpacked):
    pages = sorted((unpacked / "usr/share/man").rglob("*.gz"))
    assert len(pages) == 9
    for page in pages:
        ran = subprocess.run(["man", "--warnings", "--local-file", page], capture_output=True, text=True, check=True,
                             env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        assert ran.stderr == "" and "NAME" in ran.stdout, (page, ran.stderr)


def test_manual_of_the_configuration_has_every_key(unpacked):
    text = subprocess.run(["man", "--local-file", unpacked / "usr/share/man/man5/leveret.conf.5.gz"], capture_output=True,
                          text=True, check=True, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LC_ALL": "C.UTF-8"}).stdout
    printed = run(unpacked / "usr/bin/leveret", "--print-config")
    keys = {line.split(" = ")[0] for line in printed.splitlines()}
    # Families of keys stand in the manual by their pattern.
    missing = {key for key in keys if key not in text and not key.startswith(("listeners.tcp.", "default_user_tags.",
               "loopback_users.", "auth_mechanisms.", "ssl_options.versions.", "management.ssl.versions."))}
    assert len(keys) > 40 and missing == set()


def test_installed_configuration_is_valid(unpacked):
    printed = run(unpacked / "usr/bin/leveret", "--config", unpacked / "etc/leveret/leveret.conf",
                  "--config", unpacked / "etc/leveret/conf.d", "--print-config")
    assert "data_dir = /var/lib/leveret " in printed
    # Also what it suggests.
    suggested = (unpacked / "etc/leveret/leveret.conf").read_text().replace("\n#listeners", "\nlisteners")
    suggested = suggested.replace("\n#management", "\nmanagement").replace("\n#vm_", "\nvm_").replace("\n#disk", "\ndisk")
    (unpacked / "suggested.conf").write_text(suggested)
    printed = run(unpacked / "usr/bin/leveret", "--config", unpacked / "suggested.conf", "--print-config")
    assert "listeners.tcp.default = 127.0.0.1:5672" in printed and "disk_free_limit.absolute = 2" in printed


def test_list_of_components_is_complete_and_closed(sbom):
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.5")
    by_name = {one["name"]: one for one in sbom["components"]}
    assert {"tokio", "rustls", "ring", "mimalloc", "uplot", "@dagrejs/dagre", "leveret-broker"} <= set(by_name)
    assert not {"proptest", "criterion", "windows-sys", "libfuzzer-sys"} & set(by_name)
    references = [one["bom-ref"] for one in sbom["components"]]
    assert len(set(references)) == len(references)
    for dependency in sbom["dependencies"]:
        assert {dependency["ref"], *dependency["dependsOn"]} <= {*references, "leveret"}
    of_registry = [one for one in sbom["components"] if one["purl"].startswith("pkg:cargo/")
                   and not one["name"].startswith("leveret") and one["name"] != "httpdate"]
    assert all(len(one["hashes"][0]["content"]) == 64 and one["licenses"] for one in of_registry)
