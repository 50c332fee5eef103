"""One run: brokers, producers, members and nemesis; then the logs are compared and the verdicts are printed."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.history.brokers import ProxiedBrokers
from tests.history.checker import History, Source, Verdict, check
from tests.history.feeder import Feeder
from tests.history.members import Members
from tests.history.nemesis import CONFIG, REPLICAS, Nemesis
from tests.history.settings import COPIES, INPUT, PARTITIONS, Copy, Run
from tests.support import judge
from tests.support.waiting import elapse, wait_until

STARTS_WITHIN_S = 120.0
AFTERWARDS_S = 2.0
"""The time for which messages are produced when the nemesis has come to rest."""


class Outcome(NamedTuple):
    """The outcome of a run."""

    verdicts: dict[str, Verdict]
    """By group."""
    done: Counter[str]
    """The number of times that each fault happened."""
    exit_codes: Counter[int]
    ended_early: list[str]
    """The last lines of members that ended without a signal."""
    stuck: list[str]
    """The last lines of members that did not end on a signal."""

    @property
    def faults(self) -> list[str]:
        """The faults; empty when all is well."""
        found = [f"{group}: {fault}" for group, verdict in self.verdicts.items() for fault in verdict.faults]
        return [*found, *(["members did not end"] if self.stuck else [])]


def run(settings: Run) -> Outcome:
    """Run it and print the report."""
    if settings.keep is not None:
        settings.keep.mkdir(parents=True, exist_ok=True)
    # A broker of version 4.4 that is killed may lose the markers of a transaction: those stay on broker 1.
    is_exactly_once = settings.mode == "exactly-once"
    with (
        tempfile.TemporaryDirectory(prefix="awoke-history-") as folder,
        ProxiedBrokers(has_internal_topics_on_1=is_exactly_once) as brokers,
    ):
        brokers.create_topic(INPUT, REPLICAS, CONFIG)
        for copy in COPIES:
            brokers.create_topic(copy.output, [[1, 2, 3]] * PARTITIONS, {})
        groups: list[Members] = []
        try:
            for copy in COPIES:
                groups.append(Members(settings, brokers.proxied_servers, copy, Path(folder) / copy.group))
            outcome = _run(settings, brokers, groups)
        except BaseException:
            print(*[members.last_lines() for members in groups], sep="\n", flush=True)
            raise
        finally:
            for members in groups:
                members.close()
    report(settings, outcome)
    return outcome


def _run(settings: Run, brokers: ProxiedBrokers, groups: list[Members]) -> Outcome:
    servers = brokers.bootstrap_servers
    for members in groups:
        for _ in range(members.copy.members[0]):
            members.start()
    feeder = Feeder(servers, INPUT, settings.per_s)
    nemesis = Nemesis(settings, brokers, groups, feeder)
    try:
        feeder.start()
        for members in groups:
            _await_begin(servers, members.copy)
        nemesis.disturb()
        nemesis.heal()
        elapse(AFTERWARDS_S, "members that have just started get messages, too")
        for each in nemesis.feeders:
            each.pause()
    finally:
        nemesis.close()
    for members in groups:
        _await_end(settings, nemesis, members)
    unowned = [(members.copy, _unowned(settings, nemesis, members)) for members in groups]
    for members in groups:
        members.end()
    nemesis.say("the members have ended")
    logs = [[*each.deleted, judge.log_of(servers, each.topic)] for each in nemesis.feeders]
    verdicts = {}
    for copy, rest in unowned:
        sources = [
            Source(each.acknowledged, log, judge.progress(servers, copy.commits_as, each.topic))
            for each, log in zip(nemesis.feeders, logs, strict=True)
            if each.topic in _topics(nemesis, copy)
        ]
        output = judge.log_of(servers, copy.output, "read_committed")
        verdicts[copy.group] = check(History(copy.mode_in(settings), sources, output, rest, nemesis.done["unclean"]))
    return Outcome(
        verdicts,
        nemesis.done,
        sum((members.exit_codes for members in groups), Counter()),
        [text for members in groups for text in members.ended_early],
        [text for members in groups for text in members.stuck],
    )


def _topics(nemesis: Nemesis, copy: Copy) -> list[str]:
    """The topics that a group reads."""
    topics = [feeder.topic for feeder in nemesis.feeders]
    return topics if copy.has_pattern else [INPUT]


def _await_begin(servers: str, copy: Copy) -> None:
    def has_committed() -> bool:
        return any(each.committed > 0 for each in judge.progress(servers, copy.commits_as, INPUT).values())

    wait_until(has_committed, f"{copy.group} processes messages", STARTS_WITHIN_S)


def _unowned(settings: Run, nemesis: Nemesis, members: Members) -> set[tuple[str, int]]:
    """Waits until each partition has an owner in a group; returns those that get none in time."""
    copy = members.copy
    if copy.has_named_partitions:
        return set()
    rest = judge.comes_to_own(nemesis.servers, copy.group, _topics(nemesis, copy), settings.owned_within_s)
    nemesis.say(f"{copy.group}: " + (f"no member owns {sorted(rest)}" if rest else "each partition has an owner"))
    if rest:
        print(members.last_lines())
    return rest


def _await_end(settings: Run, nemesis: Nemesis, members: Members) -> None:
    copy = members.copy
    for topic in _topics(nemesis, copy):
        if not judge.comes_to_end(nemesis.servers, copy.commits_as, topic, settings.heal_within_s):
            progress = judge.progress(nemesis.servers, copy.commits_as, topic)
            nemesis.say(f"{copy.group} did not come to the end of {topic}: {progress}")
            print(members.last_lines())
            return
    nemesis.say(f"{copy.group} has come to the end")


def report(settings: Run, outcome: Outcome) -> None:
    """Print what came of a run, as tables and as a line for each group."""
    for text in (*outcome.ended_early, *outcome.stuck):
        print(text)
    faults = ", ".join(f"{name} {count}" for name, count in sorted(outcome.done.items())) or "none"
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(outcome.exit_codes.items()))
    rows: dict[str, object] = {
        "mode, protocol, seed, time": f"{settings.mode}, {settings.protocol}, {settings.seed}, {settings.seconds:g} s",
        "faults": faults,
        "exit codes of members": codes,
        "members that ended by themselves": len(outcome.ended_early),
        "members that did not end": len(outcome.stuck),
    }
    for group, verdict in outcome.verdicts.items():
        rows |= {
            f"{group}: acknowledged": verdict.acknowledged,
            "  lost by unclean elections": verdict.lost_by_elections,
            "  deleted before they were processed": verdict.lost_by_deletion,
            "  missing from the output": f"{len(verdict.missing)} {verdict.missing[:5] or ''}",
            "  first came out of order": verdict.out_of_order,
            "  came again": verdict.duplicates,
            "  in a row": "; ".join(verdict.repeats) or "few",
            "  unknown": verdict.unknown,
            "  lag": verdict.lag,
            "  partitions without an owner": verdict.unowned,
        }
        print("\n".join(f"{name:36} {value}" for name, value in rows.items()))
        rows = {}
    print(f"{'verdict':36} {'; '.join(outcome.faults) or 'nothing lost'}")
    for group, verdict in outcome.verdicts.items():
        print(line_of(settings, sum(outcome.done.values()), group, verdict), flush=True)


def line_of(settings: Run, faults: int, group: str, verdict: Verdict) -> str:
    """Returns a row in Markdown: mode, protocol, group, faults, acknowledged, missing, out of order, repeated."""
    cells = [
        f"{settings.mode}, {settings.protocol}, {group}",
        f"{settings.seconds:g} s, seed {settings.seed}, {faults} faults",
        f"{verdict.acknowledged:,}",
        f"{len(verdict.missing)} missing",
        f"{verdict.out_of_order} out of order",
        f"{verdict.duplicates} again",
        f"{verdict.unowned} unowned",
        "; ".join(verdict.faults) or "nothing lost",
    ]
    return f"| {' | '.join(cells)} |"
