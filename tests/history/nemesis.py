"""Disturbs members and brokers, one fault after the other, says each as it happens, and heals everything in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.history.brokers import ProxiedBrokers
from tests.history.feeder import Feeder
from tests.history.members import Members
from tests.history.plan import Fault, plan
from tests.history.settings import MEMBERS, PARTITIONS, Run
from tests.support import judge
from tests.support.judge import Record
from tests.support.waiting import elapse, wait_until

REPLICAS = [[2, 3], [3, 2]] * (PARTITIONS // 2)
"""Of the input, which suffers."""
CONFIG = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
MEMBERS_MIN, MEMBERS_MAX = 2, 6
BEFORE_LOSS_S = 2.0
"""The time for which an unclean election's leader is alone: messages that are written meanwhile are lost."""
WITHIN_S = 90.0

Log = dict[int, list[Record]]


class Nemesis:
    """Runs on the caller's thread."""

    def __init__(self, run: Run, brokers: ProxiedBrokers, topic: str, members: Members, feeder: Feeder) -> None:
        self._run, self._brokers, self._topic, self._members, self._feeder = run, brokers, topic, members, feeder
        self._began_s = time.monotonic()
        self.done: Counter[str] = Counter()
        """The number of times that each fault happened."""
        self.logs: list[Log] = []
        """The log of each incarnation of the input when it was deleted."""

    def disturb(self) -> None:
        """Do faults until the run's time is up."""
        for fault in plan(self._run):
            elapse(fault.pause_s, "the plan's pause before the fault")
            if time.monotonic() - self._began_s >= self._run.seconds:
                return
            for name in self._members.replace_ended():
                self.say(f"{name} has ended by itself; another one is started")
            self._do(fault)

    def heal(self) -> None:
        """Bring everything up again."""
        self._members.continue_all()
        for broker in (2, 3):
            if not self._brokers.is_up(broker):
                self._brokers.start_broker(broker)
        self._wait_in_sync()
        self._members.replace_ended()
        while len(self._members) < MEMBERS:
            self._members.start()
        self.say("healed")

    def say(self, text: str) -> None:
        """Print what happens, with its time."""
        print(f"{time.monotonic() - self._began_s:7.1f} s  {text}", flush=True)

    def _do(self, fault: Fault) -> None:
        does: dict[str, Callable[[Fault], str]] = {
            "kill": lambda each: f"{self._members.kill(each.which)}; {self._members.start()} is started",
            "freeze": lambda each: self._members.freeze(each.which),
            "continue": lambda each: self._members.continue_all(),
            "terminate": lambda each: f"{self._members.terminate(each.which)}; {self._members.start()} is started",
            "add": self._add,
            "remove": self._remove,
            "bounce": self._bounce,
            "crash": self._crash,
            "cut": self._cut,
            "unclean": self._unclean,
            "recreate": self._recreate,
            "clock": lambda each: f"{self._members.step_clock(each.which, each.offset_s)} by {each.offset_s:g} s",
        }
        self.say(f"{fault.name} …")
        self.say(f"{fault.name}: {does[fault.name](fault)}")
        self.done[fault.name] += 1

    def _add(self, fault: Fault) -> str:
        if len(self._members) >= MEMBERS_MAX:
            return "enough run"
        return self._members.start()

    def _remove(self, fault: Fault) -> str:
        if len(self._members) <= MEMBERS_MIN:
            return "too few run"
        return self._members.terminate(fault.which)

    def _bounce(self, fault: Fault) -> str:
        return self._restart(fault, self._brokers.stop_broker)

    def _crash(self, fault: Fault) -> str:
        return self._restart(fault, self._brokers.kill_broker)

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
            self._brokers.wait_for_leader(self._topic, partition, behind)
        self._feeder.resume()
        self._brokers.start_broker(ahead)
        self._wait_in_sync()
        return f"from broker {ahead} to broker {behind}"

    def _recreate(self, fault: Fault) -> str:
        self._feeder.pause()
        self.logs.append(judge.log_of(self._brokers.bootstrap_servers, self._topic))
        recreate(self._brokers, self._topic)
        self._feeder.resume(has_new_topic=True)
        return f"of {sum(map(len, self.logs[-1].values()))} messages"

    def _wait_in_sync(self, count: int = 2) -> None:
        for partition in range(PARTITIONS):
            self._brokers.wait_in_sync(self._topic, partition, count)


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
