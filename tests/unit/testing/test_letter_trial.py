"""A dead letter is tried with the app's present code: the end, the errors, and what would be sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke._native import make_batch
from awoke.operate.dead_letters.letters import Letter, letter_of
from awoke.payloads import dead_letter
from awoke.testing.letter_trial import trier, try_letter


class Order(msgspec.Struct):
    count: int


def lettered(value: bytes | None, topic: str = "orders", **changes: str) -> Letter:
    """A dead letter of a message with this value."""
    message: Any = make_batch((topic, 3), [(7, value, b"key", [("trace", b"a")], 1)])[0]
    record = dead_letter.letter(message, "shop", 3, ValueError("no good"))
    own: Any = record.headers
    headers = [(name, changes.get(name, each)) for name, each in own]
    pairs = [(name, each.encode() if isinstance(each, str) else each) for name, each in headers]
    stored: Any = make_batch(("orders.dead", 0), [(1, value, b"key", pairs, 2)])[0]
    return letter_of(stored)


@pytest.fixture(params=["plain", "async"])
def app(request: pytest.FixtureRequest) -> awoke.App:
    app = awoke.App("shop")

    def handle(message: awoke.Message[Order]) -> Order:
        if message.value.count < 0:
            raise ValueError(f"{message.value.count} of {message.offset}, {message.headers}")
        return Order(message.value.count + 1)

    async def ahandle(message: awoke.Message[Order]) -> Order:
        return handle(message)

    function: Any = handle if request.param == "plain" else ahandle
    retry = awoke.Retry(backoff_s=(600.0, 600.0), attempts=2)
    app.on("orders", value=Order, output="sums", dead_letter="orders.dead", retry=retry)(function)
    return app


def test_a_letter_that_is_handled_now_shows_what_would_be_sent(app: awoke.App) -> None:
    trial = trier(app)(lettered(b'{"count":1}'))
    assert (trial.is_handled, trial.state, trial.attempts, trial.error) == (True, "handled", 1, None)
    assert [(each.topic, each.data) for each in trial.outputs] == [("sums", b'{"count":2}')]


def test_a_letter_that_fails_again_says_why_with_its_own_offset_and_headers(app: awoke.App) -> None:
    trial = try_letter(app, lettered(b'{"count":-1}'))
    assert (trial.is_handled, trial.state, trial.attempts, trial.outputs) == (False, "dead-lettered", 2, [])
    assert str(trial.error) == "-1 of 7, [('trace', b'a')]"


def test_a_letter_that_does_not_decode_fails(app: awoke.App) -> None:
    trial = try_letter(app, lettered(b"{"))
    assert (trial.is_handled, isinstance(trial.error, awoke.DecodeError)) == (False, True)


def test_forged_places_are_no_crash(app: awoke.App) -> None:
    forged = {dead_letter.PARTITION: str(1 << 70), dead_letter.OFFSET: str(1 << 70)}
    assert try_letter(app, lettered(b'{"count":1}', **forged)).is_handled


def test_a_letter_without_a_route_or_without_its_value_is_refused(app: awoke.App) -> None:
    with pytest.raises(awoke.ConfigError):
        try_letter(app, lettered(b"{}", topic="others"))
    assert try_letter(app, lettered(b'{"count":1}', topic="others"), topic="orders").is_handled
    lost = lettered(None)
    with pytest.raises(awoke.ConfigError, match="without its value of 9 bytes"):
        try_letter(app, Letter(lost.message, lost.origin._replace(value_bytes=9)))
