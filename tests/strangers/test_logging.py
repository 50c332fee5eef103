"""structlog and a logging configuration of the app's own: the lines are the same in each mode."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.clusters import MockCluster
from tests.support.three_modes import MESSAGES, in_three_modes, stop_all

APP = """
import logging, logging.config
import structlog
from awoke import logs

logging.config.dictConfig({
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"own": {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        "foreign_pre_chain": [structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name],
    }},
    "handlers": {"file": {"class": "logging.FileHandler", "filename": "log", "formatter": "own"}},
    "root": {"level": "INFO", "handlers": ["file"]},
})
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        logs.add_context,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
)
logger = structlog.get_logger("shop")
plain = logging.getLogger("plain")


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    number = int(message.value)
    logger.info("handled it", number=number)
    plain.info("number %d", number)
    plain.debug("never seen")
    note("handled", value=number)
"""


def test_the_app_keeps_its_logging_configuration(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        lines = [json.loads(line) for line in (run.folder / "log").read_text().splitlines()]
        of_app = [line for line in lines if line.get("logger") == "plain" or line["event"] == "handled it"]
        numbers = {line["number"]: line for line in of_app if "number" in line}
        assert sorted(numbers) == list(range(MESSAGES))
        assert all((line["topic"], line["level"]) == (run.topic, "info") for line in numbers.values())
        texts = sorted(line["event"] for line in of_app if "number" not in line)
        assert texts == [f"number {number}" for number in range(MESSAGES)]
        started = [line for line in lines if line["event"].startswith("app.started")]
        assert len(started) == (2 if run.mode == "swarm" else 1), "awoke's own lines go there, too"
        assert "app.started" not in run.process.output
