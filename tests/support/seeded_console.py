"""Serves a console with the state of a made-up app, for tests in a browser: `python -m tests.support.seeded_console`.

Its topics and groups are those of embedded brokers. It writes its address to standard output, and ends with its
standard input.
"""

from __future__ import annotations

import json
import random
import sys
import urllib.parse
import urllib.request
from typing import Any

import awoke
from awoke.console.views import (
    AbortedByCode,
    CallAtWork,
    CallerCounts,
    Calls,
    CallTimes,
    ErrorRecord,
    Failing,
    GroupPartition,
    GroupView,
    Handler,
    History,
    Memory,
    MethodCalls,
    OutputTopic,
    Partition,
    Report,
    Running,
    Sample,
)
from awoke.console.web.application import application
from awoke.console.web.grants import Rights, Role
from awoke.console.web.serving import Server
from awoke.console.web.snapshot import Snapshot
from awoke.operate.commands.verbs import REMOTE
from awoke.operate.commands.views import MAJOR, Audit, SwarmNode
from awoke.payloads import dead_letter
from awoke.settings import load
from awoke.testing import EmbeddedCluster
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import HOSTILE, FakeLive, hostile, report

PARTITIONS = 12
POISON, SLOW, PAUSED, OPEN, HANGS = 3, 5, 8, 10, 11
DEAD, WEIRD, SENT = "flights.dead", "weird", "tickets.dead"
"""Dead letters, messages that are attacks, and dead letters of which some are being sent again."""
LONG_KEY = b"k" * 1_000_000
TRACEBACK = """Traceback (most recent call last):
  File "flights/app.py", line 41, in delays
    gate = gates[flight.gate]
  File "flights/gates.py", line 12, in __getitem__
    raise ValueError(f"no gate for flight {key}")
ValueError: no gate for flight UA 1545
"""


SILENT, LATE, LATE_MS = "web-3.99", "web-3.7", 14_000
"""A process that was killed long ago, and one that was killed just now."""


class Seeded(FakeLive):
    """An app whose processes report again for each page, however slow the test is.

    One of them is late, and one is silent.
    """

    def snapshot(self, within_s: float = 0.0) -> Snapshot:
        for each in self.reports:
            if each.node != SILENT:
                each.at_ms = wall_ms() - (LATE_MS if each.node == LATE else 0)
                self.add(each, is_told=False)
        return super().snapshot(within_s)


def lag_trends() -> dict[tuple[str, str, int], float]:
    """Lags that grow behind the poison key and the pause, and fall elsewhere."""
    blocked = (POISON, PAUSED, OPEN)
    return {
        ("flights", "flights", at): 12.5 if at in blocked else 0.0 if at == SLOW else -1.5 for at in range(PARTITIONS)
    }


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
        last_stable_offset=20_000 if number in (OPEN, HANGS) else None,
        transaction_open_since_ms={OPEN: now_ms - 400_000, HANGS: now_ms - 1_500_000}.get(number),
    )


