"""`awoke replay`: results are written, and compared with those of other code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

import awoke
from awoke.app import application
from awoke.testing.messages import MessageParts
from awoke.testing.recordings.recording import Recorded, Recording, write_recording
from tests.unit.cli.fakes import run


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A recording of two orders."""
    path = tmp_path / "orders.rec"
    records = [Recorded(0, MessageParts(offset, b'{"total":%d}' % offset, None, [], 5)) for offset in range(2)]
    write_recording(Recording("orders", records), path)
    return str(path)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Code:
    """The code of the app `shop:app`."""
    found = Code()
    monkeypatch.setattr(application, "find_app", lambda target: found.app())
    return found


class Code:
    """A handler that doubles, or does otherwise."""

    factor = 2

    def app(self) -> awoke.App:
        app = awoke.App("shop")

        @app.on("orders", output="receipts", dead_letter="dead", retry=awoke.Retry(attempts=1))
        def charge(message: awoke.Message[dict[str, int]]) -> dict[str, float]:
            return {"paid": self.factor * message.value["total"], "rate": 6 / self.factor}

        return app


def test_results_are_written_and_the_same_code_makes_them_again(recording: str, code: Code) -> None:
    done = run("replay", recording, "shop:app", "--update")
    assert done.output == f"replayed 2 messages, and wrote the results into {recording}.expected\n"
    done = run("replay", recording, "shop:app")
    assert (done.output, done.exit_code) == ("replayed 2 messages: no difference\n", 0)


def test_other_code_is_shown_with_record_and_field_and_ends_with_one(recording: str, code: Code) -> None:
    run("replay", recording, "shop:app", "--update")
    code.factor = 3
    done = run("replay", recording, "shop:app", "--ignore", "value.rate")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "orders[0] offset 1",
        "  receipts 1 value.paid: 2 → 3",
        "replayed 2 messages: 1 differ",
    ]
    first, *_ = run("replay", recording, "shop:app", "--ignore", "value.rate", "--json").output.splitlines()
    assert json.loads(first) == {
        "partition": 0, "offset": 1, "path": "receipts 1 value.paid", "before": "2", "after": "3"
    }  # fmt: skip


def test_code_that_fails_is_shown_with_its_error(recording: str, code: Code) -> None:
    run("replay", recording, "shop:app", "--update")
    code.factor = 0
    done = run("replay", recording, "shop:app")
    assert '  state: "handled" → "dead-lettered"' in done.output.splitlines()
    assert '  error: null → "ZeroDivisionError: division by zero"' in done.output.splitlines()
    assert '  receipts 1: {"paid":0,"rate":3.0} → (nothing)' in done.output.splitlines()


def test_another_file_is_compared_with(recording: str, code: Code, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    run("replay", recording, "shop:app", "--update", "--against", other)
    assert run("replay", recording, "shop:app", "--against", other).exit_code == 0
    with pytest.raises(awoke.ConfigError, match=r"no .*\.expected to compare with; write it with --update"):
        run("replay", recording, "shop:app")


def test_wrong_input_is_refused(recording: str, code: Code) -> None:
    with pytest.raises(awoke.ConfigError, match="no route for topic 'clicks'"):
        run("replay", recording, "shop:app", "--update", "--topic", "clicks")
    with pytest.raises(awoke.ConfigError, match="expected a header with 'awoke_results'"):
        run("replay", recording, "shop:app", "--against", recording)
    with pytest.raises(awoke.ConfigError, match="can't be read"):
        run("replay", f"{recording}.no", "shop:app", "--update")


class Receipt(msgspec.Struct):
    total: int
    card: Annotated[str, awoke.Secret]


def test_secret_fields_are_compared_and_shown_only_if_that_is_said(
    recording: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = "4711"

    def found(target: str) -> awoke.App:
        app = awoke.App("shop")

        @app.on("orders", output=awoke.Topic("receipts", value=Receipt))
        def charge(message: awoke.Message[dict[str, int]]) -> Receipt:
            return Receipt(message.value["total"], card)

        return app

    monkeypatch.setattr(application, "find_app", found)
    run("replay", recording, "shop:app", "--update")
    card = "4712"
    done = run("replay", recording, "shop:app")
    assert (done.exit_code, done.output.count('  receipts 1 value.card: "[secret]" → "[secret]"')) == (1, 2)
    assert "471" not in done.output
    assert '"4711" → "4712"' in run("replay", recording, "shop:app", "--keep-secrets").output
