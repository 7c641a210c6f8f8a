"""Contexts of leveretctl: brokers with names, in a file that only the user may read."""

import json
import stat

import pytest

from test_ctl import tools

pytestmark = pytest.mark.tools


@pytest.fixture
def ctl(under, pytestconfig, tmp_path):
    """The tool of a user with a folder of their own, in which neither options nor the environment name a node."""
    if under.name == "rabbitmq":
        pytest.skip("Leveret's own commands")
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    for name in ("LEVERET_DATA_DIR", "LEVERET_HTTP_URL", "LEVERET_USER", "LEVERET_PASSWORD"):
        ctl.environment.pop(name, None)
    ctl.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return ctl


def test_contexts_name_several_brokers(ctl, under, tmp_path):
    here, other = under.shared(), under.start()

    def run(*words):
        return ctl.run(*words, tool="leveretctl")

    try:
        added = run("context", "add", "here", "--http-url", here.api.url, "--username", "guest", "--password", "guest")
        file = tmp_path / "config" / "leveret" / "contexts.json"
        assert added.out == f"Context 'here' is kept in {file}, without the password (see --store-password)\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "password" not in file.read_text()
        assert run("context", "add", "other", "--data-dir", other.data_dir).code == 0

        names = [broker.api.do("GET", "/api/overview")["cluster_name"] for broker in (here, other)]
        other.api.do("PUT", "/api/cluster-name", {"name": "the other one"})
        assert names[0] != "the other one"

        def cluster(*options):
            ran = run("cluster_status", "--formatter", "json", *options)
            return json.loads(ran.out)["cluster_name"] if ran.code == 0 else ran.err

        assert cluster("--context", "other") == "the other one"
        # The user of the context has the password of the option, or of the environment.
        assert "refuses the login of 'guest'" in cluster("--context", "here")
        assert cluster("--context", "here", "--password", "guest") == names[0]

        assert run("context", "use", "other").out == "Commands are about the broker of context 'other'\n"
        assert cluster() == "the other one"
        # What is said for one command wins over the context in use.
        assert cluster("--http-url", here.api.url) == names[0]
        listed = run("context", "list", "-q").out.splitlines()
        assert listed == ["name\tin_use\taddress\tusername\thas_password",
                          f"here\tfalse\t{here.api.url}\tguest\tfalse", f"other\ttrue\t{other.data_dir}\t\tfalse"]

        run("context", "add", "here", "--http-url", here.api.url, "--username", "guest", "--password", "guest",
            "--store-password")
        assert '"password": "guest"' in file.read_text() and cluster("--context", "here") == names[0]
        assert "guest" not in run("context", "list").out.replace("\tguest\ttrue", "")
        assert (run("context", "remove", "other").code, run("context", "remove", "other").code) == (0, 65)
        ran = run("context", "add", "x", "--http-url", "http://ann:s3cret@h")
        assert ran.code == 65 and "s3cret" not in ran.err + file.read_text()
        assert "context 'none'" in cluster("--context", "none")
    finally:
        other.stop()


def test_broken_file_of_contexts_keeps_no_explicit_command(ctl, under, tmp_path):
    folder = tmp_path / "config" / "leveret"
    folder.mkdir(parents=True)
    (folder / "contexts.json").write_text("{")
    ran = ctl.run("list_queues", tool="leveretctl")
    assert (ran.code, ran.err) == (78, f"Error: there are no contexts in '{folder / 'contexts.json'}'\n")
    assert ctl.run("list_queues", "--data-dir", under.shared().data_dir, tool="leveretctl").code == 0
    assert ctl.run("help", tool="leveretctl").code == 0


def test_named_node_is_checked_at_an_address_before_anything_is_done(ctl, under):
    node = under.start("nodename = rabbit@a\n")
    login = {"LEVERET_HTTP_URL": node.api.url, "LEVERET_USER": "guest", "LEVERET_PASSWORD": "guest"}

    def run(*words, **more):
        return ctl.run(*words, tool="leveretctl", environment=login | more)

    try:
        for name in ("rabbit@b", "b@localhost", "b", "rabbit@b.example.org"):
            for command in (["stop"], ["shutdown"], ["stop_app"], ["list_queues"], ["delete_user", "guest"], ["purge_queue", "q"]):
                ran = run("-n", name, *command)
                assert (ran.code, ran.out) == (69, ""), (name, command, ran)
                assert ran.err == (f"Error: unable to perform an operation on node '{name}'. The node at {node.api.url} "
                                   "is called rabbit@a\n")
        assert node.alive and node.api.ask("/api/whoami").status == 200
        # An option for the address is no excuse, nor a login that the node refuses.
        assert "is called rabbit@a" in run("--http-url", node.api.url, "-n", "rabbit@b", "stop").err
        assert "refuses the login" in run("-n", "rabbit@b", "stop", LEVERET_PASSWORD="x").err
        for name in ("rabbit@a", "rabbit", "a"):
            ran = run("-n", name, "list_queues", "-q")
            assert (ran.code == 0) == (name != "a"), ran
    finally:
        node.stop()
