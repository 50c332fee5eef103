"""A database in a file that is opened at import: SQLite forbids to carry a connection into a forked process."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from awoke.swarm import linux
from tests.support.clusters import MockCluster
from tests.support.three_modes import MESSAGES, in_three_modes, stop_all

APP = """
import sqlite3, threading

database = sqlite3.connect("rows", check_same_thread=False, isolation_level=None, timeout=60)
database.execute("CREATE TABLE IF NOT EXISTS handled (value int)")
turn = threading.Lock()


@app.on(TOPIC)
def handle(message: awoke.Message[bytes]) -> None:
    with turn:
        database.execute("INSERT INTO handled VALUES (?)", (int(message.value),))
    note("handled", value=int(message.value))
"""


def test_each_node_opens_a_database_for_itself(mock_cluster: MockCluster, tmp_path: Path) -> None:
    with in_three_modes(tmp_path, mock_cluster, APP) as runs:
        stop_all(runs)
    for run in runs:
        warned = f"can't share: SQLite's file {run.folder / 'rows'}. " in run.process.output
        assert warned == (run.mode != "process"), run.process.output
        with closing(sqlite3.connect(run.folder / "rows")) as database:
            rows = database.execute("SELECT value FROM handled ORDER BY value").fetchall()
        assert [value for (value,) in rows] == list(range(MESSAGES))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"SQLite format 3\0" + bytes(84), "SQLite"),
        (bytes(16) + (0xBEEFC0DE).to_bytes(4, sys.byteorder) + bytes(84), "LMDB"),
        (b"SQLite format", None),
        (b"", None),
    ],
)
def test_a_file_is_known_by_its_mark(content: bytes, kind: str | None, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(content)
    before = linux.databases()
    with open(file, "r+b"), open(file, "r+b"):
        assert set(linux.databases()) - set(before) == ({f"{kind}'s file {file}"} if kind else set())
    descriptor = os.open(file, os.O_WRONLY)
    try:
        assert linux.databases() == before, "one that can't be read is none"
    finally:
        os.close(descriptor)
