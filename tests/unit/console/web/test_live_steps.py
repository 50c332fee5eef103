"""The state says what it waits for: the brokers, the topic of reports, the first report; and since when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.console.topics import ConsoleTopics
from awoke.console.web.live import BROKERS, FIRST, REPORTS, Live
from awoke.console.web.steps import Step, StepState
from awoke.errors import AuthorizationFailed, AwokeError, BrokerUnreachable, OperationTimeout, UnknownTopic
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.settings import load
from tests.support.waiting import Collected, wait_until
from tests.unit.console.web.fakes import report

DONE, WAITING, FAILED = StepState.DONE, StepState.WAITING, StepState.FAILED


def steps_of(live: Live) -> dict[str, Step]:
    return {each.name: each for each in live.snapshot(0.0).steps}


def states_of(live: Live) -> dict[str, StepState]:
    return {name: each.state for name, each in steps_of(live).items()}


def test_brokers_topic_and_first_report_are_awaited_one_after_the_other() -> None:
    topics = ConsoleTopics.of("shop")
    with EmbeddedCluster() as cluster, awoke.Producer(cluster.bootstrap_servers) as producer:
        live, told = Live("shop", load({"bootstrap_servers": cluster.bootstrap_servers}).values), Collected[Any]()
        live.subscribe(lambda: told.add(None))
        try:
            wait_until(lambda: states_of(live) == {BROKERS: DONE, REPORTS: WAITING}, "the topic is awaited")
            assert "there is no topic" in steps_of(live)[REPORTS].text
            cluster.create_topic(topics.reports)
            wait_until(lambda: states_of(live).get(FIRST) is WAITING, "the first report is awaited")
            assert states_of(live) == {BROKERS: DONE, REPORTS: DONE, FIRST: WAITING}
            since_ms, count = steps_of(live)[FIRST].since_ms, len(told.items)

            producer.produce(topics.reports, msgspec.json.encode(report("a")), key="a").wait(60)
            told.wait_for(count + 1)
            wait_until(lambda: states_of(live)[FIRST] is DONE, "the first report has come")
            first = steps_of(live)[FIRST]
            assert first.since_ms == since_ms
            assert first.ended_ms is not None
            producer.produce(topics.reports, None, key="a").wait(60)
            wait_until(lambda: states_of(live)[FIRST] is WAITING, "each process has stopped")
            assert steps_of(live)[FIRST].since_ms >= first.ended_ms
        finally:
            live.close()


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (BrokerUnreachable, {BROKERS: WAITING}),
        (OperationTimeout, {BROKERS: WAITING}),
        (UnknownTopic, {BROKERS: DONE, REPORTS: WAITING}),
        (AuthorizationFailed, {BROKERS: DONE, REPORTS: FAILED}),
    ],
)
def test_a_failure_says_whether_the_brokers_or_the_topic_are_awaited(
    kind: type[AwokeError], state: dict[str, StepState]
) -> None:
    live = Live("shop", load({}).values)
    error = kind("why") if kind is OperationTimeout else kind("why", 1, "WHY")
    live._fail("reports", "__awoke-shop.reports", error)
    assert {each.name: each.state for each in live._build().steps} == state


def test_after_a_failure_the_reports_are_not_read_to_their_end_any_more() -> None:
    live = Live("shop", load({}).values)
    live._on_end("reports", "__awoke-shop.reports")
    assert live._build().is_read
    live._fail("reports", "__awoke-shop.reports", AuthorizationFailed("why", 1, "WHY"))
    assert not live._build().is_read
    assert live._build().secrets.unknown_because is not None


def test_a_step_of_another_is_told_once_and_shown() -> None:
    live, told = Live("shop", load({}).values), list[int]()
    live.subscribe(lambda: told.append(live._version))
    for _ in range(2):
        live.note("Swarm", WAITING, "it imports the app")
    assert [(each.name, each.text) for each in live._build().steps] == [("Swarm", "it imports the app")]
    assert told == [1]
