"""Records the acts of operators on topics, groups and dead letters in the audit topic of the app.

The records have the form of those that the app's own commands leave there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from awoke.console.access import TIMEOUT_S, Brokers
from awoke.console.topics import AUDIT_CONFIG, ConsoleTopics, ensure
from awoke.console.views import Audit
from awoke.errors import AwokeError
from awoke.waiting.clock import monotonic_s, wall_ms

TEXT_MAX = 1_000
VIA = "console"
"""Stands for the node and the caller: the console itself acts on the cluster."""

Argument = str | int | bool | None


class Acts:
    """Makes acts of one operator, and records them."""

    def __init__(self, brokers: Brokers, app: str, who: str) -> None:
        self._brokers, self._app, self._who = brokers, app, who
        self.topic = ConsoleTopics.of(app).audit

    def make(self, verb: str, arguments: Mapping[str, Argument], reason: str, act: Callable[[], str]) -> str:
        """Records that an act begins, makes it, records its result, and returns its text. Blocks.

        An act whose beginning can't be recorded is not made.

        Raises:
            AwokeError: It can't be recorded, or it failed; the failure is recorded, too.
        """
        began_s = monotonic_s()

        def record(result: str, text: str) -> None:
            self._write(
                Audit(
                    at_ms=wall_ms(),
                    node=VIA,
                    app=self._app,
                    who=self._who,
                    via=VIA,
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
        except Exception as error:  # A bug: the record of the beginning is not to stay the last one.
            record(type(error).__name__, "")
            raise
        record("done", text)
        return text

    def _write(self, audit: Audit) -> None:
        with self._brokers.admin() as admin:
            ensure(admin, {self.topic: AUDIT_CONFIG}, TIMEOUT_S)
        with self._brokers.producer() as producer:
            producer.produce(self.topic, msgspec.json.encode(audit).decode(), key=VIA).wait(TIMEOUT_S)
