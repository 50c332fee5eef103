"""`awoke topics plan` and `apply`, and the check at start of `awoke run`, each as a user meets it.

Goal: the commands make the topics of Kafka, or of a broker in memory, so that the app starts without a word.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process

APP = "tests.scenarios.declared_app:app"


def says(*words: str, env: dict[str, str], code: int = 0) -> str:
    """Runs a command of `awoke` and returns its output; it ends with this exit code."""
    with Process(*words, env=env) as process:
        assert process.wait(60) == code, process.output
        return process.output


def test_the_topics_of_kafka_become_as_they_are_declared(real_cluster: RealCluster) -> None:
    orders, audit = unique("orders"), unique("audit")
    env = {"AWOKE_BOOTSTRAP_SERVERS": real_cluster.bootstrap_servers, "ORDERS": orders, "AUDIT": audit}
    assert "awoke topics apply MODULE:APP" in says("run", APP, env=env, code=78)
    assert "awoke topics apply makes 2 changes" in says("topics", "plan", APP, env=env, code=1)
    assert f"topic {orders} created: 3 partitions, 1 replica" in says("topics", "apply", APP, "--yes", env=env)
    assert says("topics", "plan", APP, env=env) == "all topics are there, as declared"

    real_cluster.admin.alter_configs(orders, {"cleanup.policy": "delete"})
    env["PARTITIONS"] = "5"
    planned = says("topics", "plan", APP, env=env, code=1)
    assert re.search(rf"{orders} +partitions +3 +5 +add 2\n", planned)
    assert re.search(rf"{orders} +cleanup.policy +delete +compact +set it\n", planned)
    refused = says("run", APP, env={**env, "AWOKE_TOPICS_CHECK": "error"}, code=78)
    assert "partitions is 3, and 5 is declared; " in refused
    with Process("run", APP, env=env) as app:
        app.wait_for("app.started")
        assert f"topic.differs topic='{orders}' option='partitions' found='3' declared='5'" in app.output
        app.signal(signal.SIGTERM)
        assert app.wait() == 0

    assert says("topics", "apply", APP, "--yes", env=env).count(f"topic {orders}: ") == 2
    with Process("run", APP, env={**env, "AWOKE_TOPICS_CHECK": "error"}) as app:
        app.wait_for("app.started")
        assert "topic.differs" not in app.output
        app.signal(signal.SIGTERM)
        assert app.wait() == 0


def test_a_broker_in_memory_gets_missing_topics(tmp_path: Path) -> None:
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with Process("broker", "audit", "--partitions", "1", env=env) as broker:
        broker.wait_for("export ")
        found = re.search(r"AWOKE_BOOTSTRAP_SERVERS=(\S+)", broker.output)
        assert found is not None
        env["AWOKE_BOOTSTRAP_SERVERS"] = found[1]
        applied = says("topics", "apply", APP, "--yes", env=env)
        assert "topic orders created: 3 partitions" in applied
        with awoke.Admin(found[1]) as admin:
            assert {each.name: len(each.partitions) for each in admin.topics()} == {"audit": 2, "orders": 3}
        assert "all topics are there, as declared" in says("topics", "plan", APP, env=env)
        with Process("run", APP, env={**env, "AWOKE_TOPICS_CHECK": "error"}) as app:
            app.wait_for("app.started")
            app.signal(signal.SIGTERM)
            assert app.wait() == 0
        broker.signal(signal.SIGTERM)
        assert broker.wait() == 0, broker.output
