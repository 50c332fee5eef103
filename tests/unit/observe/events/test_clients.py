"""Events of clients: the level of what librdkafka says."""

from __future__ import annotations

import logging

import pytest

from awoke.observe.events import ClientError, ClientLog


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        *((level, logging.ERROR) for level in range(4)),
        (4, logging.WARNING),
        (5, logging.INFO),
        (6, logging.INFO),
        (7, logging.DEBUG),
    ],
)
def test_a_line_of_librdkafka_has_the_level_of_syslog(level: int, expected: int) -> None:
    assert ClientLog(client="shop", level=level, facility="MAXPOLL", text="late").log_level == expected


@pytest.mark.parametrize("facility", ["CONFWARN", "FAIL"])
def test_a_line_that_repeats_an_event_or_warns_in_vain_is_for_debugging(facility: str) -> None:
    assert ClientLog(client="shop", level=3, facility=facility, text="gone").log_level == logging.DEBUG


@pytest.mark.parametrize(("is_fatal", "expected"), [(True, logging.ERROR), (False, logging.WARNING)])
def test_a_fatal_error_of_a_client_is_an_error_and_any_other_a_warning(is_fatal: bool, expected: int) -> None:
    error = ClientError(client="shop", code=-195, code_name="_TRANSPORT", text="gone", is_fatal=is_fatal)
    assert error.log_level == expected
