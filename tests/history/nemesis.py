"""Disturbs members and brokers, one fault after the other, says each as it happens, and heals everything in the end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import tests
from tests.history.brokers import ProxiedBrokers
from tests.history.feeder import Feeder
from tests.history.members import Members
from tests.history.nodes import Nodes
from tests.history.plan import Fault, plan
from tests.history.settings import INPUT, PARTITIONS, Run
from tests.support import judge
from tests.support.kafka_home import java
from tests.support.waiting import elapse, wait_until

REPLICAS = [[2, 3], [3, 2]] * (PARTITIONS // 2)
"""Of the input, which suffers."""
CONFIG = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
VIA_BROKER_1 = [[1, 3], [3, 1]] * (PARTITIONS // 2)
"""The replicas of the input on their way from broker 2 and back to it."""
OFFSETS, OFFSETS_REPLICAS = "__consumer_offsets", [[2, 3, 1], [3, 2, 1]] * 2
"""Whose leaders coordinate the groups: brokers that may be killed."""
APPEARED = [[1, 2, 3]] * PARTITIONS
"""The replicas of topics that appear. They lose nothing: broker 1 stays."""
APPEARED_MAX = 3
APPEARED_PER_S = 20
REASSIGN = Path(tests.__file__).parent / "support/java/Reassign.java"
BEFORE_LOSS_S = 2.0
"""The time for which an unclean election's leader is alone: messages that are written meanwhile are lost."""
WITHIN_S = 90.0
MOVED_WITHIN_S = 300.0
"""A Java that compiles a program takes seconds, and much longer on a busy machine."""


