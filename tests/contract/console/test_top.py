"""`awoke top` in a terminal, with an app whose messages fail: what is typed has its effect in the app."""

from __future__ import annotations

import os
import subprocess
import sys

import awoke
from awoke.console.process_commands import commands_of
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.python_syntax import REPOSITORY
from tests.support.terminals import terminal
from tests.support.waiting import Collected, wait_until

HOSTILE = b"\x1b]0;pwned\x07\x1b[2J\xff\xfe\x9b31m" + b"k" * 900_000
WAIT_S = 60.0


def test_a_failing_message_is_skipped_from_the_terminal_and_the_audit_says_so(mock_cluster: Cluster) -> None:
    servers, name, topic = mock_cluster.bootstrap_servers, unique("shop"), unique("orders")
    mock_cluster.create_topic(topic)
    app = awoke.App(name, bootstrap_servers=servers, console=True, console_commands=True)
    skipped = Collected[object]()
    app.events.subscribe("message.skipped", skipped.add)

    @app.on(topic, start=0, retry=awoke.Retry(backoff_s=(600.0, 600.0)))
    def handle(message: awoke.Message[bytes]) -> None:
        raise ValueError(f"no good: {(message.raw_key or b'').decode('latin-1')[:1_000]}")

    with running(app) as runner, terminal() as of:
        assert commands_of(runner).wait_open(WAIT_S)
        app.producer.produce(topic, b"bad", key=HOSTILE, partition=0).wait(WAIT_S)
        wait_until(lambda: app.blocking(topic, 0) == [0], "the message fails")
        command = [sys.executable, "-m", "awoke", "top", name, "--bootstrap-servers", servers, "--every-s", "0.5"]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
        with subprocess.Popen(command, stdin=of.file, stdout=of.file, env=environment, cwd=REPOSITORY) as top:
            try:
                of.wait_shown("failing message", "q quit")
                of.type("4")
                of.wait_shown("no good", "again in")
                of.type("x")
                of.wait_shown("skip: reason")
                of.type("it is bad\r")
                of.wait_shown("offset 0 is skipped")
                skipped.wait_for(1)
                of.type("5")
                of.wait_shown("ValueError", "q quit")
                of.type("6")
                of.wait_shown("it is bad", "done")
                of.type("q")
                assert top.wait(WAIT_S) == 0
            finally:
                top.kill()
    for harmful in (b"\x1b]", b"\x07", b"\xc2\x9b", b"\x9b31m"):
        assert harmful not in of.drawn
