"""The files for compose and Kubernetes: valid by their schemas, and in agreement with each other and with the image."""

import copy
import pathlib
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml

from conftest import only, run
from container import Image

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
COMPOSE = PACKAGING / "compose.yaml"
COMPOSE_OF_THREE = PACKAGING / "compose-three-nodes.yaml"
KUBERNETES = PACKAGING / "kubernetes"
# One node, and three of a cluster.
FOLDERS = [KUBERNETES, KUBERNETES / "three-nodes"]

# What the schemas of Kubernetes do not contain.
ELSEWHERE = {"Kustomization", "ServiceMonitor"}


def documents(folder):
    paths = sorted(folder.glob("*.yaml"))
    return [(f"{folder.name}/{path.name}", one) for path in paths for one in yaml.safe_load_all(path.read_text())]


class Manifests:
    """The objects of a folder, by kind and name."""

    def __init__(self, folder):
        self.folder = folder
        self.all = {(one["kind"], one.get("metadata", {}).get("name")): one for _, one in documents(folder)}
        self.set = self.all["StatefulSet", "leveret"]["spec"]
        self.pod = self.set["template"]
        (self.broker,) = self.pod["spec"]["containers"]
        self.variables = {one["name"]: one for one in self.broker["env"]}
        self.configuration = self.all["ConfigMap", "leveret"]["data"]["rabbitmq.conf"]

    def __getitem__(self, kind_and_name):
        return self.all[kind_and_name]


ONE, THREE = map(Manifests, FOLDERS)
EACH = pytest.mark.parametrize("manifests", [ONE, THREE], ids=["one", "three"])
NODE = re.compile(r"^cluster_formation\.classic_config\.nodes\.\d = (\S+)$", re.M)


@pytest.fixture(scope="module")
def image(packages):
    return Image(only(packages / "one", "*-image-*.tar"))


def check_kubernetes(document):
    kubernetes_validate.validate(document, "1.32", strict=True)


def check_compose(path):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


OF_KUBERNETES = [pair for folder in FOLDERS for pair in documents(folder) if pair[1]["kind"] not in ELSEWHERE]


@pytest.mark.parametrize("name, document", OF_KUBERNETES)
def test_manifest_is_valid(name, document):
    check_kubernetes(document)


def test_validator_refuses_what_is_wrong():
    wrong = copy.deepcopy(ONE["StatefulSet", "leveret"])
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["perodSeconds"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        check_kubernetes(wrong)


@pytest.mark.parametrize("compose", [COMPOSE, COMPOSE_OF_THREE], ids=["one", "three"])
def test_compose_file_is_valid(compose, tmp_path):
    checked = check_compose(compose)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(compose.read_text().replace("stop_grace_period", "stop_grace_time"))
    assert check_compose(wrong).returncode == 1


@EACH
def test_manifests_name_each_other(manifests):
    labels = manifests.pod["metadata"]["labels"]
    assert manifests.set["selector"]["matchLabels"] == labels
    assert manifests["PodDisruptionBudget", "leveret"]["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"]: port["containerPort"] for port in manifests.broker["ports"]}
    services = [one for (kind, _), one in manifests.all.items() if kind == "Service"]
    for service in services:
        assert service["spec"]["selector"] == labels
        assert all(ports[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])
    assert manifests["Service", manifests.set["serviceName"]]["spec"]["clusterIP"] == "None"
    asked = {one["valueFrom"]["secretKeyRef"]["key"] for one in manifests.broker["env"]
             if "secretKeyRef" in one.get("valueFrom", {})}
    assert asked == set(manifests["Secret", "leveret"]["stringData"])
    files = {path.name for path in manifests.folder.glob("*.yaml")}
    listed = set(manifests["Kustomization", None]["resources"])
    assert files - listed == {"kustomization.yaml", "secret.example.yaml", "servicemonitor.yaml"} & files


def setting(configuration, key):
    (value,) = re.findall(rf"^{re.escape(key)} = (\S+)$", configuration, re.M)
    return value


def test_three_pods_have_the_names_that_dns_has_for_the_addresses_of_the_service():
    service, variables = THREE.set["serviceName"], THREE.variables
    assert setting(THREE.configuration, "cluster_formation.peer_discovery_backend") == "dns"
    assert setting(THREE.configuration, "cluster_formation.dns.hostname") == service
    assert setting(THREE.configuration, "cluster_formation.target_cluster_size_hint") == str(THREE.set["replicas"])
    for name, field in (("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace")):
        assert variables[name]["valueFrom"]["fieldRef"]["fieldPath"] == field
        # A variable is known to those below it.
        assert list(variables).index(name) < list(variables).index("RABBITMQ_NODENAME")
    assert variables["RABBITMQ_NODENAME"]["value"] == f"leveret@$(POD_NAME).{service}.$(POD_NAMESPACE).svc.cluster.local"
    # Nodes meet before they are ready, and in any order.
    assert THREE["Service", service]["spec"]["publishNotReadyAddresses"]
    assert THREE.set["podManagementPolicy"] == "Parallel"


