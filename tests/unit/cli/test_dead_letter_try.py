"""`awoke dead-letter try`: the letter at a place is run through an app's code."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

import awoke
from awoke.cli import letters
from awoke.cli.dead_letter_try import value_of
from awoke.cli.main import command_line
from awoke.declare.secret_topics import SecretPart
from awoke.payloads.secret_paths import SecretPaths
from tests.unit.testing.test_letter_trial import lettered


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> awoke.App:
    app = awoke.App("shop")

    @app.on("orders", output="sums", dead_letter="orders.dead", retry=awoke.Retry(attempts=1))
    def handle(message: awoke.Message[bytes]) -> bytes:
        if message.value == b"bad":
            raise ValueError("\x1b[2Jno good")
        return message.value + b"\x1b"

    monkeypatch.setattr("awoke.app.application.find_app", lambda target: app)
    return app


def run(monkeypatch: pytest.MonkeyPatch, value: bytes, place: str = "0:1") -> Any:
    monkeypatch.setattr(letters, "messages", lambda *_: iter([lettered(value).message]))
    words = ["dead-letter", "try", "orders.dead", place, "shop:app"]
    return CliRunner().invoke(command_line(words), words)


def test_a_letter_that_is_handled_shows_what_it_would_send(monkeypatch: pytest.MonkeyPatch, app: awoke.App) -> None:
    done = run(monkeypatch, b"good")
    assert (done.exit_code, done.output) == (0, "it would send to sums: good\\x1b\n0:1 is handled\n")


def test_a_letter_that_fails_ends_with_its_error(monkeypatch: pytest.MonkeyPatch, app: awoke.App) -> None:
    done = run(monkeypatch, b"bad")
    assert (done.exit_code, done.output) == (
        1,
        "0:1 is dead-lettered after 1 attempts: ValueError: \\x1b[2Jno good\n",
    )


def test_a_place_without_a_letter_is_an_error(monkeypatch: pytest.MonkeyPatch, app: awoke.App) -> None:
    assert "has no message at offset 9" in str(run(monkeypatch, b"good", "0:9").exception)


CARD = SecretPart("paid", "value", "json", SecretPaths(["/card"]))


@pytest.mark.parametrize(
    ("data", "secrets", "shown"),
    [
        (b'{"card":"4711"}', [], '{"card":"4711"}'),
        (b'{"card":"4711","id":1}', [CARD], '{"card":"[secret]","id":1}'),
        (b"4711", [CARD], "4 bytes with secret fields, which are not shown"),
        (b"{4711", [CARD], "5 bytes with secret fields, which are not shown"),
        (b'{"card":"4711"}', [CARD._replace(form="other")], "15 bytes with secret fields, which are not shown"),
    ],
)
def test_values_that_would_be_sent_are_shown_without_secrets(
    data: bytes, secrets: list[SecretPart], shown: str
) -> None:
    assert value_of(data, secrets) == shown
