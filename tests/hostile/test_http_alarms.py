"""What HTTP tells while publishers are blocked, and how safe a message is."""

import re
import time

import pytest

from brokers import Leveret
from http_client import Api

pytestmark = pytest.mark.leveret_only("needs a broker process of its own")

ALARM_TIMEOUT_S = 60.0


@pytest.mark.parametrize("config, resources", [
    ("vm_memory_high_watermark.absolute = 1MB\n", ["memory"]),
    ("disk_free_limit.absolute = 9000000GB\n", ["disk"]),
    ("vm_memory_high_watermark.absolute = 1MB\ndisk_free_limit.absolute = 9000000GB\n", ["memory", "disk"]),
], ids=["memory", "disk", "both"])
def test_an_alarm_fails_the_health_checks(leveret_bin, config, resources):
    broker = Leveret(leveret_bin, config=config)
    try:
        deadline = time.monotonic() + ALARM_TIMEOUT_S
        while "alarm on" not in broker.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        api = Api(broker)
        node = api.do("GET", "/api/overview")["node"]
        for check, where in (("alarms", "in the cluster"), ("local-alarms", "on the node")):
            found = api.ask("GET", "/api/health/checks/" + check)
            assert (found.status, found.json) == (503, {
                "status": "failed", "reason": "There are alarms in effect " + where,
                "alarms": [{"node": node, "resource": resource} for resource in resources],
            })
        [shown] = api.do("GET", "/api/nodes")
        assert [shown["mem_alarm"], shown["disk_free_alarm"]] == ["memory" in resources, "disk" in resources]
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_the_metrics_say_when_a_message_is_safe_and_ask_for_no_login(leveret_bin, durability):
    broker = Leveret(leveret_bin, config=f"durability = {durability}\n")
    try:
        metrics = Api(broker).ask("GET", "/metrics", user=None).text.decode()
        assert re.search(rf'^rabbitmq_build_info{{.*,durability="{durability}"}} 1$', metrics, re.M)
    finally:
        broker.stop()