def test_a_majority_of_three_pods_stays():
    budget = THREE["PodDisruptionBudget", "leveret"]["spec"]
    assert budget["maxUnavailable"] == 1 and budget["unhealthyPodEvictionPolicy"] == "IfHealthyBudget"
    (apart,) = THREE.pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert apart["labelSelector"]["matchLabels"] == THREE.pod["metadata"]["labels"]
    command = THREE.broker["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:-1] == ["rabbitmq-upgrade", "-q", "await_online_quorum_plus_one", "--timeout"]
    # The wait leaves time for the stop.
    assert int(command[-1]) + 60 <= THREE.pod["spec"]["terminationGracePeriodSeconds"]


def test_links_come_from_other_pods_only():
    rules = THREE["NetworkPolicy", "leveret"]["spec"]
    assert rules["podSelector"]["matchLabels"] == THREE.pod["metadata"]["labels"]
    sources = {port["port"]: rule.get("from") for rule in rules["ingress"] for port in rule["ports"]}
    assert set(sources) == {port["name"] for port in THREE.broker["ports"]}
    assert sources.pop("links") == [{"podSelector": rules["podSelector"]}] and set(sources.values()) == {None}


def test_three_services_of_compose_have_the_names_that_the_configuration_lists():
    compose = yaml.safe_load(COMPOSE_OF_THREE.read_text())
    services = compose["services"]
    names = NODE.findall(compose["configs"]["nodes"]["content"])
    assert names == [f"leveret@{name}" for name in services] == [
        service["environment"]["RABBITMQ_NODENAME"] for service in services.values()]
    volumes = [service["volumes"][0].split(":")[0] for service in services.values()]
    assert volumes == list(compose["volumes"])
    published = [port for service in services.values() for port in service["ports"]]
    assert len({port.rsplit(":", 1)[0] for port in published}) == len(published) == 6
    of_one = yaml.safe_load(COMPOSE.read_text())["services"]["leveret"]
    own = {"configs", "environment", "ports", "volumes"}
    for service in services.values():
        assert {key: value for key, value in service.items() if key not in own} == {
            key: value for key, value in of_one.items() if key not in own}
        assert set(of_one["environment"]) < set(service["environment"])


@EACH
def test_monitor_reads_one_service_at_the_port_of_metrics(manifests):
    monitor = ONE["ServiceMonitor", "leveret"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = [one for (kind, _), one in manifests.all.items() if kind == "Service" and wanted <= one["metadata"]["labels"].items()]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]}[endpoint["port"]] == 15692


@EACH
def test_manifests_agree_with_the_image(manifests, image):
    (tag,) = image.of_docker[0]["RepoTags"]
    compose = yaml.safe_load(COMPOSE.read_text())["services"]["leveret"]
    assert manifests.broker["image"] == compose["image"] == tag
    settings = image.config["config"]
    user = manifests.pod["spec"]["securityContext"]
    assert f"{user['runAsUser']}:{user['runAsGroup']}" == settings["User"]
    # Links are not for clients.
    ports = {f"{port['containerPort']}/tcp" for port in manifests.broker["ports"] if port["name"] != "links"}
    assert ports <= set(settings["ExposedPorts"])
    assert {mount["mountPath"] for mount in manifests.broker["volumeMounts"]} >= set(settings["Volumes"])
    assert compose["volumes"] == [f"data:{place}" for place in settings["Volumes"]]
    assert compose["healthcheck"]["test"] == settings["Healthcheck"]["Test"]


@EACH
def test_configuration_of_kubernetes_is_valid(manifests, unpacked, tmp_path):
    for name, text in manifests["ConfigMap", "leveret"]["data"].items():
        (tmp_path / name).write_text(text)
    name = manifests.variables.get("RABBITMQ_NODENAME", {}).get("value", "")
    name = name.replace("$(POD_NAME)", "leveret-2").replace("$(POD_NAMESPACE)", "shop")
    values = {
        "RABBITMQ_NODENAME": name,
        "LEVERET_CLUSTER_SECRET": manifests["Secret", "leveret"]["stringData"].get("cluster-secret", ""),
    }
    variables = [f"{name}={value}" for name, value in values.items() if name in manifests.variables]
    leveret = unpacked / "usr/bin/leveret"
    printed = run("env", *variables, leveret, "--config", tmp_path / "rabbitmq.conf", "--print-config")
    assert "log.console.formatter = json " in printed
    assert ("cluster_formation.peer_discovery_backend = dns " in printed) == bool(variables)
