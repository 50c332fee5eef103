"""Errors of connections: which of them is a change, and which repeats one."""

from __future__ import annotations

import pytest

from awoke.observe.broker_lines import ALL_DOWN, QUIET_S, REMEMBERED_MAX, BrokerLines
from awoke.observe.events import ClientError

AWAY = [
    "GroupCoordinator: 127.0.0.1:1234: Connect to ipv4#127.0.0.1:1234 failed: Connection refused (after 0ms)",
    "GroupCoordinator: Connect to ipv4#127.0.0.1:1234 failed: Connection refused (after 0ms in state CONNECT)",
    "127.0.0.1:1234/2: Connect to ipv4#127.0.0.1:1234 failed: Connection refused (after 3ms in state CONNECT)",
    "127.0.0.1:1234/bootstrap: Connect to ipv4#127.0.0.1:1234 failed: refused (1 identical error(s) suppressed)",
    "ssl://127.0.0.1:1234/bootstrap: Connect to ipv4#127.0.0.1:1234 failed: Connection refused",
]


def error_of(text: str, code_name: str = "_TRANSPORT", client: str = "shop") -> ClientError:
    return ClientError(client=client, code=-195, code_name=code_name, text=text, is_fatal=False)


@pytest.mark.parametrize("text", AWAY)
def test_an_error_of_a_broker_that_is_known_to_be_away_is_no_change_in_whatever_form_it_comes(text: str) -> None:
    lines = BrokerLines()
    assert lines.is_change(error_of("127.0.0.1:1234/1: gone"))
    assert not lines.is_change(error_of(text))
    assert not lines.is_change(error_of(text, client="another"))


@pytest.mark.parametrize(
    "error",
    [
        error_of("127.0.0.1:4321/1: gone"),
        error_of("[::1]:1234/1: gone"),
        error_of("127.0.0.1:1234/1: gone", "_SSL"),
    ],
    ids=["another port", "another host", "another code"],
)
def test_an_error_of_another_broker_or_code_is_a_change(error: ClientError) -> None:
    lines = BrokerLines()
    lines.is_change(error_of("127.0.0.1:1234/1: gone"))
    assert lines.is_change(error)


def test_an_error_without_an_address_is_known_by_its_text_without_numbers() -> None:
    lines = BrokerLines()
    assert lines.is_change(error_of("login failed (attempt 1)"))
    assert not lines.is_change(error_of("login failed (attempt 2)"))
    assert lines.is_change(error_of("login refused (attempt 2)"))


def test_brokers_return_once_after_all_were_down() -> None:
    lines = BrokerLines()
    assert not lines.is_return()
    lines.is_change(error_of("1/1 brokers are down", ALL_DOWN))
    assert not lines.is_change(error_of("3/3 brokers are down", ALL_DOWN))
    assert lines.is_return()
    assert not lines.is_return()
    assert lines.is_change(error_of("1/1 brokers are down", ALL_DOWN)), "they are down again"


def test_an_error_that_comes_after_a_silence_is_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("awoke.observe.broker_lines.time.monotonic", lambda: now_s[0])
    lines, error = BrokerLines(), error_of(AWAY[0])
    assert lines.is_change(error)
    for _ in range(4):
        now_s[0] += QUIET_S
        assert not lines.is_change(error)
    now_s[0] += QUIET_S + 1
    assert lines.is_change(error)


def test_what_is_known_of_errors_is_bounded() -> None:
    lines = BrokerLines()
    for number in range(2 * REMEMBERED_MAX):
        lines.is_change(error_of(f"10.0.0.1:{number}/1: gone"))
    assert len(lines._said_at_s) == REMEMBERED_MAX


def test_the_error_that_was_silent_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.observe.broker_lines.REMEMBERED_MAX", 2)
    lines = BrokerLines()
    first, second, third = (error_of(f"10.0.0.{number}:9092/1: gone") for number in (1, 2, 3))
    for error in (first, second, first, third):
        lines.is_change(error)
    assert not lines.is_change(first)
    assert lines.is_change(second)
