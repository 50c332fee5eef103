"""Finds the risks of a topic: a function of its replicas, its brokers and its settings alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from awoke.console.clusters.views import Risk, TopicPartition

OFFLINE, REFUSED, AT_LEAST, BEHIND, SINGLE, TIGHT = 90, 80, 70, 60, 40, 30
"""The severity of each kind: the loss of messages and of service comes first."""
NAMED_MAX = 10
"""The most partitions that a text names."""


def risks_of(
    partitions: Sequence[TopicPartition], brokers: Collection[int], min_in_sync: int | None = None
) -> list[Risk]:
    """Returns the risks, the most severe first. Without `min.insync.replicas` those about it are left out."""
    return sorted(_all(partitions, brokers, min_in_sync), key=lambda each: (-each.severity, each.kind))


def _all(partitions: Sequence[TopicPartition], brokers: Collection[int], least: int | None) -> Iterable[Risk]:
    offline = [each for each in partitions if each.leader is None]
    if offline:
        text = f"{_named(offline)} has no leader: its messages can be neither read nor written"
        yield _risk("no leader", OFFLINE, text, "start the brokers that have its replicas", offline)
    led = [each for each in partitions if each.leader is not None]
    if least is not None:
        refused = [each for each in led if len(each.in_sync) < least]
        if refused:
            text = f"{_named(refused)} has fewer than {least} replicas in sync: messages with acks=all are refused"
            yield _risk("producers refused", REFUSED, text, "start the brokers that lag behind", refused)
        last = [each for each in led if len(each.in_sync) == least and len(each.replicas) > least]
        if last:
            text = f"{_named(last)} has {least} replicas in sync: one less, and messages with acks=all are refused"
            yield _risk("at the least", AT_LEAST, text, "start the brokers that lag behind", last)
    behind = [each for each in led if len(each.in_sync) < len(each.replicas)]
    if behind:
        text = f"{_named(behind)} has replicas that are not in sync"
        yield _risk("under-replicated", BEHIND, text, "look for brokers that are away or slow", behind)
    single = [each for each in partitions if len(each.replicas) == 1]
    if single and len(brokers) > 1:
        text = f"{_named(single)} has one replica: the loss of its broker is the loss of its messages"
        yield _risk("one replica", SINGLE, text, "add replicas with kafka-reassign-partitions", single)
    tight = [each for each in led if least is not None and 1 < len(each.replicas) <= least]
    if tight:
        text = f"min.insync.replicas is {least}, the number of replicas: the restart of a broker refuses producers"
        yield _risk("no spare replica", TIGHT, text, "lower min.insync.replicas, or add replicas", tight)


def _risk(kind: str, severity: int, text: str, advice: str, of: Sequence[TopicPartition]) -> Risk:
    numbers = [each.partition for each in of]
    return Risk(kind=kind, severity=severity, text=text, advice=advice, partitions=numbers)


def _named(partitions: Sequence[TopicPartition]) -> str:
    numbers = [str(each.partition) for each in partitions[:NAMED_MAX]]
    rest = ", …" if len(partitions) > NAMED_MAX else ""
    return f"partition {', '.join(numbers)}{rest}"
