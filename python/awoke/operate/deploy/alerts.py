"""The alert rules for Prometheus. Each names a state that needs an operator, and what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

from awoke.observe.metrics import catalogue
from awoke.operate.deploy.expressions import BY_NAME, increase, seconds_of_work

Json = dict[str, Any]


class Alert(NamedTuple):
    """One rule."""

    name: str
    expression: str
    lasts: str
    """The time after which the state counts."""
    severity: str
    summary: str
    advice: str


def _of(name: str, labels: tuple[str, ...], interval: str = "10m", least: int = 0) -> str:
    """Returns the expression of a counter that has grown by more than this.

    A counter begins with its first event, and Prometheus counts no increase for the first value that it sees.
    """
    begun = f"sum by ({', '.join(labels)}) ({name} unless {name} offset {interval})"
    return f"{increase(BY_NAME[name], labels, interval)} > {least} or {begun} > {least}"


ALERTS = (
    Alert(
        "AwokeUnhealthy",
        f"{catalogue.HEALTHY.name} == 0",
        "5m",
        "critical",
        "{{ $labels.instance }} is unhealthy",
        "Ask /health of the process for its reasons.",
    ),
    Alert(
        "AwokeBehind",
        f"{seconds_of_work('30m')} > 600",
        "15m",
        "warning",
        "{{ $labels.topic }}: one worker would need {{ $value | humanizeDuration }} for what waits",
        "Start more processes, up to the number of partitions, or look for a slow handler.",
    ),
    Alert(
        "AwokeNothingAssigned",
        f"sum by (group) ({catalogue.ASSIGNED.name}) == 0",
        "10m",
        "critical",
        "no process of the group {{ $labels.group }} has a partition",
        "Look in the log for group.waiting and for errors of authorization.",
    ),
    Alert(
        "AwokeStuckPartitions",
        f"sum by (group, topic) ({catalogue.STUCK.name}) > 0",
        "2m",
        "critical",
        "{{ $labels.topic }}: {{ $value }} partitions give no more messages",
        "/health names the reason; then: awoke resume.",
    ),
    Alert(
        "AwokeFailingMessages",
        f"sum by (group, topic) ({catalogue.FAILING.name}) > 0",
        "15m",
        "warning",
        "{{ $labels.topic }}: {{ $value }} messages fail and are tried again",
        "Repair the handler or its dependency; the messages behind them wait.",
    ),
    Alert(
        "AwokeOldestMessage",
        f"max by (group, topic) ({catalogue.COMMIT_GAP_AGE.name}) > 900",
        "5m",
        "warning",
        "{{ $labels.topic }}: a message is under way for {{ $value | humanizeDuration }}",
        "A handler hangs, or a message is tried again and again: awoke dump, /health.",
    ),
    Alert(
        "AwokeDeadLetters",
        _of("awoke_dead_letters_total", ("topic", "handler")),
        "0m",
        "warning",
        "{{ $labels.topic }}: messages went to the dead letter topic",
        "awoke dead-letter list, then replay or purge.",
    ),
    Alert(
        "AwokeDeadLettersFail",
        _of("awoke_dead_letter_failures_total", ("topic", "handler")),
        "0m",
        "critical",
        "{{ $labels.topic }}: dead letters can't be sent",
        "The partition waits. Does the dead letter topic exist, and may the app write to it?",
    ),
    Alert(
        "AwokeSkippedMessages",
        _of("awoke_skipped_messages_total", ("topic", "handler")),
        "0m",
        "warning",
        "{{ $labels.topic }}: messages were skipped without a dead letter",
        "The log has the offset and the error of each.",
    ),
    Alert(
        "AwokeOverdueJobs",
        _of("awoke_overdue_jobs_total", ("reason",)),
        "0m",
        "warning",
        "jobs run longer than they may ({{ $labels.reason }})",
        "The log has the stack of each.",
    ),
    Alert(
        "AwokeCommitsFail",
        _of("awoke_commit_failures_total", ("code",), least=3),
        "5m",
        "warning",
        "commits are refused: {{ $labels.code }}",
        "Messages will be processed again after a restart. Look at the brokers.",
    ),
    Alert(
        "AwokePartitionsLost",
        f'sum (increase({BY_NAME["awoke_rebalances_total"].name}{{change="lost"}}[30m])) > 3',
        "0m",
        "warning",
        "processes lose their partitions again and again",
        "They answer the coordinator too late: is the CPU limit too low?",
    ),
    Alert(
        "AwokeNoBroker",
        f"max by (instance) ({catalogue.BROKERS_CONNECTED.name}) == 0",
        "5m",
        "critical",
        "{{ $labels.instance }} is connected to no broker",
        "Look at the brokers and the network. A restart does not help.",
    ),
    Alert(
        "AwokeLogWentBack",
        _of("awoke_rewinds_total", ("topic",)),
        "0m",
        "critical",
        "{{ $labels.topic }}: the log went back",
        "The topic was truncated or made again: messages are lost.",
    ),
    Alert(
        "AwokeThreadsLeak",
        _of("awoke_leaked_threads_total", ("owner",), "1h"),
        "0m",
        "warning",
        "{{ $labels.owner }} leaves threads behind",
        "The event thread.leaked has the place where each was started.",
    ),
    Alert(
        "AwokeRpcFails",
        _of("awoke_rpc_failures_total", ("method",)),
        "0m",
        "warning",
        "the method {{ $labels.method }} raises exceptions",
        "The log has their tracebacks.",
    ),
    Alert(
        "AwokeRegistryAway",
        f"{increase(catalogue.REGISTRY_ERRORS, ('instance',), '10m')} > 0",
        "5m",
        "warning",
        "{{ $labels.instance }} gets no answer from the schema registry",
        "Messages that need a schema wait; none is lost.",
    ),
)


def rules() -> Json:
    """Returns the rule file. JSON is YAML, so that Prometheus reads it as it is."""
    return {
        "groups": [
            {
                "name": "awoke",
                "rules": [
                    {
                        "alert": each.name,
                        "expr": each.expression,
                        "for": each.lasts,
                        "labels": {"severity": each.severity},
                        "annotations": {"summary": each.summary, "description": each.advice},
                    }
                    for each in ALERTS
                ],
            }
        ]
    }
