"""An act needs a reason; one that can't be recorded is not made."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.console.web import recorded as module
from awoke.console.web.grants import Grant
from awoke.console.web.page import Asked, Wrong
from awoke.console.web.recorded import recorded, text_of
from awoke.settings import load


def asked(**form: str) -> Asked:
    source: Any = None
    return Asked("shop", load({}).values, Grant(who="ada"), {}, {"q": " a "}, form, source)


class FakeActs:
    """Notes acts, or fails to record them."""

    made: list[Any] = []
    error: awoke.AwokeError | None = None

    def __init__(self, brokers: Any, app: str, who: str) -> None:
        self._of = app, who

    def make(self, verb: str, arguments: Any, reason: str, act: Any) -> str:
        if self.error is not None:
            raise self.error
        self.made.append((*self._of, verb, reason))
        return str(act())


def test_an_act_is_recorded_with_its_operator_and_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Acts", FakeActs)
    monkeypatch.setattr(FakeActs, "made", [])
    done = recorded(asked(reason=" why "), "configure", {}, lambda: "it is done", "/topics")
    assert (done.text, done.back, done.is_failed, FakeActs.made) == (
        "it is done",
        "/topics",
        False,
        [("shop", "ada", "configure", "why")],
    )


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_an_act_needs_a_reason(reason: str) -> None:
    with pytest.raises(Wrong, match="needs a reason"):
        recorded(asked(reason=reason), "configure", {}, lambda: "", "/")


def test_an_act_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Acts", FakeActs)
    monkeypatch.setattr(FakeActs, "error", awoke.AwokeError("no audit"))
    done = recorded(asked(reason="why"), "configure", {}, lambda: "never", "/")
    assert (done.is_failed, done.text) == (True, "nothing was done, or not all: no audit")


def test_a_field_is_of_the_form_or_the_query() -> None:
    assert (text_of(asked(q="b"), "q"), text_of(asked(), "q"), text_of(asked(), "x")) == ("b", "a", None)
