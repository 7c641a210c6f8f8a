"""The files for compose and Kubernetes: valid by their schemas, and in agreement with each other and with the image."""

import copy
import pathlib
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml

from conftest import only, run
from container import Image

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
COMPOSE = PACKAGING / "compose.yaml"
KUBERNETES = PACKAGING / "kubernetes"

# What the schemas of Kubernetes do not contain.
ELSEWHERE = {"Kustomization", "ServiceMonitor"}


def documents():
    return [(path.name, one) for path in sorted(KUBERNETES.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


ALL = {(one["kind"], one.get("metadata", {}).get("name")): one for _, one in documents()}
POD = ALL["StatefulSet", "leveret"]["spec"]["template"]
(BROKER,) = POD["spec"]["containers"]


@pytest.fixture(scope="module")
def image(packages):
    return Image(only(packages / "one", "*-image-*.tar"))


def check_kubernetes(document):
    kubernetes_validate.validate(document, "1.32", strict=True)


def check_compose(path):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("name, document", [pair for pair in documents() if pair[1]["kind"] not in ELSEWHERE])
def test_manifest_is_valid(name, document):
    check_kubernetes(document)


def test_validator_refuses_what_is_wrong():
    wrong = copy.deepcopy(ALL["StatefulSet", "leveret"])
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["perodSeconds"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        check_kubernetes(wrong)


def test_compose_file_is_valid(tmp_path):
    checked = check_compose(COMPOSE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text().replace("stop_grace_period", "stop_grace_time"))
    assert check_compose(wrong).returncode == 1


def test_manifests_name_each_other():
    labels = POD["metadata"]["labels"]
    assert ALL["StatefulSet", "leveret"]["spec"]["selector"]["matchLabels"] == labels
    assert ALL["PodDisruptionBudget", "leveret"]["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"]: port["containerPort"] for port in BROKER["ports"]}
    services = [one for (kind, _), one in ALL.items() if kind == "Service"]
    for service in services:
        assert service["spec"]["selector"] == labels
        assert all(ports[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])
    assert ALL["Service", ALL["StatefulSet", "leveret"]["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"
    secret = ALL["Secret", "leveret"]["stringData"]
    assert all(one["valueFrom"]["secretKeyRef"]["key"] in secret for one in BROKER["env"])
    files = {path.name for path in KUBERNETES.glob("*.yaml")}
    listed = set(ALL["Kustomization", None]["resources"])
    assert files - listed == {"kustomization.yaml", "secret.example.yaml", "servicemonitor.yaml"}


def test_monitor_reads_one_service_at_the_port_of_metrics():
    monitor = ALL["ServiceMonitor", "leveret"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = [one for (kind, _), one in ALL.items() if kind == "Service" and wanted <= one["metadata"]["labels"].items()]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]}[endpoint["port"]] == 15692


def test_manifests_agree_with_the_image(image):
    (tag,) = image.of_docker[0]["RepoTags"]
    compose = yaml.safe_load(COMPOSE.read_text())["services"]["leveret"]
    assert BROKER["image"] == compose["image"] == tag
    settings = image.config["config"]
    user = POD["spec"]["securityContext"]
    assert f"{user['runAsUser']}:{user['runAsGroup']}" == settings["User"]
    assert {f"{port['containerPort']}/tcp" for port in BROKER["ports"]} <= set(settings["ExposedPorts"])
    assert {mount["mountPath"] for mount in BROKER["volumeMounts"]} >= set(settings["Volumes"])
    assert compose["volumes"] == [f"data:{place}" for place in settings["Volumes"]]
    assert compose["healthcheck"]["test"] == settings["Healthcheck"]["Test"]


def test_configuration_of_kubernetes_is_valid(unpacked, tmp_path):
    for name, text in ALL["ConfigMap", "leveret"]["data"].items():
        (tmp_path / name).write_text(text)
    printed = run(unpacked / "usr/bin/leveret", "--config", tmp_path / "rabbitmq.conf", "--print-config")
    assert "log.console.formatter = json " in printed
