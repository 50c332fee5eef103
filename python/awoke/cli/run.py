"""`awoke run module:app`: runs an app until a signal comes."""

from __future__ import annotations

import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from awoke.cli.application import find_app
from awoke.cli.options import BootstrapServers, Kafka, pairs
from awoke.runtime.signals import EXIT_LATE

FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON document for a record: time, level, logger, text, error, and an event's name and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        event = getattr(record, "event", None)
        parts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage() if event is None else event.name,
            **({} if event is None else {name: value for name, value in event.fields.items() if name != "error"}),
            **({} if record.exc_info is None else {"error": self.formatException(record.exc_info)}),
        }
        return msgspec.json.encode(parts, enc_hook=str).decode()


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app, as in shop:app.")],
    workers: Annotated[int | None, typer.Option(help="Threads that run handlers.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics, health and threads there; 0 for a free port.")
    ] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Run on brokers inside the process.")] = False,
    bootstrap_servers: BootstrapServers = None,
    kafka: Kafka = None,
    log_format: Annotated[str, typer.Option(help="text, or json: one document a line.")] = "text",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
) -> None:
    """Run an app. SIGINT and SIGTERM finish running jobs, commit and end with 0; a second signal hurries."""
    level = logging.getLevelNamesMapping().get(log_level.upper())
    if level is None:
        raise typer.BadParameter(f"{log_level!r} is no level: debug, info, warning or error", param_hint="--log-level")
    if log_format not in {"text", "json"}:
        raise typer.BadParameter(f"{log_format!r} is no format: text or json", param_hint="--log-format")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    app = find_app(target)
    app.use(metrics_port=metrics_port)
    code = app.run(
        bootstrap_servers=bootstrap_servers, workers=workers, embedded=embedded, kafka=pairs(kafka, "--kafka")
    )
    if code == EXIT_LATE or any(thread.name.startswith("awoke-") for thread in threading.enumerate()):
        logging.shutdown()
        os._exit(code)  # A handler that does not end must not hold up the process's end.
    raise typer.Exit(code)
