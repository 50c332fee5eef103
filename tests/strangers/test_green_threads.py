"""gevent and eventlet: a producer works beside them, and an app that can't says so at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stranger_scripts import told_by

PATCHES = {
    "gevent": "import gevent.monkey; gevent.monkey.patch_all()",
    "gevent, but for threads": "import gevent.monkey; gevent.monkey.patch_all(thread=False)",
}


@pytest.mark.parametrize("order", ["before", "after"])
def test_an_app_does_not_start_where_gevent_has_replaced_threads(order: str) -> None:
    patch = PATCHES["gevent"]
    before, after = (patch, "") if order == "before" else ("", patch)
    found = told_by(f"""
    {before}
    import awoke
    {after}

    app = awoke.App("shop", bootstrap_servers="127.0.0.1:1")

    @app.on("orders")
    def handle(message: awoke.Message[bytes]) -> None: ...

    try:
        app.run()
    except awoke.ConfigError as error:
        tell(text=str(error))
    """)
    assert "gevent has replaced threads by green ones" in found["text"]
    assert "patch_all(thread=False)" in found["text"]


def test_an_app_does_not_start_where_eventlet_has_replaced_threads() -> None:
    """eventlet's own module is not installed: importing it alone warns, and Sentry imports it where it is."""
    found = told_by("""
    import sys, types
    patcher = types.ModuleType("eventlet.patcher")
    patcher.is_monkey_patched = lambda name: name == "thread"
    sys.modules["eventlet.patcher"] = patcher

    import awoke

    app = awoke.App("shop", bootstrap_servers="127.0.0.1:1")

    @app.on("orders")
    def handle(message: awoke.Message[bytes]) -> None: ...

    try:
        app.run()
    except awoke.ConfigError as error:
        tell(text=str(error))
    """)
    assert "eventlet has replaced threads by green ones" in found["text"]


def test_an_app_runs_where_gevent_leaves_threads_alone() -> None:
    found = told_by(f"""
    {PATCHES["gevent, but for threads"]}
    import awoke

    app = awoke.App("shop")

    @app.on("orders")
    def handle(message: awoke.Message[bytes]) -> None:
        handled.release()

    run_app(app)
    tell(is_done=True)
    """)
    assert found["is_done"]


def test_a_producer_works_beside_gevent_and_calls_back() -> None:
    found = told_by(f"""
    {PATCHES["gevent"]}
    import awoke
    from awoke.testing import EmbeddedCluster

    called = threading.Event()
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            place = producer.produce("orders", b"1").wait(30)
            producer.produce("orders", b"2").add_done_callback(lambda handle: called.set())
            tell(offset=place.offset, is_called=called.wait(30))
    """)
    assert (found["offset"], found["is_called"]) == (0, True)


@pytest.mark.parametrize("nodes", [[], ["--nodes", "2"]], ids=["one process", "a swarm"])
def test_awoke_run_ends_with_78_and_says_why(tmp_path: Path, nodes: list[str]) -> None:
    (tmp_path / "shop.py").write_text(
        f"{PATCHES['gevent']}\nimport awoke\napp = awoke.App('shop', bootstrap_servers='127.0.0.1:1')\n"
        "@app.on('orders')\ndef handle(message: awoke.Message[bytes]) -> None: ...\n"
    )
    command = [sys.executable, "-m", "awoke", "run", "shop:app", *nodes]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 78, done.stderr
    assert "gevent has replaced threads by green ones" in done.stdout + done.stderr
