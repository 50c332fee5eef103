"""Runs commands of awoke in the process of the test: a process for each would take half a second to import awoke."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from unittest import mock

from awoke.cli import main

QUICK = {"AWOKE_KAFKA_FETCH_WAIT_MAX_MS": "10", "AWOKE_KAFKA_RECONNECT_BACKOFF_MS": "1"}
"""Settings with which a command learns at once that it has read a topic to its end."""


def awoke_says(*arguments: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """Runs a command to its end, and returns the text that it wrote, of both streams. Blocks; the main thread only.

    `tests/scenarios/test_command_line.py` runs commands in processes of their own.
    """
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    ended = 0
    with (
        open(os.devnull) as nothing,
        mock.patch.object(sys, "stdin", nothing),  # pytest's own has no descriptor.
        mock.patch.dict(os.environ, {**QUICK, **(env or {})}),
        mock.patch.object(sys, "argv", ["awoke", *arguments]),
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
    ):
        try:
            main()
        except SystemExit as error:
            ended = error.code if isinstance(error.code, int) else int(error.code is not None)
    output = written.buffer.getvalue().decode() if isinstance(written.buffer, io.BytesIO) else ""
    assert ended == code, output
    return "\n".join(output.splitlines())
