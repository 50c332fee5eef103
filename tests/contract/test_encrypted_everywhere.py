"""A value for a topic with a format never leaves without it: each way to send is walked, and what is stored is read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import awoke
from awoke.console.access import Brokers
from awoke.console.letters.replaying import Edited, send_edited
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import letter_of
from awoke.payloads import dead_letter
from awoke.payloads.formats.encryption import HEADER
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.support.clusters import Cluster, MockCluster, unique


class Patient(msgspec.Struct):
    name: str


SECRET = "a name that nobody may read"
PATIENT = Patient(SECRET)
FORM = awoke.encrypted(Patient, keys={"2026": b"k" * 32}, current="2026")
Send = Callable[["Sender", awoke.Topic], object]


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: what is sent is the same on real ones."""
    return mock_cluster


def made(cluster: Cluster, name: str) -> str:
    """Creates a topic, and returns its name."""
    topic = unique(name)
    cluster.create_topic(topic)
    return topic


class Sender:
    """What each way of sending needs: brokers, an app, and a topic to trigger it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.app = cluster, new_app(cluster)
        self.trigger = made(cluster, "trigger")

    def producer(self, **options: Any) -> awoke.Producer:
        return awoke.Producer(self.cluster.bootstrap_servers, **options)


def stored(cluster: Cluster, topic: str, count: int = 1) -> list[awoke.Message[Any, Any]]:
    """Returns the messages of a topic, as they are stored."""
    found = list[awoke.Message[Any, Any]]()
    with awoke.Reader(str(topic), bootstrap_servers=cluster.bootstrap_servers, start="earliest") as reader:
        for message in reader:
            found.append(message)
            if len(found) == count:
                return found
    raise AssertionError


def by_object(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer() as producer:
        producer.produce(topic, PATIENT).wait(30)


def many_by_object(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer() as producer:
        producer.produce_many(topic, [PATIENT])


def by_name(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer(topics=[topic]) as producer:
        producer.produce(str(topic), PATIENT).wait(30)


def as_bytes(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer() as producer:
        producer.produce(topic, msgspec.json.encode(PATIENT), headers=[(HEADER, b"2026")]).wait(30)


def as_text(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer() as producer:
        producer.produce(topic, msgspec.json.encode(PATIENT).decode()).wait(30)


def by_variant(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer() as producer:
        producer.variant(compression_type="gzip").produce(topic, PATIENT).wait(30)


def in_a_transaction(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer(transactional_id=unique("id")) as producer, producer.transaction() as transaction:
        transaction.produce(topic, PATIENT)


def many_in_a_transaction(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer(transactional_id=unique("id")) as producer, producer.transaction() as transaction:
        transaction.produce_many(topic, [PATIENT])


def by_middleware(sender: Sender, topic: awoke.Topic) -> None:
    with sender.producer(middleware=[lambda message: message._replace(topic=topic)]) as producer:
        producer.produce(sender.trigger, PATIENT).wait(30)


def by_an_app(sender: Sender, topic: awoke.Topic) -> None:
    sender.app.producer.produce(topic, PATIENT).wait(30)


def by_an_app_that_reads_it(sender: Sender, topic: awoke.Topic) -> None:
    @sender.app.on(topic)
    def handle(message: awoke.Message[Patient]) -> None: ...

    sender.app.producer.produce(str(topic), PATIENT).wait(30)


def by_an_app_whose_route_has_the_format(sender: Sender, topic: awoke.Topic) -> None:
    @sender.app.on(str(topic), value=FORM)
    def handle(message: awoke.Message[Patient]) -> None: ...

    sender.app.producer.produce(str(topic), PATIENT).wait(30)


def by_an_app_that_reads_a_pattern(sender: Sender, topic: awoke.Topic) -> None:
    @sender.app.on(awoke.pattern(f"{topic[:-1]}."), value=FORM)
    def handle(message: awoke.Message[Patient]) -> None: ...

    sender.app.producer.produce(str(topic), PATIENT).wait(30)


def _handled(sender: Sender, result: Any, **options: Any) -> None:
    ready = threading.Event()

    @sender.app.on(sender.trigger, **options)
    def handle(message: awoke.Message[bytes]) -> Any:
        ready.set()
        return result(message) if callable(result) else result

    with running(sender.app):
        with sender.producer() as producer:
            producer.produce(sender.trigger, b"go", headers=[(HEADER, b"2026")]).wait(30)
        assert ready.wait(30)


def as_an_output(sender: Sender, topic: awoke.Topic) -> None:
    _handled(sender, PATIENT, output=topic)


def as_an_output_with_headers_that_are_forwarded(sender: Sender, topic: awoke.Topic) -> None:
    _handled(sender, msgspec.json.encode(PATIENT), output=topic, forward_headers=True)


def as_an_outgoing(sender: Sender, topic: awoke.Topic) -> None:
    other = made(sender.cluster, "other")
    _handled(sender, awoke.Outgoing(topic, PATIENT), output=other)


def as_an_ordered_outgoing(sender: Sender, topic: awoke.Topic) -> None:
    other = made(sender.cluster, "other")
    options: dict[str, Any] = {"concurrency": awoke.by_key(4), "ordered": True}
    _handled(sender, awoke.Outgoing(topic, PATIENT), output=other, **options)


def exactly_once(sender: Sender, topic: awoke.Topic) -> None:
    other = made(sender.cluster, "other")
    _handled(sender, awoke.Outgoing(topic, PATIENT), output=other, exactly_once=True)


def exactly_once_several(sender: Sender, topic: awoke.Topic) -> None:
    other = made(sender.cluster, "other")
    _handled(sender, [awoke.Outgoing(topic, PATIENT)], output=other, exactly_once=True)


def by_a_consumer(sender: Sender, topic: awoke.Topic) -> None:
    ready = threading.Event()

    @sender.app.consumer(sender.trigger)
    class Copies(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None:
            self.app.producer.produce(topic, PATIENT).wait(30)
            ready.set()

    with running(sender.app):
        by_trigger(sender)
        assert ready.wait(30)


def by_a_transaction_of_a_consumer(sender: Sender, topic: awoke.Topic) -> None:
    ready = threading.Event()

    @sender.app.consumer(sender.trigger, exactly_once=True)
    class Copies(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Any]) -> None:
            with self.transaction() as transaction:
                transaction.produce(topic, PATIENT)
            ready.set()

    with running(sender.app):
        by_trigger(sender)
        assert ready.wait(30)


def by_trigger(sender: Sender) -> None:
    with sender.producer() as producer:
        producer.produce(sender.trigger, b"go").wait(30)


def as_an_edited_letter(sender: Sender, topic: awoke.Topic) -> None:
    @sender.app.on(topic, dead_letter="letters")
    def handle(message: awoke.Message[Patient]) -> None: ...

    brokers = Brokers(sender.app.settings)
    with _letter(sender, topic) as letter:
        edited = Edited(value=msgspec.json.encode(PATIENT).decode())
        send_edited(brokers, letter, edited, str(topic), None, sender.app.topic_formats)


@contextlib.contextmanager
def _letter(sender: Sender, topic: str) -> Iterator[Any]:
    letters = made(sender.cluster, "letters")
    headers = [(name, "1") for name in dead_letter.HEADERS]
    headers = [(name, str(topic) if name == dead_letter.TOPIC else value) for name, value in headers]
    headers = [pair for pair in headers if pair[0] not in dead_letter.ABOUT_VALUE]
    with sender.producer() as producer:
        producer.produce(letters, b"x" * 40, headers=[(HEADER, b"2026"), *headers]).wait(30)
    yield letter_of(stored(sender.cluster, letters)[0])


WAYS: list[Send] = [
    by_object,
    many_by_object,
    by_name,
    as_bytes,
    as_text,
    by_variant,
    in_a_transaction,
    many_in_a_transaction,
    by_middleware,
    by_an_app,
    by_an_app_that_reads_it,
    by_an_app_whose_route_has_the_format,
    by_an_app_that_reads_a_pattern,
    as_an_output,
    as_an_output_with_headers_that_are_forwarded,
    as_an_outgoing,
    as_an_ordered_outgoing,
    exactly_once,
    exactly_once_several,
    by_a_consumer,
    by_a_transaction_of_a_consumer,
    as_an_edited_letter,
]


@pytest.mark.parametrize("send", WAYS, ids=lambda way: way.__name__)
def test_no_value_leaves_unencrypted(cluster: Cluster, send: Send) -> None:
    topic = awoke.Topic(made(cluster, "patients"), value=FORM)
    sender = Sender(cluster)
    try:
        send(sender, topic)
    finally:
        sender.app.close_producer()
    [message] = stored(cluster, topic)
    assert SECRET.encode() not in message.value
    assert [value for name, value in message.headers if name == HEADER] == [b"2026"]
    with awoke.Reader(topic, bootstrap_servers=cluster.bootstrap_servers, start="earliest") as reader:
        assert next(iter(reader)).value == PATIENT


def test_a_dead_letter_stays_as_it_is_and_is_read_in_the_topic_of_letters(cluster: Cluster) -> None:
    topic = awoke.Topic(made(cluster, "patients"), value=FORM)
    letters = made(cluster, "letters")
    form = awoke.encrypted(Patient, keys={"2026": b"k" * 32}, current="2026", topic=topic)
    app, seen, read = new_app(cluster), list[Patient](), threading.Event()

    @app.on(topic, dead_letter=letters, retry=awoke.Retry(attempts=1))
    def fail(message: awoke.Message[Patient]) -> None:
        raise ValueError("no bed")

    @app.on(awoke.Topic(letters, value=form))
    def look(message: awoke.Message[Patient]) -> None:
        seen.append(message.value)
        read.set()

    with running(app):
        app.producer.produce(topic, PATIENT).wait(30)
        assert read.wait(30)
    assert seen == [PATIENT]
    assert stored(cluster, letters)[0].value == stored(cluster, topic)[0].value


def test_a_console_without_the_app_s_code_does_not_write_an_encrypted_letter(cluster: Cluster) -> None:
    topic = made(cluster, "patients")
    sender = Sender(cluster)
    with _letter(sender, topic) as letter, pytest.raises(ConfigError, match="can't write: open the console of the app"):
        send_edited(Brokers(sender.app.settings), letter, Edited(value="{}"), topic)


def test_a_topic_that_is_encrypted_here_and_not_there_is_refused() -> None:
    app = awoke.App("app")
    app.topic("patients", value=FORM)
    with pytest.raises(ConfigError, match="encrypted by one of its formats, and not by another"):
        app.topic("patients", value=awoke.msgpack(Patient))
    with pytest.raises(ConfigError, match="encrypted by one of its formats, and not by another"):
        app.topic_formats(awoke.Outgoing(awoke.Topic("patients", value=awoke.msgpack(Patient)), PATIENT))
    assert (
        SECRET.encode() not in app.topic_formats(awoke.Outgoing(awoke.Topic("patients", value=Patient), PATIENT)).value
    )


def test_an_output_that_a_pattern_of_its_route_matches_is_written_as_itself() -> None:
    app = awoke.App("app")

    @app.on(awoke.pattern(r"patients\..*"), value=FORM, output="patients.seen", dead_letter="patients.letters")
    def handle(message: awoke.Message[Patient]) -> Patient:
        return message.value

    for topic in ("patients.seen", "patients.letters"):
        assert app.topic_formats(awoke.Outgoing(topic, PATIENT)).value is PATIENT
    assert SECRET.encode() not in app.topic_formats(awoke.Outgoing("patients.eu", PATIENT)).value
