"""One run: brokers, producer, members and nemesis; then the logs are compared and the verdict is printed."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.history.brokers import ProxiedBrokers
from tests.history.checker import History, Verdict, check
from tests.history.feeder import Feeder
from tests.history.members import Members
from tests.history.nemesis import CONFIG, REPLICAS, Nemesis
from tests.history.settings import MEMBERS, PARTITIONS, Run
from tests.support import judge
from tests.support.waiting import wait_until

INPUT, OUTPUT, GROUP = "history-input", "history-output", "history"
STARTS_WITHIN_S = 60.0


class Outcome(NamedTuple):
    """The outcome of a run."""

    verdict: Verdict
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
        return [*self.verdict.faults, *(["members did not end"] if self.stuck else [])]


def run(settings: Run) -> Outcome:
    """Run it and print the report."""
    with tempfile.TemporaryDirectory(prefix="awoke-history-") as folder:
        # A broker of version 4.4 that is killed may lose the markers of a transaction: those stay on broker 1.
        is_exactly_once = settings.mode == "exactly-once"
        with ProxiedBrokers(has_internal_topics_on_1=is_exactly_once) as brokers:
            brokers.create_topic(INPUT, REPLICAS, CONFIG)
            brokers.create_topic(OUTPUT, [[1, 2, 3]] * PARTITIONS, {})
            members = Members(settings, brokers.proxied_servers, (INPUT, OUTPUT), GROUP, Path(folder))
            try:
                outcome = _run(settings, brokers, members)
            finally:
                members.close()
    report(settings, outcome)
    return outcome


def _run(settings: Run, brokers: ProxiedBrokers, members: Members) -> Outcome:
    servers = brokers.bootstrap_servers
    for _ in range(MEMBERS):
        members.start()
    with Feeder(servers, INPUT, settings.per_s) as feeder:
        wait_until(lambda: _has_committed(servers), "the members process messages", STARTS_WITHIN_S)
        nemesis = Nemesis(settings, brokers, INPUT, members, feeder)
        nemesis.disturb()
        feeder.pause()
    nemesis.heal()
    if judge.comes_to_end(servers, GROUP, INPUT, settings.heal_within_s):
        nemesis.say("the members have come to the end")
    else:
        nemesis.say(f"the members did not come to the end: {judge.progress(servers, GROUP, INPUT)}")
        print(members.last_lines())
    progress = judge.progress(servers, GROUP, INPUT)
    members.terminate_all()
    nemesis.say("the members have ended")
    inputs = [*nemesis.logs, judge.log_of(servers, INPUT)]
    output = judge.log_of(servers, OUTPUT, "read_committed")
    history = History(settings.mode, feeder.acknowledged, inputs, output, progress, nemesis.done["unclean"])
    return Outcome(check(history), nemesis.done, members.exit_codes, members.ended_early, members.stuck)


def _has_committed(servers: str) -> bool:
    return any(each.committed > 0 for each in judge.progress(servers, GROUP, INPUT).values())


def report(settings: Run, outcome: Outcome) -> None:
    """Print what came of a run, as a table and as a line of one."""
    verdict = outcome.verdict
    faults = ", ".join(f"{name} {count}" for name, count in sorted(outcome.done.items())) or "none"
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(outcome.exit_codes.items()))
    result = "; ".join(outcome.faults) or "nothing lost"
    rows = {
        "mode, protocol, seed, time": f"{settings.mode}, {settings.protocol}, {settings.seed}, {settings.seconds:g} s",
        "faults": faults,
        "acknowledged": verdict.acknowledged,
        "lost by unclean elections": verdict.lost_by_elections,
        "deleted before they were processed": verdict.lost_by_deletion,
        "missing from the output": len(verdict.missing),
        "first came out of order": verdict.out_of_order,
        "came again": verdict.duplicates,
        "unknown": verdict.unknown,
        "lag": verdict.lag,
        "exit codes of members": codes,
        "members that ended by themselves": len(outcome.ended_early),
        "members that did not end": len(outcome.stuck),
        "verdict": result,
    }
    for text in (*outcome.ended_early, *outcome.stuck):
        print(text)
    print("\n".join(f"{name:36} {value}" for name, value in rows.items()))
    print(line_of(settings, outcome), flush=True)


def line_of(settings: Run, outcome: Outcome) -> str:
    """Returns a row in Markdown: mode, protocol, seed, faults, acknowledged, missing, out of order, repeated."""
    verdict = outcome.verdict
    cells = [
        f"{settings.mode}, {settings.protocol}",
        f"{settings.seconds:g} s, seed {settings.seed}, {sum(outcome.done.values())} faults",
        f"{verdict.acknowledged:,}",
        f"{len(verdict.missing)} missing",
        f"{verdict.out_of_order} out of order",
        f"{verdict.duplicates} again",
        "; ".join(outcome.faults) or "nothing lost",
    ]
    return f"| {' | '.join(cells)} |"
