"""Stacks and tracebacks begin with the user's first frame, and have bounds."""

from __future__ import annotations

import logging
import time

import pytest

import awoke
from awoke.observe.events import JobFailed
from awoke.observe.logs import FORMAT, ConsoleFormatter, JsonFormatter
from awoke.text.frames import traceback_text
from awoke.text.printable import TEXT_MAX, bounded, shown, text_of
from awoke.waiting.drive import drive

SOON_S = 60.0


def raised_by_user() -> None:
    raise ValueError("no card")


async def flow() -> None:
    raised_by_user()


def raised(call: object) -> BaseException:
    assert callable(call)
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def logged(error: BaseException, formatter: logging.Formatter) -> str:
    record = logging.LogRecord(
        "shop", logging.ERROR, __file__, 1, "failed", (), (type(error), error, error.__traceback__)
    )
    return formatter.format(record)


def test_a_traceback_begins_with_the_first_frame_that_is_not_awokes() -> None:
    error = raised(lambda: drive(flow()))
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_name != "drive":
        trace = trace.tb_next
    text = traceback_text(error, trace)
    assert "in flow" in text.splitlines()[1], text
    assert "in drive" not in text
    assert text.endswith("ValueError: no card")


def test_an_error_of_awokes_own_is_its_text_and_its_advice() -> None:
    def encode() -> None:
        with awoke.Producer("127.0.0.1:1") as producer:
            producer.produce("orders", object())

    error = raised(encode)
    assert error.__cause__ is not None
    lines = traceback_text(error, None).splitlines()
    assert len(lines) <= 3, lines
    assert "can't be written as JSON" in lines[0]


@pytest.mark.parametrize("formatter", [ConsoleFormatter(FORMAT), JsonFormatter()])
def test_an_exception_with_megabytes_is_a_short_line(formatter: logging.Formatter) -> None:
    error = raised(lambda: int("x" * 10_000_000))
    other = ValueError("\n\x00" * 5_000_000)
    for each in (error, other):
        assert len(logged(each, formatter)) < 10 * TEXT_MAX
    began_s = time.monotonic()
    assert len(text_of(other)) < 2 * TEXT_MAX
    assert len(shown(other)) < 10 * TEXT_MAX
    assert time.monotonic() - began_s < SOON_S


def test_what_is_left_out_is_said_with_begin_and_end() -> None:
    text = bounded("a" * TEXT_MAX + "b" * TEXT_MAX)
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert f"{TEXT_MAX:,} characters left out" in text
    assert bounded("short") == "short"


def test_an_event_of_user_code_is_logged_from_the_users_frame_on(caplog: pytest.LogCaptureFixture) -> None:
    error = raised(lambda: drive(flow()))
    awoke.Events().emit(
        JobFailed(handler="h", topic="orders", partition=0, offset=0, attempt=1, retry_in_s=None, error=error)
    )
    assert "in flow" in caplog.text
