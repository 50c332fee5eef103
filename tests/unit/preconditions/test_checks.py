"""Checks of values that user code gives: what they take, and the owner, name and setting of their errors."""

from __future__ import annotations

from typing import TypedDict

import pytest

from awoke.errors import ConfigError
from awoke.preconditions import checks

INFINITE, NO_NUMBER = float("inf"), float("nan")


@pytest.mark.parametrize(("value", "least"), [(1, 1), (0, 0), (10**20, 1)])
def test_a_whole_number_is_taken_from_the_least(value: int, least: int) -> None:
    checks.whole("Retry", "attempts", value, least, "retry")


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, None])
def test_what_is_no_whole_number_is_refused_with_its_owner_and_setting(value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^Retry: attempts must be a whole number from 1, not {value!r}$") as error:
        checks.whole("Retry", "attempts", value, 1, "retry")
    assert error.value.property == "retry"


@pytest.mark.parametrize("value", [0, 0.5, 10**20])
def test_seconds_are_a_finite_number_from_0(value: float) -> None:
    checks.seconds("Flow", "delay_s", value, "flow")


@pytest.mark.parametrize("value", [-0.1, INFINITE, NO_NUMBER, "1", True, None])
def test_seconds_that_are_none_are_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="Flow: delay_s must be a number, from 0, not ") as error:
        checks.seconds("Flow", "delay_s", value, "flow")
    assert error.value.property == "flow"


def test_zero_seconds_are_refused_where_they_make_no_sense() -> None:
    checks.seconds("Flow", "per_s", 0.1, "flow", is_zero_allowed=False)
    with pytest.raises(ConfigError, match="must be a number, more than 0, not 0"):
        checks.seconds("Flow", "per_s", 0, "flow", is_zero_allowed=False)


def test_optional_seconds_may_be_none_and_are_seconds_otherwise() -> None:
    checks.optional_seconds("Flow", "delay_s", None, "flow")
    with pytest.raises(ConfigError, match="from 0, not -1"):
        checks.optional_seconds("Flow", "delay_s", -1, "flow")
    with pytest.raises(ConfigError, match="more than 0, not 0"):
        checks.optional_seconds("Flow", "delay_s", 0, "flow", is_zero_allowed=False)


def test_a_value_of_another_type_is_refused_with_an_example() -> None:
    checks.kind("route 'orders'", "retry", None, dict, "Retry()")
    checks.kind("route 'orders'", "retry", {}, dict, "Retry()")
    with pytest.raises(ConfigError, match=r"^route 'orders': retry is given as in retry=Retry\(\), not 3$") as error:
        checks.kind("route 'orders'", "retry", 3, dict, "Retry()")
    assert error.value.property == "retry"


class Known(TypedDict, total=False):
    """Options."""

    first: int
    second: int


def test_the_first_unknown_option_is_named() -> None:
    checks.options("Producer", {"second": 1}, Known)
    with pytest.raises(TypeError, match=r"^Producer: there is no option 'frist'$"):
        checks.options("Producer", {"zzz": 1, "first": 1, "frist": 1}, Known)


@pytest.mark.parametrize("name", ["orders", "a", "A.b_c-9", "x" * 249, "..."])
def test_a_name_that_brokers_take_is_taken(name: str) -> None:
    checks.topic("route", "output", name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "caf\u00e9", "orders\n", "a/b"])
def test_a_name_that_no_broker_takes_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^route: output .*: a topic's name has 1 to 249 letters") as error:
        checks.topic("route", "output", name)
    assert error.value.property == "output"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, True), (0.5, True), (-1, True), (True, False), (INFINITE, False), (NO_NUMBER, False), ("1", False)],
)
def test_a_number_is_finite_and_no_bool(value: object, expected: bool) -> None:
    assert checks.is_number(value) is expected
