"""Topics that no broker would create are refused before one is asked."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.clusters.topics import check_new
from awoke.console.clusters.views import NewTopic


@pytest.mark.parametrize(
    "new",
    [
        NewTopic(name=""),
        NewTopic(name="a b"),
        NewTopic(name="orders", partitions=0),
        NewTopic(name="orders", partitions=10_001),
        NewTopic(name="orders", replicas=0),
    ],
)
def test_a_topic_that_no_broker_would_create_is_refused(new: NewTopic) -> None:
    with pytest.raises(awoke.ConfigError):
        check_new(new)


def test_a_topic_with_the_brokers_defaults_is_fine() -> None:
    check_new(NewTopic(name="orders"))
