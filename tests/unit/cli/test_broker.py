"""`awoke broker`: brokers in memory with their topics, until a signal."""

from __future__ import annotations

import os
import signal

import pytest

import awoke
from awoke.cli import broker as module
from awoke.cli.broker import broker
from awoke.runtime.process.inbox import Inbox


def test_the_command_runs_until_a_signal_and_says_how_to_use_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    brokers: list[int] = []
    get = Inbox.get

    def use(heard: Inbox) -> str:
        """Uses the broker while the command waits, and ends the wait."""
        settings = dict(word.split("=", 1) for word in said[1].split()[1:])
        with awoke.Admin(settings["AWOKE_BOOTSTRAP_SERVERS"]) as admin:
            said.extend(f"{each.name} {len(each.partitions)}" for each in admin.topics())
            brokers.append(len(admin.brokers()))
        os.kill(os.getpid(), signal.SIGTERM)
        return get(heard)

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(module, "say", said.append)
    monkeypatch.setattr(Inbox, "get", use)
    broker(["orders", "payments"], 3, 2)
    assert said[0].startswith("brokers in memory have the topics orders, payments; Ctrl-C stops them")
    assert (said[2:], brokers) == (["orders 3", "payments 3"], [2])
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.parametrize("topic", ["", "my orders"])
def test_a_topic_needs_a_name_that_kafka_takes(topic: str) -> None:
    with pytest.raises(awoke.ConfigError, match=r"awoke broker: topic '.*': a topic's name has"):
        broker(["orders", topic], 1)
