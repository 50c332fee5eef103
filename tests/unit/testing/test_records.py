"""The data of a probe."""

from __future__ import annotations

from awoke.testing import Failure


def failure(error: Exception) -> Failure:
    return Failure("job.failed", "charge", "orders", 0, 7, 2, error)


def test_failures_are_equal_if_all_but_their_exceptions_are() -> None:
    assert failure(ValueError("no card")) == failure(ValueError("no card"))


def test_the_text_of_a_failure_names_its_place_and_its_exception() -> None:
    assert str(failure(ValueError("no card"))) == (
        "job.failed: charge at orders[0] offset 7, attempt 2: ValueError('no card')"
    )
