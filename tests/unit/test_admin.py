"""The wait for a topic that may be new, without a broker."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import awoke


def test_closing_ends_a_wait_for_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def unknown(name: str, timeout_s: float) -> None:
        asked.set()
        raise awoke.UnknownTopic(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART", is_retriable=False)

    admin = awoke.Admin("127.0.0.1:1")
    monkeypatch.setattr(admin, "describe_topic", unknown)
    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(admin.wait_for_topic, "orders", 600.0)
        assert asked.wait(20)
        admin.close()
        with pytest.raises(awoke.UnknownTopic, match="orders"):
            waiting.result(20)
