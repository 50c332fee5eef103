"""The order service of the examples on real Kafka, one process killed and one terminated, as a foreign client sees it.

Given 2,000 orders over 4 partitions and 50 customers, a few of them invalid, refused or failing, and two processes,
when one process is killed and started again, and then the other one is terminated,
then each order has its receipt or its dead letter, in the order of its customer. Only orders that the killed process
had not committed are there twice.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import signal
import threading
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, cast

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from examples.orders.app import PAYMENT_CONNECTIONS
from examples.orders.payments import BROKEN_CURRENCY, CENTS_MAX, Payments, serving
from tests.support import judge
from tests.support.clusters import RealCluster
from tests.support.kafka_broker import free_ports
from tests.support.processes import Process
from tests.support.waiting import wait_until

SEED = 18
ORDERS = 2_000
CUSTOMERS = 50
PARTITIONS = 4
GROUP = "order-service"
WITHIN_S = 30.0
ALL_WITHIN_S = 240.0
"""For all orders: each is a request over HTTP, and one process does the last of them."""
TOPICS = ("orders", "receipts", "orders.dead")
AT_ONCE = 100
PER_WRITE = 5
EVERY_S = 0.2
"""The number of orders that a feed sends at its begin and in each later step, and the time between: then 25/s."""


class Bad(NamedTuple):
    """An order that gets no receipt."""

    value: bytes | None
    error: str
    """Part of its dead letter's error."""
    attempts: int = 1


BAD = [
    Bad(b"no order", "Invalid JSON"),
    Bad(None, "tombstone"),
    Bad(b'{"id": 3, "customer": "c"}', "cents"),
    Bad(b'{"id": 4, "customer": "c", "cents": -1}', "greater than 0"),
    Bad(b'{"id": 5, "customer": "c", "cents": %d}' % (CENTS_MAX + 1), "beyond the limit"),
    Bad(b'{"id": 6, "customer": "c", "cents": 1, "currency": "%s"}' % BROKEN_CURRENCY.encode(), "answered 500", 6),
]
"""The last one is valid, and the payment service always fails at it."""


class Sent(NamedTuple):
    """An order as it was sent."""

    trace: bytes
    """Names it."""
    key: bytes
    value: bytes | None
    bad: Bad | None


def orders() -> list[Sent]:
    """All orders; the bad ones at random places."""
    chance = random.Random(SEED)
    places = dict(zip(chance.sample(range(ORDERS), len(BAD)), BAD, strict=True))
    return [_order(number, chance, places.get(number)) for number in range(ORDERS)]


def _order(number: int, chance: random.Random, bad: Bad | None) -> Sent:
    customer = f"customer-{chance.randrange(CUSTOMERS)}"
    good = {"id": 1_000 + number, "customer": customer, "cents": chance.randrange(1, CENTS_MAX)}
    value = json.dumps(good).encode() if bad is None else bad.value
    return Sent(b"trace-%d" % number, customer.encode(), value, bad)


def produce(servers: str, sent: Sequence[Sent], is_hurried: threading.Event | None = None) -> None:
    """Sends orders with a foreign client; each has a trace, and a header that is not to be carried on.

    If there is an event, sends slowly until it is set.
    """
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    for place, each in enumerate(sent):
        if is_hurried is not None and place >= AT_ONCE and place % PER_WRITE == 0:
            is_hurried.wait(EVERY_S)
        headers: dict[str, str | bytes | None] = {"trace-id": each.trace, "internal": b"1"}
        producer.produce("orders", each.value, each.key, headers=headers)
    assert producer.flush(60) == 0


@contextlib.contextmanager
def feeding(servers: str, sent: Sequence[Sent]) -> Iterator[None]:
    """Sends orders beside the block: slowly, so that work is left when the block ends. The rest goes at once then."""
    is_over = threading.Event()
    sender = threading.Thread(target=produce, args=(servers, sent, is_over))
    sender.start()
    try:
        yield
    finally:
        is_over.set()
        sender.join()


def messages_of(servers: str, topic: str) -> list[confluent_kafka.Message]:
    """Everything that a topic holds, as a foreign client reads it; each partition in order."""
    return list(itertools.chain.from_iterable(judge.messages_of(servers, topic, "read_committed").values()))