class Nemesis:
    """Runs on the caller's thread. Closes the feeders that it starts."""

    def __init__(self, run: Run, brokers: ProxiedBrokers, groups: Sequence[Members], feeder: Feeder) -> None:
        self._run, self._brokers, self._groups = run, brokers, groups
        self._feeder = feeder
        """Of the input, which suffers."""
        self.feeders = [feeder]
        """Of the input and of each topic that has appeared."""
        self._began_s = time.monotonic()
        self.done: Counter[str] = Counter()
        """The number of times that each fault happened."""

    @property
    def servers(self) -> str:
        """Where a judge asks: past the proxies."""
        return self._brokers.bootstrap_servers

    def disturb(self) -> None:
        """Do faults until the run's time is up."""
        until_s = time.monotonic() + self._run.seconds
        for fault in plan(self._run):
            elapse(fault.pause_s, "the plan's pause before the fault")
            if time.monotonic() >= until_s:
                return
            for name in [name for members in self._groups for name in members.replace_ended()]:
                self.say(f"{name} has ended by itself; another one is started")
            self._do(fault)

    def heal(self) -> None:
        """Bring everything up again."""
        for broker in (2, 3):
            if not self._brokers.is_up(broker):
                self._brokers.start_broker(broker)
        self._wait_in_sync()
        for members in self._groups:
            members.heal()
        self.say("healed")

    def close(self) -> None:
        """End the feeders."""
        for feeder in self.feeders:
            feeder.close()

    def say(self, text: str) -> None:
        """Print what happens, with its time, by the clock of the members' logs too."""
        print(f"{time.monotonic() - self._began_s:7.1f} s  {time.strftime('%H:%M:%S')}  {text}", flush=True)

    def _do(self, fault: Fault) -> None:
        does: dict[str, Callable[[Fault], str]] = {
            "kill": lambda each: self._replace(each, Members.kill),
            "freeze": lambda each: self._of(each).freeze(self._index(each)),
            "continue": lambda each: ", ".join(members.continue_all() for members in self._groups),
            "terminate": lambda each: self._replace(each, Members.terminate),
            "add": self._add,
            "remove": self._remove,
            "bounce": lambda each: self._restart(each, self._brokers.stop_broker),
            "crash": lambda each: self._restart(each, self._brokers.kill_broker),
            "full": lambda each: self._restart(each, self._brokers.fill_disk_of_broker),
            "coordinator": self._kill_coordinator,
            "cut": self._cut,
            "unclean": self._unclean,
            "recreate": self._recreate,
            "renew": self._renew,
            "appear": self._appear,
            "reassign": lambda each: self._reassign(INPUT, VIA_BROKER_1, REPLICAS),
            "lead": self._lead,
            "clock": lambda each: (
                self._of(each).step_clock(self._index(each), each.offset_s) + f" by {each.offset_s:g}"
            ),
            "scale": lambda each: self._nodes.scale(each.which),
            "reload": lambda each: self._nodes.reload(),
            "replace": lambda each: self._nodes.end(each.which, signal.SIGTERM),
            "kill-node": lambda each: self._nodes.end(each.which, signal.SIGKILL),
        }
        self.say(f"{fault.name} …")
        self.say(f"{fault.name}: {does[fault.name](fault)}")
        self.done[fault.name] += 1

    def _of(self, fault: Fault) -> Members:
        """The group of the member that a fault concerns."""
        return self._groups[fault.which % len(self._groups)]

    def _index(self, fault: Fault) -> int:
        """The place of the member in its group."""
        return fault.which // len(self._groups)

    @property
    def _nodes(self) -> Nodes:
        (nodes,) = [members.nodes for members in self._groups if members.nodes is not None]
        return nodes

    def _replace(self, fault: Fault, end: Callable[[Members, int], str]) -> str:
        members = self._of(fault)
        return f"{end(members, self._index(fault))}; {members.start()} is started"

    def _add(self, fault: Fault) -> str:
        members = self._of(fault)
        return members.start() if len(members) < members.copy.members[1] else "enough run"

    def _remove(self, fault: Fault) -> str:
        members = self._of(fault)
        return members.terminate(self._index(fault)) if len(members) > members.copy.members[0] else "too few run"

    def _restart(self, fault: Fault, end: Callable[[int], None]) -> str:
        broker = 2 + fault.which % 2
        self._wait_in_sync()
        end(broker)
        self._brokers.start_broker(broker)
        self._wait_in_sync()
        return f"broker {broker}"

    def _cut(self, fault: Fault) -> str:
        broker = 1 + fault.which % 3
        self._brokers.proxies[broker].cut_all()
        return f"connections to broker {broker}"

    def _unclean(self, fault: Fault) -> str:
        """Have a replica elected that lacks what was written last.

        The producer pauses meanwhile: a message that it repeats after the election was not lost by it.
        """
        ahead, behind = ((2, 3), (3, 2))[fault.which % 2]
        self._wait_in_sync()
        self._brokers.stop_broker(behind)
        self._wait_in_sync(1)
        elapse(BEFORE_LOSS_S, "the broker that stays writes what the other one will lack")
        self._feeder.pause()
        self._brokers.kill_broker(ahead)
        self._brokers.start_broker(behind)
        for partition in range(PARTITIONS):
            self._brokers.wait_for_leader(INPUT, partition, behind)
        self._feeder.resume()
        self._brokers.start_broker(ahead)
        self._wait_in_sync()
        return f"from broker {ahead} to broker {behind}"

    def _recreate(self, fault: Fault) -> str:
        self._feeder.pause()
        log = judge.log_of(self._brokers.bootstrap_servers, INPUT)
        recreate(self._brokers, INPUT)
        self._feeder.resume(deleted=log)
        return f"of {sum(map(len, log.values()))} messages"

    def _renew(self, fault: Fault) -> str:
        """Make the input again while a group has no members, and have its leaders change before they are back."""
        members = self._groups[1 + fault.which % (len(self._groups) - 1)]
        count = members.terminate_all()
        text = self._recreate(fault)
        elapse(BEFORE_LOSS_S, "messages are written in the first leader epoch")
        leaders = self._lead(fault)
        elapse(BEFORE_LOSS_S, "messages are written in the next leader epoch")
        for _ in range(count):
            members.start()
        return f"{text}, without {members.copy.group}; {leaders}"

    def _appear(self, fault: Fault) -> str:
        number = len(self.feeders)
        if number > APPEARED_MAX:
            return "enough are there"
        topic = f"{INPUT}-{number}"
        self._brokers.create_topic(topic, APPEARED, {})
        feeder = Feeder(self._brokers.bootstrap_servers, topic, APPEARED_PER_S, number)
        self.feeders.append(feeder)
        feeder.start()
        return topic

    def _lead(self, fault: Fault) -> str:
        """Have each partition of the input led by its other replica."""
        leader, _ = self._brokers.leader_and_in_sync(INPUT, 0)
        return self._reassign(INPUT, REPLICAS if leader == REPLICAS[1][0] else REPLICAS[1:] + REPLICAS[:1])

    def _reassign(self, topic: str, *plans: list[list[int]]) -> str:
        self._wait_in_sync()
        shown = ["/".join(",".join(map(str, brokers)) for brokers in plan) for plan in plans]
        command = java(str(REASSIGN), self._brokers.servers_of(1), topic, *shown)
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOVED_WITHIN_S, check=False)
        assert done.returncode == 0, done.stderr
        self._wait_in_sync()
        return f"to {', '.join(shown)}"

    def _kill_coordinator(self, fault: Fault) -> str:
        """Kill the broker that coordinates one of the groups, and start it again."""
        if self._run.mode == "exactly-once":
            return "broker 1 coordinates all, and stays"
        if not self._coordinators():
            self._reassign(OFFSETS, OFFSETS_REPLICAS)
        if not (brokers := self._coordinators()):
            return "none is known"
        broker = brokers[fault.which % len(brokers)]
        self._wait_in_sync()
        self._brokers.kill_broker(broker)
        self._brokers.start_broker(broker)
        self._wait_in_sync()
        return f"broker {broker}"

    def _coordinators(self) -> list[int]:
        """The brokers that coordinate the groups, without broker 1."""
        brokers = [judge.coordinator_of(self.servers, members.copy.commits_as) for members in self._groups]
        return [broker for broker in brokers if broker in (2, 3)]

    def _wait_in_sync(self, count: int = 2) -> None:
        for partition in range(PARTITIONS):
            self._brokers.wait_in_sync(INPUT, partition, count)


def recreate(brokers: ProxiedBrokers, topic: str) -> None:
    """Delete the topic and make it again at once."""
    admin = AdminClient({"bootstrap.servers": brokers.servers_of(1), "log_level": 0})
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)

    def is_made() -> bool:
        try:
            new = NewTopic(topic, len(REPLICAS), replica_assignment=REPLICAS, config=CONFIG)
            admin.create_topics([new])[topic].result(30)
        except confluent_kafka.KafkaException:
            return False  # The controller has not forgotten the old one yet.
        return True

    wait_until(is_made, f"{topic} is made again", WITHIN_S)
    for partition, replicas in enumerate(REPLICAS):
        brokers.wait_for_leader(topic, partition, replicas[0])
