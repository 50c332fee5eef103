"""The pytest plugin on Apache Kafka: the same tests, and nothing of others is touched."""

from __future__ import annotations

import pytest

import awoke.testing
import awoke.testing.runs
from tests.support.clusters import RealCluster, unique

pytest_plugins = ["pytester"]

TEST = """
import awoke

def test_order(awoke_run):
    app = awoke.App("{app}")

    @app.on("{topic}", output="{topic}.bills")
    def charge(message):
        return message.value.upper()

    probe = awoke_run(app)
    assert probe.send("{topic}", b"first").offset == 0
    probe.idle()
    assert [each.value for each in probe.sent("{topic}.bills", 1)] == [b"FIRST"]

def test_order_again(awoke_run):
    test_order(awoke_run)
"""


def inner(pytester: pytest.Pytester, cluster: RealCluster, test: str) -> pytest.RunResult:
    """Runs tests within the test, on a broker of Apache Kafka."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error")
    pytester.makepyfile(test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--awoke-brokers", cluster.bootstrap_servers)


def test_a_test_runs_on_kafka_and_leaves_neither_topics_nor_groups(
    pytester: pytest.Pytester, real_cluster: RealCluster
) -> None:
    topic, app = unique("orders"), unique("shop")
    inner(pytester, real_cluster, TEST.format(topic=topic, app=app)).assert_outcomes(passed=2)
    assert [each.name for each in real_cluster.admin.topics() if each.name.startswith(topic)] == []
    assert [each.name for each in real_cluster.admin.list_groups() if each.name.startswith(app)] == []


def test_a_topic_of_others_is_refused_and_stays(pytester: pytest.Pytester, real_cluster: RealCluster) -> None:
    topic, app = unique("orders"), unique("shop")
    real_cluster.create_topic(topic)
    result = inner(pytester, real_cluster, TEST.format(topic=topic, app=app))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([f"*ConfigError: topic '{topic}' exists on *, and no test has created it; *"])
    assert real_cluster.admin.describe_topic(topic).name == topic


def test_a_group_of_others_is_refused_and_stays(pytester: pytest.Pytester, real_cluster: RealCluster) -> None:
    topic, app = unique("orders"), unique("shop")
    with awoke.testing.running(member(real_cluster, app), bootstrap_servers=real_cluster.bootstrap_servers):
        test = TEST.replace('output="{topic}.bills"', 'output="{topic}.bills", group="{app}-audit"')
        result = inner(pytester, real_cluster, test.format(topic=topic, app=app))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([f"*ConfigError: group '{app}-audit' exists on *"])


def member(cluster: RealCluster, app: str) -> awoke.App:
    """Returns an app of others, whose group a test names, too."""
    topic = unique("audited")
    cluster.create_topic(topic)
    other = awoke.App(f"{app}-audit")
    other.on(topic)(lambda message: None)
    return other
