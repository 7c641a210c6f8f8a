"""The manifests of three pods, run: the pods find each other, their probes tell the truth, and more of them join."""

import base64
import json
import re
import shutil
import urllib.request

import pytest

import pods
from container import in_network
from test_manifests import PACKAGING, THREE
from pods import NAMESPACE, Pods, eventually

GUIDE = PACKAGING.parent / "docs" / "reference" / "container-image.md"
LIST = re.compile(r"^ +(cluster_formation\.classic_config\.nodes\.\d = \S+)$", re.M)
DISCOVERY = re.compile(r"^cluster_formation\.[^#\n]*\n", re.M)

pytestmark = pytest.mark.skipif(pods.why_not() is not None, reason=str(pods.why_not()))


def of_manifests(unpacked, folder, configuration=THREE.configuration, variables=tuple(THREE.broker["env"])):
    secret = THREE["Secret", "leveret"]["stringData"]
    return Pods(unpacked / "usr/bin", folder, THREE.set["serviceName"], configuration, variables, secret)


def probe(name):
    return THREE.broker[name]["exec"]["command"]


def is_ready(pod):
    return pod.exec(probe("readinessProbe")) == 0


BEFORE_STOP = THREE.broker["lifecycle"]["preStop"]["exec"]["command"]
# The hook with a time that a test can wait for.
BEFORE_STOP_SOON = [*BEFORE_STOP[:-1], "1"]


def test_three_pods_find_each_other_and_five_are_one_cluster(unpacked, tmp_path):
    with of_manifests(unpacked, tmp_path) as here:
        first, second = here.add().start(), here.add().start()
        # Two of three found no cluster, and a pod that waits has not started.
        eventually(lambda: "lists 2 of 3 nodes" in first.log.read_text())
        assert first.exec(probe("startupProbe")) != 0 and not is_ready(first)
        third = here.add().start()
        for pod in (first, second, third):
            eventually(lambda pod=pod: pod.exec(probe("startupProbe")) == 0 and is_ready(pod))
            assert pod.exec(probe("livenessProbe")) == 0
        names = {f"leveret@leveret-{at}.leveret-nodes.{NAMESPACE}.svc.cluster.local" for at in range(5)}
        assert {pod.node for pod in here.all} < names
        # Two more, by the number of replicas alone.
        fourth, fifth = here.add().start(), here.add().start()
        for pod in here.all:
            eventually(lambda pod=pod: pod.running() == names)
        for pod in (fourth, fifth):
            eventually(lambda pod=pod: pod.exec(probe("startupProbe")) == 0)


def test_drained_pod_is_not_ready_and_a_pod_that_is_needed_stays(unpacked, tmp_path):
    with of_manifests(unpacked, tmp_path) as here:
        first, second, third = [here.add().start() for _ in range(3)]
        for pod in here.all:
            eventually(lambda pod=pod: pod.exec(BEFORE_STOP_SOON) == 0)
        assert first.exec(["rabbitmq-upgrade", "-q", "drain"]) == 0
        assert not is_ready(first) and is_ready(second)
        assert first.exec(["rabbitmq-upgrade", "-q", "revive"]) == 0
        eventually(lambda: is_ready(first))
        # A pod goes, and the other two are needed until it is back.
        assert first.stop() == 0
        assert second.exec(BEFORE_STOP_SOON) != 0 and third.exec(BEFORE_STOP_SOON) != 0
        first.start()
        assert second.exec([*BEFORE_STOP[:-1], "50"]) == 0
        # All pods go together: the hook holds none of them for longer than its time.
        codes = [pod.stop() for pod in here.all]
        assert codes == [0, 0, 0]
        for pod in here.all:
            pod.start()
        for pod in here.all:
            eventually(lambda pod=pod: pod.exec(probe("startupProbe")) == 0)


def ask(pod, method, path, body):
    """A request to the management API of a pod, from within."""
    login = f"{pod.environment['RABBITMQ_DEFAULT_USER']}:{pod.environment['RABBITMQ_DEFAULT_PASS']}"
    request = urllib.request.Request(
        f"http://{pod.address}:15672{path}", method=method, data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(login.encode()).decode()})
    in_network(pod.keeper.pid, lambda: urllib.request.urlopen(request, timeout=30).close())


def test_pods_stay_while_the_volume_of_another_one_is_filled(unpacked, tmp_path):
    # Sixteen seconds for what waits.
    rebuilt = '"message":"the replica is rebuilt","vhost":"/"'
    slow = f"{THREE.configuration}raft.shipment_bandwidth = 1048576\n"
    with of_manifests(unpacked, tmp_path, slow) as here:
        first, second, third = [here.add().start() for _ in range(3)]
        eventually(lambda: first.exec(BEFORE_STOP_SOON) == 0)
        ask(first, "PUT", "/api/queues/%2F/orders", {"durable": True})
        message = {"routing_key": "orders", "payload": "x" * 4_000_000, "payload_encoding": "string",
                   "properties": {"delivery_mode": 2}}
        for _ in range(4):
            ask(first, "POST", "/api/exchanges/%2F/amq.default/publish", message)
        assert third.stop() == 0
        shutil.rmtree(third.folder / "data")
        third.start()
        # The pod is ready, as its node serves clients; the others are held back.
        eventually(lambda: third.exec(probe("startupProbe")) == 0 and is_ready(third))
        assert first.exec(BEFORE_STOP_SOON) != 0 and second.exec(BEFORE_STOP_SOON) != 0
        assert rebuilt not in third.log.read_text()
        for pod in (first, second):
            assert pod.exec([*BEFORE_STOP[:-1], "50"]) == 0
        assert rebuilt in third.log.read_text()


def test_pods_meet_by_the_list_of_the_guide(unpacked, tmp_path):
    lines = LIST.findall(GUIDE.read_text())
    assert len(lines) == THREE.set["replicas"]
    configuration = DISCOVERY.sub("", THREE.configuration) + "".join(f"{line}\n" for line in lines)
    (name,) = set(re.findall(r"^ +value: (leveret@\S+)$", GUIDE.read_text(), re.M))
    variables = [one | {"value": name} if one["name"] == "RABBITMQ_NODENAME" else one for one in THREE.broker["env"]]
    with of_manifests(unpacked, tmp_path, configuration, variables) as here:
        for _ in lines:
            here.add().start()
        for pod in here.all:
            eventually(lambda pod=pod: pod.running() == {line.split(" = ")[1] for line in lines})
