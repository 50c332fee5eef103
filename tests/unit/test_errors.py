"""Errors: which refusals are for good."""

from __future__ import annotations

import pytest

import awoke
from awoke.errors import is_refused_for_good, kafka_error


@pytest.mark.parametrize("code", [3, 10, 17, 18, 29, 44, 87, -188, -190, -186])
def test_a_refusal_of_the_record_itself_is_for_good(code: int) -> None:
    assert is_refused_for_good(awoke.DeliveryFailed("no", code))
    assert is_refused_for_good(awoke.KafkaError("no", code))


@pytest.mark.parametrize("code", [-195, -192, -185, -184, -151, -138, 2, 5, 6, 7, 19, 20, 56])
def test_what_may_work_later_is_not(code: int) -> None:
    assert not is_refused_for_good(awoke.DeliveryFailed("no", code))


def test_errors_of_awoke_and_of_user_code_are_told_apart() -> None:
    assert is_refused_for_good(awoke.MessageTooLarge("no"))
    assert not is_refused_for_good(awoke.QueueFull("no"))
    assert not is_refused_for_good(ValueError("no"))


def test_what_the_brokers_do_not_allow_has_a_class_of_its_own() -> None:
    refused = [
        code for code in range(-200, 130) if type(kafka_error("no", code, "", False)) is awoke.AuthorizationFailed
    ]
    assert refused == [29, 30, 31, 53]
