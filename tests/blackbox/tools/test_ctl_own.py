"""leveretctl beside rabbitmqctl: words that are no command, quiet commands, the files and the memory of the node."""

import json
import re

import pytest

from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]


@pytest.fixture
def ctl(under, by_broker, pytestconfig, tmp_path):
    """The tools, and the shared broker."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("Leveret's own texts")
    return tools(under.shared(), pytestconfig, tmp_path)


@pytest.mark.parametrize(("words", "reason"), [
    (["force_boot"], "a node starts without a majority, and serves when there is one; force_standalone_khepri_boot lets it go on without"),
    (["change_cluster_node_type", "ram"], "all nodes of a cluster are alike"),
    (["sync_queue", "q"], "a queue has no mirrors"),
    (["exec", "1+1"], "there is no Erlang"),
    (["encode", "value", "s3cret"], "there is no Erlang, and a configuration file has no encrypted values"),
])
def test_command_that_cannot_be_says_so_in_one_line(ctl, words, reason):
    for tool in ("rabbitmqctl", "rabbitmq-diagnostics"):
        ran = ctl.run(*words, tool=tool)
        assert (ran.out, ran.err, ran.code) == ("", f"Error: '{words[0]}' is not available: {reason}\n", 69)
    assert ctl.run("help", words[0]).err == f"Error: '{words[0]}' is not available: {reason}\n"


def test_commands_change_protected_users(ctl):
    ctl.do("add_user", "guarded", "x", "--tags", "protected")
    ctl.do("change_password", "guarded", "y")
    ctl.do("set_user_tags", "guarded", "a", "protected")
    assert "guarded\t[a, protected]" in ctl.run("list_users").out
    ctl.do("delete_user", "guarded")
    assert "guarded" not in ctl.run("list_users").out


CHECK = "rabbit_access_control:check_user_pass_login"


def test_eval_answers_what_puppet_and_salt_ask_and_nothing_else(ctl, api, prefix, made):
    name = made.user(password="s\"3", tags="management,a-b")
    term, secret = (text.replace('"', '\\"') for text in (name, 's"3'))
    assert ctl.do("eval", "rabbit_misc:version().") == ['"4.3.6"']
    [right] = ctl.do("-q", "eval", f'{CHECK}(list_to_binary("{term}"), list_to_binary("{secret}")).')
    assert right == f"{{ok,{{user,<<\"{name}\">>,[management,'a-b'],[{{rabbit_auth_backend_internal,none}}]}}}}"
    refused = f'{{refused,<<"{name}">>,"user \'~ts\' - invalid credentials",[<<"{name}">>]}}'
    assert ctl.do("eval", f'{CHECK}(<<"{term}">>, <<"wrong">>).') == [refused]
    [right] = ctl.do("eval", f'rabbit_auth_backend_internal:user_login_authentication(<<"{term}">>, [{{password, <<"{secret}">>}}]).')
    assert right.startswith(f'{{ok,{{auth_user,<<"{name}">>,')
    for other in ("1+1.", "rabbit_misc:version()", f'{CHECK}(<<"{term}">>).', f'{CHECK}(<<"a">>, <<"s3cret">>). halt().'):
        ran = ctl.run("eval", other)
        assert (ran.out, ran.err, ran.code) == ("", "Error: 'eval' is not available: there is no Erlang\n", 69)


def test_missing_queue_is_named(ctl):
    for words in (["dlq", "show", "no.such"], ["dlq", "show", "no.such", "--by-reason"], ["explain_queue", "no.such"],
                  ["dlq", "redrive", "no.such"]):
        ran = ctl.run(*words)
        assert (ran.err, ran.code) == ("Queue 'no.such' does not exist in vhost '/'\n", 65)
    # The deaths of a queue that is gone are kept, so that its name is no error.
    ran = ctl.run("dlq", "history", "--queue", "no.such")
    assert (ran.err, ran.code) == ("Queue 'no.such' does not exist in vhost '/'\n", 0)


def test_settings_that_somebody_has_set_come_first(ctl, ch):
    queue = ch.queue(name="limited", max_length=5)
    header, first, *_, last = ctl.do("explain_queue", queue, "-q")
    assert (header.split("\t")[0], first.split("\t")[:3]) == ("key", ["max-length", "5", "argument"])
    assert re.fullmatch(r"\d+ of \d+ settings are at their defaults", last)


def test_family_lists_its_commands(ctl):
    alone, wrong, helped = ctl.run("dlq"), ctl.run("dlq", "nope"), ctl.run("help", "dlq")
    assert (alone.out, alone.code, helped.err, helped.code) == ("", 64, "", 0)
    assert {"cancel", "ls", "redrive", "show"} <= set(re.findall(r"^   dlq (\w+)", alone.err, re.M))
    assert helped.out == alone.err and wrong.err == f"Command 'dlq nope' not found.\n{alone.err}"


def test_wrong_command_gets_three_lines(ctl):
    for words in (["list_queuess"], ["help", "list_queuess"]):
        ran = ctl.run(*words, tool="leveretctl")
        assert (ran.out, ran.code) == ("", 64)
        assert ran.err.splitlines() == ["Command 'list_queuess' not found.", "Did you mean 'list_queues'?",
                                        "'leveretctl help' lists all commands, 'leveretctl examples' the commonest tasks."]


def test_quiet_add_user_prints_nothing(ctl, api, prefix):
    try:
        for quiet in ("-q", "-s"):
            assert ctl.run(quiet, "add_user", prefix + quiet, "secret").out == ""
        assert "Done." in ctl.run("add_user", prefix + "said", "secret").out
    finally:
        for name in ("-q", "-s", "said"):
            api.request("DELETE", f"/api/users/{prefix}{name}")


def test_pretty_table_has_lists_without_brackets(ctl):
    text = ctl.run("list_users", "--formatter", "pretty_table", environment={"LC_ALL": "C.UTF-8"}).out
    # The columns are as wide as their longest value, and other tests have users beside.
    assert re.search("\u2502 guest *\u2502 administrator *\u2502", text)
    text = ctl.run("list_exchanges", "name", "arguments", "--formatter", "pretty_table").out
    assert "amq.direct" in text and "[]" not in text


def test_status_has_the_files_versions_and_memory_of_the_node(under, by_broker, pytestconfig, tmp_path):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("Leveret's own texts")
    log = tmp_path / "node.log"
    broker = under.start(f"log.file = {log}\n")
    try:
        ctl = tools(broker, pytestconfig, tmp_path)
        text = ctl.run("status").out
        assert re.search(r"^RabbitMQ version: 4\..*\nLeveret version: \d+\.\d+\.\d+\nNode name: ", text, re.M)
        assert f"\nConfig files\n\n * {broker.directory / 'leveret.conf'}\n\n" in text
        assert f"\nLog file(s)\n\n * {log}\n" in text
        node = broker.api.do("GET", "/api/nodes")[0]
        assert (node["config_files"], node["log_files"][0]) == ([str(broker.directory / "leveret.conf")], str(log))

        parts = re.findall(r"^(\w+): [\d.]+ gb \(([\d.]+) %\)$", text, re.M)
        assert {"code", "other_system"} <= dict(parts).keys() and 99 < sum(float(share) for _, share in parts) < 101
        broken_down = json.loads(ctl.run("memory_breakdown", "--formatter", "json", tool="rabbitmq-diagnostics").out)
        assert broken_down["code"]["bytes"] > 0
        shares = [float(share) for share in re.findall(r"\(([\d.]+)%\)", ctl.run("memory_breakdown",
                                                                                tool="rabbitmq-diagnostics").out)]
        assert shares == sorted(shares, reverse=True)
        memory = broker.api.do("GET", f"/api/nodes/{node['name']}/memory")["memory"]
        assert memory["code"] > 0
    finally:
        broker.stop()


def test_delays_are_listed_with_their_times(ctl, ch, prefix):
    work = ch.queue(name="work", delayed_retry_type="all", delayed_retry_schedule="1s,5s")
    wait = ch.queue(name="wait", message_ttl=90_000, dead_letter_exchange="", dead_letter_routing_key=work)
    later = ch.exchange("x-delayed-message", "later", arguments={"x-delayed-type": "fanout"})
    ch.bind(work, later)
    ch.publish(wait, "m")
    ch.publish("", "m", exchange=later, headers={"x-delay": 3_600_000})
    header, *rows = ctl.do("dlq", "delays", "-q", "-p", "/")
    assert header.split("\t") == ["kind", "from", "to", "delay", "messages", "next"]
    found = {tuple(row.split("\t")[:5]) for row in rows if prefix in row}
    assert {("ttl", wait, work, "90s", "1"), ("retry", work, work, "1s,5s", "0"),
            ("exchange", later, work, "", "1")} <= found, found
    assert ctl.run("dlq", "delays", "-p", prefix + "none").code == 65


def test_add_user_gives_tags_and_permissions_at_once(ctl, api, prefix, made):
    vhost, name = made.vhost(), prefix + "app"
    try:
        ctl.do("add_user", name, "secret", "--tags", "monitoring,policymaker", "--all-permissions", "-p", vhost)
        assert f"{name}\t[monitoring, policymaker]" in ctl.do("list_users")
        assert f"{name}\t.*\t.*\t.*" in ctl.do("list_permissions", "-p", vhost)
        assert name not in "\n".join(ctl.do("list_permissions"))
    finally:
        api.request("DELETE", f"/api/users/{name}")


def test_add_user_for_a_missing_vhost_adds_none(ctl, prefix):
    ran = ctl.run("add_user", prefix + "app", "secret", "--all-permissions", "-p", prefix + "missing")
    assert ran.code == 65 and f"{prefix}missing" in ran.err
    assert prefix + "app" not in "\n".join(ctl.do("list_users"))
