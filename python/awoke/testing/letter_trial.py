"""Tries a dead letter: runs its message through the app's present code, without brokers, and sends nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from awoke._native import make_batch
from awoke.app.app import App
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import Letter
from awoke.payloads import dead_letter
from awoke.testing.memory.process import route_of
from awoke.testing.recordings.replay import one_by_one
from awoke.testing.route_results import Output, RouteRun
from awoke.testing.route_runs import LIMIT_S, on_own_loop, run_flow

PARTITION_MAX = (1 << 31) - 1
OFFSET_MAX = (1 << 63) - 1


class Trial(NamedTuple):
    """The result of a trial."""

    state: str
    """`handled`, `dead-lettered`, `skipped`, or `waiting`."""
    attempts: int
    error: BaseException | None
    """The last error of the handler."""
    outputs: list[Output]
    """The messages that it would have sent."""

    @property
    def is_handled(self) -> bool:
        """True if a replay of the letter would succeed."""
        return self.state == "handled"


def try_letter(app: App, letter: Letter, *, topic: str | None = None, group: str | None = None) -> Trial:
    """Runs the message of a letter through the app's route of its topic, or of another one. Blocks as the handler does.

    Retries take no time. The messages that the handler sends are kept, and sent nowhere. Its other effects are real: a
    row that it writes into a database is written.

    Raises:
        ConfigError: The app has no such route, or several; or the letter has lost its value.
    """
    origin = letter.origin
    if origin.value_bytes is not None and letter.message.raw_value is None:
        raise ConfigError(f"the letter was sent without its value of {origin.value_bytes} bytes", "letter")
    route = one_by_one(route_of(app, topic or origin.topic, group))
    headers: Any = dead_letter.original(letter.message).headers
    place = topic or origin.topic, origin.partition if 0 <= origin.partition <= PARTITION_MAX else 0
    offset = origin.offset if 0 <= origin.offset < OFFSET_MAX else 0
    parts = (offset, letter.message.raw_value, letter.message.raw_key, headers, letter.message.timestamp_ms)
    message = make_batch(place, [parts])[0]
    run = on_own_loop(run_flow(app, route, [message], LIMIT_S), "try_letter", is_async=route.is_async)
    return _trial(run)


def trier(app: App) -> Callable[[Letter], Trial]:
    """Returns `try_letter` of an app, for its console."""
    return functools.partial(try_letter, app)


def _trial(run: RouteRun) -> Trial:
    end = run.messages[0]
    error = run.error or (run.failures[-1].error if run.failures and end.state != "handled" else None)
    return Trial(end.state, end.attempts, error, list(run.outputs))
