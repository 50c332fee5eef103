"""Sentry: errors that are still queued at the end of a process are sent."""

from __future__ import annotations

from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.three_modes import MESSAGES, in_three_modes, stop_all

APP = """
import logging, threading
import sentry_sdk
from sentry_sdk.transport import HttpTransport


class ToNotes(HttpTransport):  # With its thread and its queue.
    def _send_envelope(self, envelope):
        threading.Event().wait(0.1)  # The server takes its time: most are queued when the process ends.
        for item in envelope.items:
            if item.headers["type"] == "event":
                event = item.payload.json
                values = event.get("exception", {}).get("values", [])
                note("event", text=values[-1]["value"] if values else event["logentry"]["message"])


sentry_sdk.init("http://key@127.0.0.1:9/1", transport=ToNotes, auto_enabling_integrations=False, shutdown_timeout=5)
logger = logging.getLogger("shop")


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    number = int(message.value)
    try:
        raise ValueError(f"wrong {number}")
    except ValueError as error:
        sentry_sdk.capture_exception(error)
    note("handled", value=number)


@app.on_shutdown
def say() -> None:
    logger.error("the last words")  # Queued in the last moment.
"""


def test_each_error_is_sent(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        texts = [each["text"] for each in run.notes("event")]
        assert sorted(each for each in texts if each.startswith("wrong")) == [f"wrong {n}" for n in range(MESSAGES)]
        processes = {each["pid"] for each in run.notes("handled")}
        assert texts.count("the last words") == max(2 if run.mode == "swarm" else 1, len(processes)), run.mode
        assert "can't share" not in run.process.output
