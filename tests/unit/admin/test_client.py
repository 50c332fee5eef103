"""The client that blocks, without a broker."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import awoke
from awoke.admin.client import AdminClient


def test_closing_ends_a_wait_for_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    async def unknown(name: str, timeout_s: float) -> None:
        asked.set()
        raise awoke.UnknownTopic(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART", is_retriable=False)

    admin = awoke.Admin("127.0.0.1:1")
    monkeypatch.setattr(admin._topics, "describe", unknown)
    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(admin.wait_for_topic, "orders", 600.0)
        assert asked.wait(20)
        admin.close()
        with pytest.raises(awoke.UnknownTopic, match="orders"):
            waiting.result(20)


def test_closing_again_does_nothing_and_later_calls_say_so() -> None:
    admin = awoke.Admin("127.0.0.1:1")
    admin.close()
    admin.close()
    for ask in (admin.brokers, admin.list_groups, admin.describe_acls):
        with pytest.raises(awoke.ClosedError):
            ask()


def test_a_wrong_property_names_its_origin() -> None:
    with pytest.raises(awoke.ConfigError, match=r"did you mean 'client\.id'"):
        AdminClient("127.0.0.1:1", kafka={"client.ids": "a"})


def test_a_method_without_a_broker_says_which_address_does_not_answer() -> None:
    with awoke.Admin("127.0.0.1:1") as admin:
        for ask in (lambda: admin.describe_configs("orders", 0.2), lambda: admin.list_groups(0.2)):
            with pytest.raises(awoke.BrokerUnreachable, match=r"127\.0\.0\.1:1"):
                ask()
