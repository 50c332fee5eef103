"""Elections of leaders by an admin client, on three brokers of which some are away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import awoke
from tests.support.clusters import unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def brokers() -> Iterator[ThreeBrokers]:
    """Three brokers, which all tests leave running: to start them takes 10 s of processor time."""
    started = ThreeBrokers()
    with started:
        yield started


def test_a_preferred_leader_leads_again_after_its_return(brokers: ThreeBrokers) -> None:
    topic = unique("topic")
    with awoke.Admin(brokers.servers_of(1)) as admin:
        brokers.create_topic(topic, [[2, 1], [1, 2]], {})
        assert {admin.describe_broker_configs(number)["node.id"].value for number in (1, 3)} == {"1", "3"}
        brokers.stop_broker(2)
        brokers.wait_for_leader(topic, 0, 1)
        with pytest.raises(awoke.KafkaError, match=rf"elect leaders: {topic}\[0\]") as away:
            admin.elect_leaders([(topic, 0)])
        assert away.value.code_name == "PREFERRED_LEADER_NOT_AVAILABLE"
        brokers.start_broker(2)
        brokers.wait_in_sync(topic, 0, 2)
        assert admin.elect_leaders([(topic, 0), (topic, 1)]) == {(topic, 0): True, (topic, 1): False}
        brokers.wait_for_leader(topic, 0, 2)


def test_an_unclean_election_makes_a_leader_of_a_replica_that_lags_behind(brokers: ThreeBrokers) -> None:
    topic = unique("topic")
    with awoke.Admin(brokers.servers_of(1)) as admin:
        brokers.create_topic(topic, [[2, 3]], {"unclean.leader.election.enable": "false"})
        brokers.stop_broker(3)
        brokers.wait_in_sync(topic, 0, 1)
        brokers.kill_broker(2)
        brokers.wait_for_leader(topic, 0, -1)
        brokers.start_broker(3)

        def is_elected() -> bool:
            with contextlib.suppress(awoke.KafkaError):  # Until the controller knows that broker 3 is back.
                return admin.elect_leaders([(topic, 0)], "unclean", 2) == {(topic, 0): True}
            return False

        wait_until(is_elected, "broker 3 can be elected", 60)
        brokers.wait_for_leader(topic, 0, 3)
    brokers.start_broker(2)