def header(message: confluent_kafka.Message, name: str) -> bytes:
    """A header of a message; empty where it has none of the name."""
    return dict(cast("list[tuple[str, bytes | None]]", message.headers() or [])).get(name) or b""


def trace_of(message: confluent_kafka.Message) -> bytes:
    """Names the order that a message is of."""
    return header(message, "trace-id")


def assigned(servers: str, client_id: str) -> set[int]:
    """The partitions that a member of the group has, by the brokers' word."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        members = admin.describe_consumer_groups([GROUP])[GROUP].result(10).members
    except confluent_kafka.KafkaException:
        return set()  # The group has no coordinator yet.
    places = [member.assignment.topic_partitions for member in members if member.client_id == client_id]
    return {place.partition for place in itertools.chain.from_iterable(places)}


class Service:
    """The topics, the payment service, and processes of the app."""

    def __init__(self, servers: str, payments_address: str) -> None:
        self.servers = servers
        self._env = {"PAYMENTS": payments_address, "AWOKE_COMMIT_INTERVAL_S": "0.3"}
        (self.metrics_port,) = free_ports(1)

    def start(self, client_id: str, *arguments: str) -> Process:
        """Starts a process. A killed one is missed after its session only: the shortest that brokers allow."""
        kafka = ("--kafka", "session.timeout.ms=6000", "--kafka", f"client.id={client_id}")
        common = ("run", "examples.orders.app:app", "--bootstrap-servers", self.servers)
        return Process(*common, *kafka, *arguments, env=self._env)

    def wait_until_shared(self, *client_ids: str) -> None:
        """Waits until each of two processes has two partitions."""

        def is_shared() -> bool:
            return all(len(assigned(self.servers, each)) == PARTITIONS // 2 for each in client_ids)

        wait_until(is_shared, f"{client_ids} share the partitions", 120, every_s=0.3)

    def metrics(self) -> str:
        """Returns the metrics of the process that serves them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as response:
            return str(response.read(), "utf-8")


class Killed(NamedTuple):
    """The orders, by their places in the topic, that the killed process may have processed without a commit."""

    open: Mapping[int, range]
    """By partition, the offsets from the committed one to the end."""

    def may_repeat(self, order: confluent_kafka.Message) -> bool:
        """Tells whether an order may be processed again."""
        return order.offset() in self.open.get(order.partition() or 0, range(0))


@pytest.fixture
def payments() -> Payments:
    return Payments(SEED)


@pytest.fixture
def service(real_cluster: RealCluster, payments: Payments) -> Iterator[Service]:
    for topic in TOPICS:
        real_cluster.create_topic(topic, PARTITIONS)
    with serving(payments) as address:
        yield Service(real_cluster.bootstrap_servers, address)


def test_orders_survive_a_kill_and_a_stop(service: Service, payments: Payments) -> None:
    sent = orders()
    killed = process(service, payments, sent)
    receipts, dead = messages_of(service.servers, "receipts"), messages_of(service.servers, "orders.dead")
    check_receipts(sent, receipts)
    check_order(sent, receipts)
    check_dead_letters(sent, dead)
    check_doubles(messages_of(service.servers, "orders"), [*receipts, *dead], killed)
    check_payments(sent, payments)


def process(service: Service, payments: Payments, sent: Sequence[Sent]) -> Killed:
    """Has all orders processed while one process is killed and started again, and the other one is terminated."""
    metrics = ("--metrics-port", str(service.metrics_port))
    with service.start("one") as one, service.start("two", *metrics) as two:
        service.wait_until_shared("one", "two")
        with feeding(service.servers, sent[:1_000]):
            killed = kill(service, one, "one")
        with service.start("one-again") as one_again:
            produce(service.servers, sent[1_000:1_200])
            service.wait_until_shared("one-again", "two")
            check_metrics(service.metrics())
            made = len(payments.made)
            with feeding(service.servers, sent[1_200:]):
                assert payments.wait_for(made + 100, WITHIN_S)
                terminate(two)
                assert len(payments.made) < ORDERS - len(BAD), "the process was terminated after its work"
            assert judge.comes_to_end(service.servers, GROUP, "orders", ALL_WITHIN_S), one_again.output
            terminate(one_again)
    return killed


