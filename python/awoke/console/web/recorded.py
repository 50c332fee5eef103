"""Makes the acts of operators on topics, groups and dead letters: each needs a reason, and is recorded for the audit.

The records have the form of those that the app's own commands leave in its audit topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from awoke.console.access import TIMEOUT_S, Brokers
from awoke.console.topics import AUDIT_CONFIG, ConsoleTopics, ensure
from awoke.console.web.page import Asked, Done, Wrong
from awoke.errors import AwokeError
from awoke.operate.commands.audit import audit_of
from awoke.operate.commands.views import DONE, Audit, CommandResult, OperatorCommand
from awoke.text.records import encode
from awoke.waiting.clock import monotonic_s, wall_ms

REASON_MAX = 500
VIA = "console"
"""Stands for the node and the caller: the console itself acts on the cluster."""
Argument = str | int | bool | None


def recorded(asked: Asked, verb: str, arguments: Mapping[str, Argument], act: Callable[[], str], back: str) -> Done:
    """Makes an act and returns its answer. Blocks.

    Raises:
        Wrong: The operator gives no reason.
    """
    record = recorder(asked, verb, arguments)
    try:
        return Done(text=record(act), back=back)
    except AwokeError as error:
        return Done(text=f"nothing was done, or not all: {error}", back=back, is_failed=True)


def recorder(asked: Asked, verb: str, arguments: Mapping[str, Argument]) -> Callable[[Callable[[], str]], str]:
    """Returns a function that makes an act between its two records, and returns its text. It blocks.

    Raises:
        Wrong: The operator gives no reason.
    """
    reason = asked.form.get("reason", "").strip()
    if not 1 <= len(reason) <= REASON_MAX:
        raise Wrong(f"an act needs a reason of 1 to {REASON_MAX} characters, for the audit")
    acts = Acts(Brokers(asked.settings), asked.app, who_of(asked))
    return lambda act: acts.make(verb, arguments, reason, act)


def who_of(asked: Asked) -> str:
    """Returns the name that the audit records."""
    return asked.grant.who or "unknown"


def text_of(asked: Asked, name: str) -> str | None:
    """Returns a field of the form or of the query; None where it is empty."""
    return (asked.form.get(name) or asked.query.get(name) or "").strip() or None


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

        command = OperatorCommand(verb=verb, who=self._who, via=VIA, reason=reason)

        def record(code: str, text: str) -> None:
            took_ms = round((monotonic_s() - began_s) * 1_000)
            result = CommandResult(verb=verb, result=code, text=text, node=VIA, at_ms=wall_ms(), took_ms=took_ms)
            audit = audit_of(command, result, self._app)
            audit.arguments = dict(arguments)  # They are those of a page, and not of a verb.
            self._write(audit)

        record("begun", "")
        try:
            text = act()
        except AwokeError as error:
            record(type(error).__name__, str(error))
            raise
        except Exception as error:  # A bug: the record of the beginning is not to stay the last one.
            record(type(error).__name__, "")
            raise
        record(DONE, text)
        return text

    def _write(self, audit: Audit) -> None:
        with self._brokers.admin() as admin:
            ensure(admin, {self.topic: AUDIT_CONFIG}, TIMEOUT_S)
        with self._brokers.producer() as producer:
            producer.produce(self.topic, encode(audit), key=VIA).wait(TIMEOUT_S)
