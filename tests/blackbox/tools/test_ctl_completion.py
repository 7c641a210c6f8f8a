"""leveretctl completion: the scripts for bash, zsh and fish complete commands, options and names of the node."""

import os
import pty
import re
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from patience import PATIENCE_S, Patience
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

#: What a function of bash's completion offers for a line.
BASH = """source <(leveretctl completion bash)
COMP_LINE=$1; COMP_POINT=${#1}; _leveretctl_complete 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def ctl(under, by_broker, pytestconfig, tmp_path):
    """The tools, the other programs beside them, and a broker."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("the scripts are Leveret's")
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    binary = Path(pytestconfig.getoption("--leveretctl-bin")).resolve()
    if (binary.parent / "leveret-perf").exists():
        (tmp_path / "leveret-perf").symlink_to(binary.parent / "leveret-perf")
    return ctl


def offered(ctl, shell, line):
    """The words that a shell offers at the end of a line."""
    if shell == "bash":
        command = ["bash", "-c", BASH, "bash", line]
    else:
        command = ["fish", "--no-config", "-c", f"leveretctl completion fish | source; complete -C {quoted(line)}"]
    ran = subprocess.run(command, env=ctl.environment | {"HOME": str(ctl.folder)}, cwd=ctl.folder, capture_output=True,
                         text=True, timeout=PATIENCE_S, check=True)
    return [word.split("\t")[0] for word in ran.stdout.splitlines() if word]


def quoted(line):
    return "'" + line.replace("\\", "\\\\").replace("'", "\\'") + "'"


def needs(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shell_completes_commands_options_and_names(ctl, ch, prefix, shell):
    needs(shell)
    q = ch.queue(name="orders in")
    ch.queue(name="other")
    blank = "\\ " if shell == "bash" else " "
    for line, expected in [
        ("leveretctl list_queu", ["list_queues"]),
        ("rabbitmqctl dlq can", ["cancel"]),
        ("leveretctl list_queues messages_unacknowledged_", ["messages_unacknowledged_ram"]),
        ("leveretctl delete_queue --if-e", ["--if-empty"]),
        ("leveretctl list_queues --formatter pre", ["pretty_table"]),
        (f"leveretctl purge_queue {prefix}orders", [q.replace(" ", blank)]),
        ("rabbitmqctl set_permissions gues", ["guest"]),
        ("leveretctl help set_polic", ["set_policy"]),
        ("rabbitmq-diagnostics memory_br", ["memory_breakdown"]),
        ("leveret-perf thr", ["throughput"]),
        ("leveretctl nonsense ", []),
    ]:
        if line.startswith("leveret-perf") and not (ctl.folder / "leveret-perf").exists():
            continue
        assert offered(ctl, shell, line) == expected, line


def test_bash_completes_parts_of_a_word_and_quotes(ctl, ch, prefix):
    needs("bash")
    ch.queue(name="orders in")
    # bash has set aside what stands before the sign.
    assert "/" in offered(ctl, "bash", "leveretctl list_queues --vhost=")
    assert offered(ctl, "bash", "leveretctl dlq redrive q --to que") == ["queue:"]
    assert offered(ctl, "bash", f"leveretctl purge_queue '{prefix}orders") == [f"{prefix}orders in"]


def test_names_of_a_node_that_is_away_are_no_error(ctl):
    needs("bash")
    assert offered(ctl, "bash", "leveretctl --http-url http://127.0.0.1:1 purge_queue ") == []


def test_zsh_completes_commands_and_names(ctl, ch, prefix):
    needs("zsh")
    q = ch.queue(name="orders in")
    start = "PS1='READY> '; autoload -U compinit; compinit -u -D; source <(leveretctl completion zsh)\n"
    with Terminal(ctl, ["zsh", "-f", "-i"]) as zsh:
        zsh.type(start, until=r"READY> $")
        zsh.type("leveretctl list_queu\t", until=r"list_queues $")
        # ^U empties the line; ^C would be lost on a shell that is not back from its completion yet.
        zsh.type(f"\x15leveretctl purge_queue {prefix}orders\t", until=re.escape(q.replace(" ", "\\ ")) + " $")


class Terminal:
    """An interactive shell."""

    def __init__(self, ctl, command):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(ctl.folder)
            os.execvpe(command[0], command, ctl.environment | {"TERM": "dumb", "COLUMNS": "200", "HOME": str(ctl.folder)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.terminal)
        os.waitpid(self.child, 0)

    def type(self, keys, until):
        """Press keys, and wait until the shell shows a pattern behind its controls."""
        os.write(self.terminal, keys.encode())
        shown, patience = "", Patience()
        while not re.search(until, re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", shown)):
            assert not patience.is_over(), f"{keys!r} showed {shown!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                shown += os.read(self.terminal, 65536).decode(errors="replace")


def test_wrong_shell_is_refused(ctl):
    ran = ctl.run("completion", "csh")
    assert ran.code == 64 and "the shell must be one of bash, zsh, fish" in ran.err
