"""Makes the acts of pages: each needs a reason, is recorded, and answers with a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from awoke.console.access import Brokers
from awoke.console.acts import Acts, Argument
from awoke.console.web.page import Asked, Done, Wrong
from awoke.errors import AwokeError

REASON_MAX = 500


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
