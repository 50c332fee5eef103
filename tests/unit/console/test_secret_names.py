"""Names of secret fields in reports: what an app tells is what a console without its code knows."""

from __future__ import annotations

import dataclasses
import logging
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.console import secret_names
from awoke.console.secret_names import names_of, topics_of
from awoke.console.state import State
from awoke.console.views import Report, SecretFields
from awoke.declare.secret_topics import declared_by
from awoke.operate.commands.views import MAJOR
from tests.unit.console.web.fakes import FakeLive, report


class Payment(msgspec.Struct):
    card: Annotated[str, awoke.Secret]
    before: list[Payment] = []


def app_of() -> awoke.App:
    app = awoke.App("shop")
    app.on("pay", value=Payment, key=awoke.msgpack(Payment), dead_letter="dead")(print)
    app.on(awoke.pattern(r"pay\..*"), value=Payment)(print)
    return app


def sent(*names: SecretFields) -> Report:
    """A report as it arrives."""
    return msgspec.json.decode(msgspec.json.encode(report(secrets=list(names))), type=Report)


def record_of(node: str, value: bytes | None) -> Any:
    return SimpleNamespace(key=node.encode(), value=value)


def test_a_console_knows_what_the_app_declares() -> None:
    names = names_of(app_of())
    assert names is not None
    known = topics_of([sent(*names)], gone=None, problem=None)
    assert (known.parts, known.unknown_because) == (declared_by(app_of()).parts, None)


def test_names_are_paths_without_more() -> None:
    names = names_of(app_of()) or []
    assert msgspec.to_builtins(names[0]) == {"topic": "pay", "fields": ("/card",), "same": (("/before/*", ""),)}
    assert names_of(awoke.App("shop")) == []


def test_an_app_whose_names_are_not_known_does_not_tell_any(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(app: Any) -> Any:
        raise RuntimeError("no")

    with caplog.at_level(logging.WARNING):
        monkeypatch.setattr(secret_names, "BYTES_MAX", 10)
        assert names_of(app_of()) is None
        monkeypatch.setattr(secret_names, "declared_by", fail)
        assert names_of(app_of()) is None
    assert [each.getMessage().partition(":")[0] for each in caplog.records] == ["consoles hide all messages"] * 2


def test_nothing_is_known_until_a_process_has_told() -> None:
    assert topics_of([], gone=None, problem=None).has("pay")
    assert topics_of([report()], gone=None, problem=None).has("pay"), "an earlier awoke tells no names"
    assert not topics_of([report(), report(secrets=[])], gone=None, problem=None).has("pay")
    assert topics_of([report(secrets=[])], gone=None, problem="it is late").unknown_because == (
        "the secret fields of the app are not known: it is late; "
        "open the console as MODULE:APP, or run the app with console=True"
    )


def test_the_names_of_all_processes_count() -> None:
    one, other = SecretFields(topic="a", fields=("/x",)), SecretFields(topic="b", fields=("/y",))
    known = topics_of([sent(one), sent(other), sent(one)], gone=None, problem=None)
    assert [each.topic for each in known.parts] == ["a", "b"]


def test_words_of_a_later_version_hide_most() -> None:
    later = SecretFields(topic="a", part="header", form="xml", fields=("/x",))
    known = topics_of([sent(later)], gone=None, problem=None)
    assert [(each.part, each.form) for each in known.parts] == [("value", "other"), ("key", "other")]


@pytest.mark.parametrize("is_decoded", [True, False])
def test_the_names_of_a_process_outlive_it(is_decoded: bool) -> None:
    live = FakeLive([report("a", secrets=[SecretFields(topic="pay", fields=("/card",))])])
    if is_decoded:
        live.snapshot()
    live.state.on_report(record_of("a", None))
    assert [each.topic for each in live.snapshot().secrets.parts] == ["pay"]
    assert live.snapshot().secrets.unknown_because is None
    live.add(report("b", secrets=[]))
    assert live.snapshot().secrets.parts == (), "a process that runs knows better"


def test_the_names_of_stopped_processes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.console.state.GONE_MAX", 1)
    state = State("shop")
    for name in ("a", "b"):
        said = report(name, secrets=[SecretFields(topic=name, fields=("/card",))])
        state.on_report(record_of(name, msgspec.json.encode(said)))
        state.on_report(record_of(name, None))
    assert [each.topic for each in state.gone or []] == ["b"]


def test_a_process_of_a_newer_awoke_may_have_secrets_that_are_not_understood() -> None:
    live = FakeLive([report("a", secrets=[]), report("b", secrets=[], major=MAJOR + 1)])
    assert "newer awoke" in (live.snapshot().secrets.unknown_because or "")


def test_reports_that_are_not_read_to_their_end_tell_too_little() -> None:
    now = FakeLive([report("a", secrets=[])]).snapshot()
    assert not now.secrets.has("pay")
    assert "are being read" in (dataclasses.replace(now, is_read=False).secrets.unknown_because or "")
    away = dataclasses.replace(now, is_read=False, problem="the brokers are away")
    assert "known: the brokers are away;" in (away.secrets.unknown_because or "")