def processes(partitions: list[Partition], now_ms: int) -> list[Report]:
    """Four processes on two hosts, and a silent and a late one on a third."""
    chance = random.Random(3)
    found = [
        report(
            f"web-{1 + at // 2}.31{at}",
            *partitions[at * 3 : at * 3 + 3],
            history=history(now_ms, 1 + at / 10, chance),
            secrets=[],
            host=f"web-{1 + at // 2}",
            number=at % 2,
            memory_bytes=92_000_000 + at * 4_000_000,
            memory=Memory(
                own_bytes=61_000_000, shared_bytes=31_000_000 + at * 4_000_000, proportional_bytes=76_000_000
            ),
            failures=(0, 7, 0, 1)[at],
            threads={"worker": 8, "librdkafka": 12, "console": 1},
            versions={"awoke": "0.1.0", "librdkafka": "2.16.1"},
            settings={"workers": "8" if at else "16", "bootstrap_servers": "broker-1:9092"},
            groups=["flights"],
            started_at_ms=now_ms - 8_000_000,
            commands=list(REMOTE),
            handlers=handlers(at),
            calls=calls(at, now_ms),
            callers=[CallerCounts(service="gates", open=1, events={"call": 4_210, "reply": 4_207, "expired": 2})],
            supervisor_pid=3_000 + at // 2,
            outputs=[OutputTopic(topic="bags", messages=412, since_ms=now_ms - 42_000)] if at == 1 else [],
            queue_full_since_ms=now_ms - 12_000 if at == 1 else None,
            aborted=aborted(at, now_ms),
            swarm=[
                SwarmNode(node=number, state="up", restarts=at // 2, last_error="it used too much memory" * (at // 2))
                for number in range(2)
            ],
        )
        for at in range(4)
    ]
    alone: dict[str, Any] = {"host": "web-3", "groups": ["flights"], "secrets": []}
    killed = [report(SILENT, at_ms=now_ms - 90_000, **alone), report(LATE, at_ms=now_ms - LATE_MS, **alone)]
    return [*found, *killed]


def aborted(at: int, now_ms: int) -> list[AbortedByCode]:
    """The transactions of a process that were aborted."""
    fenced = AbortedByCode(
        code="PRODUCER_FENCED", count=3, last_ms=now_ms - 310_000, last_text="a newer producer has its transactional id"
    )
    late = AbortedByCode(
        code="_TIMED_OUT", count=1, last_ms=now_ms - 70_000, last_text="EndTxn had no answer within 10 s"
    )
    return {1: [fenced, late], 2: [late]}.get(at, [])


def handlers(at: int) -> list[Handler]:
    """The routes of the app."""
    fields: dict[str, Any] = {"group": "flights", "exactly_once": False, "failures": at}
    return [
        Handler(
            name="delays",
            topic="flights",
            is_async=True,
            concurrency=20,
            dead_letter=DEAD,
            messages_per_s=210.5,
            **fields,
        ),
        Handler(name="bags", topic="bags", is_async=False, concurrency=1, dead_letter=None, **fields),
    ]


def calls(at: int, now_ms: int) -> Calls:
    """The calls that a process answers."""
    times = CallTimes(p50=0.8 + at, p95=6.5 + at)
    method = MethodCalls(
        method="gate", outcomes={"ok": 4_181, "not_found": 29}, queue_ms=times, run_ms=times, reply_ms=times
    )
    at_work = CallAtWork(
        method="gate", caller="desk-7", partition=0, offset=4_210 + at, until_ms=now_ms + 3_600_000, is_cancelled=False
    )
    return Calls(methods=[method], at_work=[at_work], running=1, waiting=0, expired=2, rejected={"queue_full": 3})


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


def audit(text: str = "", verb: str = "pause", result: str = "done") -> Audit:
    """A command that was sent."""
    fields: dict[str, Any] = {"node": text or "web-1.311", "who": text or "ann", "via": text or "awoke console"}
    arguments: dict[str, str | int | bool | None] = {"topic": text or "flights", "partition": PAUSED}
    said = text or ("the partition is paused" if result == "done" else "stop is not among the commands")
    at_ms = wall_ms() - 3_000_000
    return Audit(
        **fields,
        at_ms=at_ms,
        app="flights",
        verb=text or verb,
        arguments=arguments if verb == "pause" else {},
        reason=text or "gates are being moved",
        result=text or result,
        text=said,
        took_ms=12,
    )


def seeded() -> Seeded:
    """The state of the app."""
    now_ms = wall_ms()
    partitions = [partition(number, now_ms) for number in range(PARTITIONS)]
    live = Seeded(processes(partitions, now_ms), records(now_ms))
    live.lag_per_s = lag_trends()
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
    live.audit = [audit(), audit(verb="stop", result="permission_denied")]
    return live


def fill(cluster: EmbeddedCluster) -> None:
    """Makes the topics and the group of the app: flights, dead letters, and messages that are attacks."""
    for topic, partitions in (("flights", PARTITIONS), ("bags", 1), (DEAD, 1), (WEIRD, 1), (SENT, 1)):
        cluster.create_topic(topic, partitions)
    weird: list[tuple[Any, Any, Any]] = [
        (HOSTILE.encode(), HOSTILE.encode(), [(HOSTILE, HOSTILE.encode())]),
        (b"\xff\xfe\x80", b"\xc3\x28<script>alert(1)</script>", [("\u202ename", b"\xff\xfe")]),
        (LONG_KEY, b"{}", []),
    ]
    with awoke.Producer(cluster.bootstrap_servers, kafka={"message.max.bytes": 2_000_000}) as producer:
        for key, value, headers in weird:
            producer.produce(WEIRD, value, key=key, headers=headers).wait(30)
        for number in range(12):
            flight = json.dumps({"carrier": "UA", "number": 1500 + number, "origin": "JFK", "dest": "HNL"}).encode()
            producer.produce("flights", flight, key=b"JFK-HNL", partition=POISON).wait(30)
            error = ("builtins.ValueError", f"no gate for flight UA {1500 + number}")
            headers = letter_headers(number, *(error if number % 3 else ("builtins.TimeoutError", HOSTILE)))
            for dead in (DEAD, SENT):
                producer.produce(dead, flight, key=b"JFK-HNL", headers=headers).wait(30)
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.alter_group_offsets("flights", {("flights", number): 0 for number in range(PARTITIONS)})


def letter_headers(offset: int, error_type: str, error_text: str) -> list[tuple[str, bytes | str | None]]:
    """Returns the headers of a dead letter that came from the flights."""
    said = {
        dead_letter.TOPIC: "flights",
        dead_letter.PARTITION: str(POISON),
        dead_letter.OFFSET: str(offset),
        dead_letter.TIMESTAMP: "",
        dead_letter.GROUP: "flights",
        dead_letter.ATTEMPTS: "3",
        dead_letter.ERROR_TYPE: error_type,
        dead_letter.ERROR_TEXT: error_text,
        dead_letter.FAILED_AT: str(wall_ms() - 60_000),
        dead_letter.HANDLER: "delays",
    }
    return list(said.items())


def replay(url: str) -> None:
    """Begins a replay that sends a letter at once, and the next one after the test."""
    path = f"{url}/letters/{SENT}"
    with urllib.request.urlopen(f"{path}/plan?count=12&rate=0.001&format=json") as answer:
        plan = json.load(answer)
    form = {**plan["fields"], "digest": plan["plan"]["digest"], "reason": "the gates are known now", "sure": "on"}
    headers = {"Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{path}/replay", data, headers)) as answer:
        assert answer.status == 202


def listen(live: Any) -> None:
    """Reads lines until the input ends: each is the name of a new process, or `hostile`; browsers are told."""
    for line in sys.stdin:
        if line.strip() == "hostile":
            attack = hostile()
            live.errors += attack.errors
            live.groups += attack.groups
            live.audit += [audit(HOSTILE)]
            new = attack.reports
        else:
            new = [report(line.strip())]
        for each in new:
            live.reports.append(each)
            live.add(each)


def main() -> None:
    """Serves the console until the input ends."""
    live: Any = seeded()
    rights = Rights(lambda scope: Role.ADMIN, ["*"], True)
    with EmbeddedCluster() as cluster:
        fill(cluster)
        settings = load({"bootstrap_servers": cluster.bootstrap_servers}).values
        server = Server(application("flights", settings, live, rights, ()), "127.0.0.1", 0)
        server.start()
        replay(server.url)
        print(server.url, flush=True)
        listen(live)
        server.close()


if __name__ == "__main__":
    main()
