"""Ranks the reasons why messages of an app are not processed: a function of the view models alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from awoke.console.open_transactions import is_read_to, open_of
from awoke.console.views import (
    AppView,
    GroupPartition,
    GroupView,
    NodeView,
    OutputTopic,
    Partition,
    Reason,
    Report,
    SharedGroup,
    UnownedPartitions,
)
from awoke.observe.partitions import not_written, shared_with, without_owner
from awoke.text.durations import duration

SLOW_MS = 60_000
"""A message that is at work for longer counts as slow."""
AWAY, NO_MEMBER, NO_REPORT, STUCK, OUTPUT, TRANSACTION = 90, 80, 75, 70, 68, 65
PAUSED, POISON, FULL, SLOW, SHARED, QUIET = 60, 50, 45, 40, 35, 30
"""The severity of each kind: a reason that stops more messages comes first."""
LEADERS = "look at the leaders and in-sync replicas of the topic (`min.insync.replicas`), and at its brokers"
GONE_MS = 3_600_000
"""A process that has sent nothing for longer is no reason any more."""
ATTEMPTS_MAX = 9
"""More attempts make a failing message no more severe."""


def reasons(view: AppView, reports: Mapping[str, Report]) -> list[Reason]:
    """Returns the reasons, the most severe first. Does not block.

    Of silent and newer nodes nothing is told but that a report is overdue.

    `reports` are those of the view's nodes by their names; newer nodes have none.
    """
    live = [reports[each.node] for each in view.nodes if not each.is_silent and not each.is_newer]
    known = {(group.group, each.topic, each.partition): each for group in view.groups for each in group.partitions}
    found = [reason for report in live for reason in _of_process(report, known, view)]
    found += [reason for group in view.groups for reason in _of_group(group)]
    found += _overdue(view, reports)
    return sorted(found, key=lambda each: (-each.severity, each.topic or "", each.partition or 0, each.node or ""))


Known = Mapping[tuple[str, str, int], GroupPartition]
"""The partitions as the brokers see them, by group, topic and number."""


def _of_process(report: Report, known: Known, view: AppView) -> Iterator[Reason]:
    now_ms = view.at_ms
    if report.brokers_away_because is not None:
        yield Reason(
            kind="brokers away",
            severity=AWAY,
            text=f"{report.node}: {report.brokers_away_because}",
            advice="check the brokers and the network",
            node=report.node,
        )
    if report.state != "running":
        advice = "wait for its end, or start another process" if report.state == "stopping" else "`awoke reload`"
        yield Reason(
            kind=report.state, severity=QUIET, text=f"{report.node} begins no jobs", advice=advice, node=report.node
        )
    for unowned in report.unowned:
        yield _without_owner(report, unowned)
    for shared in report.shared:
        yield _shared(report, shared)
    yield from _blocked(report, now_ms)
    yield from _outputs(report, now_ms)
    for each in report.partitions:
        yield from _of_partition(report, each, now_ms)
        yield from _behind_transaction(report, each, known.get((each.group, each.topic, each.partition)), view)


def _without_owner(report: Report, unowned: UnownedPartitions) -> Reason:
    topic, partition = unowned.partitions[0]
    return Reason(
        kind="no owner",
        severity=NO_MEMBER,
        text=without_owner(unowned.group, unowned.partitions, unowned.total),
        advice="awoke has asked the group to divide its partitions anew; restart a member if it stays so",
        group=unowned.group,
        topic=topic,
        partition=partition,
        node=report.node,
    )


def _shared(report: Report, shared: SharedGroup) -> Reason:
    own = "if these are not another version of this app, give" if not shared.apps else "give"
    return Reason(
        kind="shared group",
        severity=SHARED,
        text=shared_with(shared.group, shared.apps, shared.topics),
        advice=f"{own} each app a group of its own (`group=`, or AWOKE_GROUP)",
        group=shared.group,
        node=report.node,
    )


def _blocked(report: Report, now_ms: int) -> Iterator[Reason]:
    """Tells of partitions to which nothing can be written."""
    for at in report.blocked:
        for_s = (now_ms - at.since_ms) / 1_000
        yield Reason(
            kind="output",
            severity=OUTPUT,
            text=f"{report.node}: {not_written(at.topic, at.partition, at.messages, for_s, at.text)}",
            advice=LEADERS,
            topic=at.topic,
            partition=at.partition,
            node=report.node,
        )


def _outputs(report: Report, now_ms: int) -> Iterator[Reason]:
    """Tells of topics that acknowledge nothing, and of a producer without room: functions that send there wait."""
    full = ""
    if report.queue_full_since_ms is not None:
        age = duration((now_ms - report.queue_full_since_ms) / 1_000)
        full = f"the queue of the producer is full for {age}, and functions that send wait for room"
    told = {each.topic for each in report.blocked}
    stand = [each for each in report.outputs if each.since_ms is not None and each.topic not in told]
    for each in stand:
        age = duration((now_ms - (each.since_ms or now_ms)) / 1_000)
        text = f"{_sent(report, each)}, and none was acknowledged for {age}"
        yield _of_output(report, f"{text}; {full}" if full else text, LEADERS)
    if full and not stand and not told:
        most = f"; most for {_sent(report, report.outputs[0])}" if report.outputs else ""
        advice = "the brokers take messages more slowly than the app sends: add partitions or brokers, or send less"
        yield _of_output(report, f"{full}{most}", advice)


def _sent(report: Report, output: OutputTopic) -> str:
    count = "1 message waits" if output.messages == 1 else f"{output.messages} messages wait"
    names = [each.name for each in report.handlers if output.topic in (each.output, each.dead_letter)]
    whose = f" (of {', '.join(names)})" if names else ""
    return f"topic {output.topic}{whose}: {count} for an acknowledgement"


def _of_output(report: Report, text: str, advice: str) -> Reason:
    return Reason(kind="output", severity=OUTPUT, text=f"{report.node}: {text}", advice=advice, node=report.node)


def unheard(node: NodeView, now_ms: int) -> str:
    """Returns since when a process has sent no report, as a text."""
    age, interval = duration(node.unheard_ms(now_ms) / 1_000), duration(node.interval_ms / 1_000)
    return f"no report for {age}, expected every {interval}"


def _overdue(view: AppView, reports: Mapping[str, Report]) -> Iterator[Reason]:
    """Tells of processes without a report, until others have their partitions."""
    late = [each for each in view.nodes if each.is_overdue and not each.is_newer]
    if not late:
        return
    in_time = [report for node, report in reports.items() if node not in {each.node for each in late}]
    taken = {(each.group, each.topic, each.partition) for report in in_time for each in report.partitions}
    for node in late:
        mine = {(each.group, each.topic, each.partition) for each in reports[node.node].partitions}
        if node.unheard_ms(view.at_ms) > GONE_MS or (node.is_silent and mine <= taken):
            continue
        count = len(mine - taken)
        waiting = (
            f"; {count} partition{'s' if count != 1 else ''} of it wait{'s' if count == 1 else ''}" if count else ""
        )
        yield Reason(
            kind="no report",
            severity=NO_REPORT,
            text=f"{node.node}: {unheard(node, view.at_ms)}{waiting}",
            advice="it was killed, is frozen, or can't reach the brokers: look at its host; the brokers give its "
            "partitions to others after `session.timeout.ms`",
            node=node.node,
        )


def _of_partition(report: Report, at: Partition, now_ms: int) -> Iterator[Reason]:
    if at.stuck_because is not None or at.paused_because is not None:
        yield from _not_read(report, at)
    if at.commit_gap is not None and at.commit_gap_max is not None and at.commit_gap >= at.commit_gap_max:
        text = f"{_place(at)} takes in no more: {at.commit_gap} messages are begun behind offset {at.oldest_offset}"
        yield _reason("full", FULL, text, "look at the message that keeps the commit back", report, at)
    for failing in at.failing:
        key = "without a key" if failing.key_hash is None else f"of key {failing.key_hash}"
        wait = duration((failing.next_ms - now_ms) / 1_000)
        text = (
            f"{_place(at)} offset {failing.offset} {key} has failed {failing.attempts} times, the last with "
            f"{failing.error}; it is tried again in {wait}"
        )
        skip = f"`awoke skip MODULE:APP {at.topic} {at.partition} {failing.offset}{_option(report, at)}`"
        severity = POISON + min(failing.attempts, ATTEMPTS_MAX)
        yield _reason("failing message", severity, text, f"correct the handler, or {skip}", report, at)
    for running in at.running:
        ran_ms = now_ms - running.since_ms
        if ran_ms > SLOW_MS:
            text = f"{_place(at)} offset {running.offset} is at work for {duration(ran_ms / 1_000)}"
            yield _reason("slow job", SLOW, text, "`awoke dump MODULE:APP` shows its stack", report, at)


def _not_read(report: Report, at: Partition) -> Iterator[Reason]:
    resume = f"`awoke resume MODULE:APP {at.topic} {at.partition}{_option(report, at)}`"
    if at.stuck_because is not None:
        yield _reason("stuck", STUCK, f"{_place(at)} gives no messages: {at.stuck_because}", resume, report, at)
    if at.paused_because is not None:
        yield _reason("paused", PAUSED, f"{_place(at)} is paused: {at.paused_because}", resume, report, at)


def _behind_transaction(
    report: Report, at: Partition, broker: GroupPartition | None, view: AppView
) -> Iterator[Reason]:
    found, now_ms = open_of(at, broker), view.at_ms
    if found is None or found.since_ms is None or not found.is_left(now_ms) or not is_read_to(at, broker, found.stable):
        return
    age = duration((now_ms - found.since_ms) / 1_000)
    waiting = "1 message waits" if found.waiting == 1 else f"{found.waiting} messages wait"
    text = f"{_place(at)} has a transaction at offset {found.stable} that is open for {age}, and {waiting} behind it"
    advice = "end the producer that left it open, or abort it: `kafka-transactions.sh find-hanging`"
    if found.is_hanging(now_ms, view.transaction_limit_ms):
        limit = duration(view.transaction_limit_ms / 1_000)
        text += f"; it hangs: brokers abort one after {limit} at the latest (transaction.max.timeout.ms)"
        advice = "no producer will end it: abort it by `kafka-transactions.sh abort`"
    yield _reason("open transaction", TRANSACTION, text, advice, report, at)


def _place(at: Partition) -> str:
    return f"{at.topic}[{at.partition}]"


def _option(report: Report, at: Partition) -> str:
    return "" if at.group == report.app else f" --group {at.group}"


def _reason(kind: str, severity: int, text: str, advice: str, report: Report, at: Partition) -> Reason:
    return Reason(
        kind=kind,
        severity=severity,
        text=text,
        advice=advice,
        group=at.group,
        topic=at.topic,
        partition=at.partition,
        node=report.node,
    )


def _of_group(group: GroupView) -> Iterator[Reason]:
    lag = sum(each.lag or 0 for each in group.partitions)
    if group.members == 0 and lag > 0:
        yield Reason(
            kind="no member",
            severity=NO_MEMBER,
            text=f"group {group.group} has no member, and {lag} messages wait",
            advice="start the app",
            group=group.group,
        )
