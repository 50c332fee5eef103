"""Records the acts of operators on topics, groups and dead letters in the audit topic of the app.

The records have the form of those that the app's own commands leave there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from awoke._clock import monotonic_s, wall_ms
from awoke.console.access import TIMEOUT_S, Brokers
from awoke.console.topics import ConsoleTopics
from awoke.console.views import MAJOR, MINOR
from awoke.errors import AwokeError, KafkaError

CONFIG = {"cleanup.policy": "delete", "retention.ms": "31536000000"}
"""Records are kept for a year."""
TEXT_MAX = 1_000

Argument = str | int | bool | None


class Act(msgspec.Struct, kw_only=True):
    """One act, as it is recorded."""

    major: int = MAJOR
    minor: int = MINOR
    at_ms: int
    node: str = "console"
    app: str
    who: str
    via: str = "console"
    verb: str
    arguments: dict[str, Argument]
    reason: str
    result: str
    """`done`, `begun`, or the name of the error."""
    text: str
    took_ms: int


class Acts:
    """Makes acts of one operator, and records them."""

    def __init__(self, brokers: Brokers, app: str, who: str) -> None:
        self._brokers, self._app, self._who = brokers, app, who
        self.topic = audit_topic(app)

    def make(self, verb: str, arguments: Mapping[str, Argument], reason: str, act: Callable[[], str]) -> str:
        """Records that an act begins, makes it, records its result, and returns its text. Blocks.

        An act whose beginning can't be recorded is not made.

        Raises:
            AwokeError: It can't be recorded, or it failed; the failure is recorded, too.
        """
        began_s = monotonic_s()

        def record(result: str, text: str) -> None:
            self._write(
                Act(
                    at_ms=wall_ms(),
                    app=self._app,
                    who=self._who,
                    verb=verb,
                    arguments=dict(arguments),
                    reason=reason[:TEXT_MAX],
                    result=result,
                    text=text[:TEXT_MAX],
                    took_ms=round((monotonic_s() - began_s) * 1_000),
                )
            )

        record("begun", "")
        try:
            text = act()
        except AwokeError as error:
            record(type(error).__name__, str(error))
            raise
        record("done", text)
        return text

    def _write(self, act: Act) -> None:
        with self._brokers.admin() as admin:
            try:
                admin.create_topic(self.topic, partitions=1, config=CONFIG, timeout_s=TIMEOUT_S)
            except KafkaError as error:
                if error.code_name != "TOPIC_ALREADY_EXISTS":
                    admin.describe_topic(self.topic, TIMEOUT_S)
        with self._brokers.producer() as producer:
            value = msgspec.json.encode(act).decode(errors="replace")
            producer.produce(self.topic, value, key=act.node).wait(TIMEOUT_S)


def audit_topic(app: str) -> str:
    """Returns the audit topic of an app."""
    return ConsoleTopics.of(app).reports.removesuffix(".reports") + ".audit"
