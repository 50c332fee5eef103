"""Serves a console with the state of a made-up app, for tests in a browser: `python -m tests.support.seeded_console`.

It writes its address to standard output, and ends with its standard input.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from awoke._clock import wall_ms
from awoke.console.views import (
    MAJOR,
    ErrorRecord,
    Failing,
    GroupPartition,
    GroupView,
    History,
    Partition,
    Report,
    Running,
    Sample,
)
from awoke.console.web.application import application
from awoke.console.web.grants import Rights, Role
from awoke.console.web.serving import Server
from awoke.console.web.snapshot import Snapshot
from awoke.settings import load
from tests.unit.console.web.fakes import FakeLive, report

PARTITIONS = 12
POISON, SLOW, PAUSED = 3, 5, 8
TRACEBACK = """Traceback (most recent call last):
  File "flights/app.py", line 41, in delays
    gate = gates[flight.gate]
  File "flights/gates.py", line 12, in __getitem__
    raise ValueError(f"no gate for flight {key}")
ValueError: no gate for flight UA 1545
"""


class Seeded(FakeLive):
    """An app whose processes report again for each page, however slow the test is: all but the silent one."""

    def snapshot(self) -> Snapshot:
        for each in self.reports:
            if not each.node.startswith("web-3"):
                each.at_ms = wall_ms()
                self.add(each, is_told=False)
        return super().snapshot()


def history(now_ms: int, speed: float, chance: random.Random) -> History:
    """Five minutes and an hour of a process."""
    recent, minutes = list[Sample](), list[Sample]()
    for at in range(60):
        offsets, failures = int(900 * speed + chance.random() * 300), int(chance.random() < 0.1)
        recent.append(Sample(now_ms - (60 - at) * 5_000, offsets, failures, 4_000 - 30 * at, 88_000_000))
        minutes.append(Sample(now_ms - (60 - at) * 60_000, 12 * offsets, 12 * failures, 0, 0))
    return History(of_5_s=recent, of_minutes=minutes)


def partition(number: int, now_ms: int) -> Partition:
    """A partition: one has a poison key, one a slow job, one is paused."""
    failing = Failing(
        offset=18_231,
        key_hash="ac52cb5ff985d463",
        attempts=7,
        error="ValueError('no gate for flight UA 1545')",
        since_ms=now_ms - 420_000,
        next_ms=now_ms + 3_600_000,
    )
    since_ms = now_ms - (95_000 if number == SLOW else 12)
    return Partition(
        group="flights",
        topic="flights",
        partition=number,
        position=20_000 + number,
        committed=18_231 if number == POISON else 19_990,
        end_offset=20_010 + number * 7,
        in_flight=4,
        offsets_per_s=210.5 + number,
        oldest_offset=18_231 if number == POISON else None,
        failing=[failing] if number == POISON else [],
        running=[Running(offset=19_000 + at, attempt=1, remaining=1, since_ms=since_ms) for at in range(3)],
        paused_because="ValueError: the topic of gates is empty" if number == PAUSED else None,
    )


def processes(partitions: list[Partition], now_ms: int) -> list[Report]:
    """Four processes on two hosts, and a silent one on a third."""
    chance = random.Random(3)
    found = [
        report(
            f"web-{1 + at // 2}.31{at}",
            *partitions[at * 3 : at * 3 + 3],
            history=history(now_ms, 1 + at / 10, chance),
            host=f"web-{1 + at // 2}",
            number=at % 2,
            memory_bytes=92_000_000 + at * 4_000_000,
            failures=(0, 7, 0, 1)[at],
            threads={"worker": 8, "librdkafka": 12, "console": 1},
            versions={"awoke": "0.1.0", "librdkafka": "2.16.1"},
            settings={"workers": "8" if at else "16", "bootstrap_servers": "broker-1:9092"},
            groups=["flights"],
            started_at_ms=now_ms - 8_000_000,
        )
        for at in range(4)
    ]
    return [*found, report("web-3.99", at_ms=now_ms - 90_000, host="web-3", groups=["flights"])]


def records(now_ms: int) -> list[ErrorRecord]:
    """Failures of two kinds."""
    kinds = [
        ("builtins.ValueError", "no gate for flight UA 1545"),
        ("builtins.TimeoutError", "gates.example: timed out"),
    ]
    fields: dict[str, Any] = {"major": MAJOR, "minor": 0, "app": "flights", "event": "job.failed", "node": "web-1.311"}
    place: dict[str, Any] = {"handler": "delays", "topic": "flights", "partition": POISON, "offset": 18_231}
    return [
        ErrorRecord(
            **fields,
            **place,
            at_ms=now_ms - (30 - at) * 70_000,
            fingerprint=f"9f3a{at % 2}",
            error_type=kinds[at % 2][0],
            error_text=kinds[at % 2][1],
            traceback=TRACEBACK,
            key_hash="ac52cb5ff985d463",
            attempt=at + 1,
        )
        for at in range(30)
    ]


def seeded() -> Seeded:
    """The state of the app."""
    now_ms = wall_ms()
    partitions = [partition(number, now_ms) for number in range(PARTITIONS)]
    live = Seeded(processes(partitions, now_ms), records(now_ms))
    known = [
        GroupPartition(
            topic=each.topic,
            partition=each.partition,
            committed=each.committed,
            end_offset=each.end_offset,
            lag=(each.end_offset or 0) - (each.committed or 0),
        )
        for each in partitions
    ]
    live.groups = [GroupView(group="flights", state="stable", members=4, partitions=known)]
    return live


def main() -> None:
    """Serves the console until the input ends; a line in it is a new report, which browsers are told of."""
    live: Any = seeded()
    rights = Rights(lambda scope: Role.ADMIN, ["*"], True)
    settings = load({"bootstrap_servers": "127.0.0.1:1"}).values
    server = Server(application("flights", settings, live, rights, ()), "127.0.0.1", 0)
    server.start()
    print(server.url, flush=True)
    for line in sys.stdin:
        found = report(line.strip())
        live.reports.append(found)
        live.add(found)
    server.close()


if __name__ == "__main__":
    main()
