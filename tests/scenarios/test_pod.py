"""The pod of the generated Deployment, played without Kubernetes: the swarm starts, commands work, TERM ends it."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.operate.deploy.manifests import DeployedApp
from awoke.settings import RunSettings, Settings
from awoke.testing import EmbeddedCluster
from tests.support.pods import Pod, can_play
from tests.support.registry_stub import unused_port

pytestmark = pytest.mark.skipif(not can_play(), reason="only root may make namespaces")

APP = """
import os
import awoke

app = awoke.App("shop")


@app.on("orders")
def handle(message: awoke.Message[bytes]) -> None:
    print("handled", message.value, "as", os.getuid(), flush=True)
"""
NODES = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's WORKDIR."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "shop.py").write_text(APP)
    (folder / "awoke.toml").write_text(f"nodes = {NODES}\n")
    for each in (folder, *folder.iterdir()):
        each.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", NODES)
        yield cluster


@pytest.fixture
def pod(folder: Path, cluster: EmbeddedCluster) -> Iterator[Pod]:
    settings = Settings(metrics_port=unused_port())
    app = DeployedApp("shop:app", "shop", settings, RunSettings(nodes=NODES))
    with Pod(app, folder, {"AWOKE_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}) as pod:
        for node in range(1, NODES + 1):
            pod.process.wait_for(f"node {node} is up", 120)
        yield pod


def test_a_swarm_starts_answers_and_ends_in_a_pod(pod: Pod, cluster: EmbeddedCluster) -> None:
    port = pod.port
    for host in ("127.0.0.1", "[::1]"):
        with urllib.request.urlopen(f"http://{host}:{port}/live", timeout=60) as answer:
            assert answer.status == 200
    assert pod.exec("sh", "-c", "echo > /srv/x || echo > /x").returncode != 0, "the root can't be written"
    assert "awoke" in pod.exec("cat", "/proc/1/cmdline").stdout
    for place in ("/srv", "/"):
        status = pod.awoke("status", "shop:app", "--json", folder=place)
        assert status.returncode == 0, status.stderr
        assert [each["state"] for each in json.loads(status.stdout)["nodes"]] == ["up"] * NODES
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        producer.produce("orders", b"one").wait(30)
    pod.process.wait_for("handled b'one' as 10001", 60)
    reload = pod.awoke("reload", "shop:app")
    assert reload.returncode == 0, reload.stderr
    os.kill(pod.pid, signal.SIGTERM)
    assert pod.process.wait(60) == 0, pod.process.output


def test_the_command_stop_ends_a_pod(pod: Pod) -> None:
    stopped = pod.awoke("stop", "shop:app")
    # The command runs within the pod, and is killed with it if process 1 ends first.
    assert stopped.returncode in (0, -signal.SIGKILL), stopped.stderr
    assert "the swarm stops" in stopped.stdout
    assert pod.process.wait(60) == 0, pod.process.output
