"""The files that run an app: their times come from its settings, and no probe asks about lag or brokers."""

from __future__ import annotations

import configparser
from typing import Any

import pytest
import yaml

from awoke.operate.deploy.expressions import seconds_of_work
from awoke.operate.deploy.manifests import DeployedApp, Scale, dockerfile, keda, kubernetes, systemd
from awoke.settings import RunSettings, Settings
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_USAGE


def app_of(run: RunSettings | None = None, name: str = "Shop_EU", **settings: Any) -> DeployedApp:
    return DeployedApp("shop:app", name, Settings(**settings), run or RunSettings())


def deployment(app: DeployedApp) -> Any:
    first, _ = yaml.safe_load_all(kubernetes(app, "registry/shop:1", 3))
    return first


def test_a_pod_has_the_time_that_the_app_needs_to_stop() -> None:
    spec = deployment(app_of(shutdown_timeout_s=120.0))["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 130
    swarm = app_of(RunSettings(nodes=2, drain_timeout_s=90.5))
    assert deployment(swarm)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 101


def test_only_a_process_that_does_not_answer_is_killed() -> None:
    (container,) = deployment(app_of())["spec"]["template"]["spec"]["containers"]
    probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"startupProbe": "/live", "livenessProbe": "/live", "readinessProbe": "/ready"}
    live = container["livenessProbe"]
    assert live["periodSeconds"] * live["failureThreshold"] >= 60
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] >= Settings().startup_timeout_s


def test_the_pod_runs_the_app_as_no_root_and_serves_its_metrics() -> None:
    spec = deployment(app_of(metrics_port=9_500))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (container["image"], container["args"]) == ("registry/shop:1", ["shop:app"])
    assert container["ports"] == [{"name": "metrics", "containerPort": 9_500}]
    values = {each["name"]: each["value"] for each in container["env"]}
    assert (values["AWOKE_METRICS_HOST"], values["AWOKE_METRICS_PORT"]) == ("::", "9500")
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_labels_and_selectors_agree() -> None:
    documents = list(yaml.safe_load_all(kubernetes(app_of(), "registry/shop:1")))
    assert [each["kind"] for each in documents] == ["Deployment", "PodDisruptionBudget"]
    labels = documents[0]["spec"]["template"]["metadata"]["labels"]
    assert {tuple(each["spec"]["selector"]["matchLabels"].items()) for each in documents} == {tuple(labels.items())}
    assert documents[0]["metadata"]["name"] == "shop-eu"


@pytest.mark.parametrize(("app", "threshold"), [(app_of(), "240"), (app_of(RunSettings(nodes=2), workers=8), "960")])
def test_pods_are_added_by_seconds_of_work_for_each_worker(app: DeployedApp, threshold: str) -> None:
    found = yaml.safe_load(keda(app, Scale("http://prometheus:9090", replicas_max=12)))
    assert (found["spec"]["minReplicaCount"], found["spec"]["maxReplicaCount"]) == (1, 12)
    assert found["spec"]["scaleTargetRef"]["name"] == app.id
    (trigger,) = found["spec"]["triggers"]
    assert trigger["metadata"]["threshold"] == threshold
    assert trigger["metadata"]["query"] == f"sum({seconds_of_work('30m')}) or vector(0)"


def unit_of(app: DeployedApp) -> Any:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(systemd(app, "/opt/shop"))
    return unit["Service"]


def test_a_unit_gives_time_to_stop_and_does_not_repeat_a_wrong_configuration() -> None:
    service = unit_of(app_of(shutdown_timeout_s=45.0))
    assert service["TimeoutStopSec"] == "55"
    assert service["ExecStart"] == "/opt/shop/.venv/bin/awoke run shop:app"
    assert service["RestartPreventExitStatus"].split() == [str(EXIT_USAGE), str(EXIT_CONFIGURATION)]
    assert service["KillMode"] == "mixed"
    assert "ExecReload" not in service


def test_a_unit_of_a_swarm_reloads() -> None:
    assert unit_of(app_of(RunSettings(nodes=2)))["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_an_image_is_slim_and_its_process_is_no_root_and_gets_the_signals() -> None:
    lines = dockerfile(app_of()).splitlines()
    assert [each for each in lines if each.startswith("FROM")][-1] == "FROM python:3.13-slim"
    assert "USER 10001" in lines
    assert lines[-2:] == ['ENTRYPOINT ["awoke", "run"]', 'CMD ["shop:app"]']