def kill(service: Service, process: Process, client_id: str) -> Killed:
    """Kills a process in the middle of its work, when it has committed some; what it had not committed."""
    partitions = assigned(service.servers, client_id)
    assert len(partitions) == PARTITIONS // 2
    # A process that dies before its first commit may have died of a message: its successor would go one by one.
    wait_until(
        lambda: all(each.committed > 0 for each in progress(service, partitions).values()), "it commits", every_s=0.1
    )
    process.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    left = progress(service, partitions)
    assert sum(each.lag for each in left.values()) > 0, "the process was killed after its work"
    return Killed({partition: range(each.committed, each.end) for partition, each in left.items()})


def progress(service: Service, partitions: Collection[int]) -> dict[int, judge.Progress]:
    """Returns the offsets of the group in these partitions."""
    found = judge.progress(service.servers, GROUP, "orders")
    return {partition: found[partition] for partition in partitions}


def terminate(process: Process) -> None:
    """Stops a process in order."""
    process.signal(signal.SIGTERM)
    assert process.wait() == 0, process.output


def check_metrics(text: str) -> None:
    """The process counts what it does."""
    handled = re.search(r'^awoke_messages_total\{handler="charge",topic="orders"\} (\S+)$', text, re.MULTILINE)
    assert handled is not None, text
    assert float(handled[1]) > 0
    assert "awoke_retries_total{" in text


def check_receipts(sent: Sequence[Sent], receipts: Sequence[confluent_kafka.Message]) -> None:
    """Each valid order has a receipt, with its key and its trace; one that is there twice says the same."""
    expected = {each.trace: each for each in sent if each.bad is None}
    assert {trace_of(each) for each in receipts} == set(expected)
    values: dict[bytes, bytes | None] = {}
    for receipt in receipts:
        order = expected[trace_of(receipt)]
        value = receipt.value() or b""
        assert (receipt.key(), receipt.headers()) == (order.key, [("trace-id", order.trace)])
        assert json.loads(value)["order"] == json.loads(order.value or b"")["id"]
        assert values.setdefault(order.trace, value) == value


def check_order(sent: Sequence[Sent], receipts: Sequence[confluent_kafka.Message]) -> None:
    """The first receipts of a customer's orders come in the order of the orders."""
    firsts: dict[bytes | None, dict[bytes, None]] = defaultdict(dict)
    for receipt in receipts:
        firsts[receipt.key()].setdefault(trace_of(receipt))
    for customer, traces in firsts.items():
        assert list(traces) == [each.trace for each in sent if each.key == customer and each.bad is None]


def check_dead_letters(sent: Sequence[Sent], dead: Sequence[confluent_kafka.Message]) -> None:
    """Each bad order has a dead letter: what was sent, with the error in its headers."""
    expected = {each.trace: each for each in sent if each.bad is not None}
    assert {trace_of(each) for each in dead} == set(expected)
    for letter in dead:
        order = expected[trace_of(letter)]
        assert order.bad is not None
        assert (letter.key(), letter.value(), header(letter, "internal")) == (order.key, order.value, b"1")
        assert order.bad.error in header(letter, "awoke-error-message").decode()
        assert header(letter, "awoke-attempts") == b"%d" % order.bad.attempts


def check_doubles(
    sent: Sequence[confluent_kafka.Message], results: Sequence[confluent_kafka.Message], killed: Killed
) -> None:
    """Twice is only what the killed process may have done without committing it."""
    counts = Counter(map(trace_of, results))
    doubled = [each for each in sent if counts[trace_of(each)] > 1]
    assert max(counts.values()) <= 2
    assert [place(each) for each in doubled if not killed.may_repeat(each)] == []


def place(message: confluent_kafka.Message) -> tuple[int | None, int | None]:
    """Where a message is in its topic."""
    return message.partition(), message.offset()


def check_payments(sent: Sequence[Sent], payments: Payments) -> None:
    """Each valid order was paid, some at the second attempt, over no more connections than two processes may have."""
    assert len(payments.made) == sum(each.bad is None for each in sent)
    assert payments.answers[HTTPStatus.SERVICE_UNAVAILABLE] > 0
    assert payments.running_max <= 2 * PAYMENT_CONNECTIONS
