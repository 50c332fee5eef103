"""Plans replays of dead letters, makes them, and sends one that an operator has edited.

The offsets of a consumer group store which letters were sent, as for `awoke dead-letter replay`: each is sent once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from awoke.console.access import TIMEOUT_S, Brokers
from awoke.console.letters.listing import pick, read_letters
from awoke.console.letters.views import LetterRefused, ReplayPlan, ReplayResult, TargetCount
from awoke.errors import AwokeError, ConfigError
from awoke.operate.dead_letters.letters import Filter, Letter, Place
from awoke.operate.dead_letters.replays import ReplayMemory, Sender
from awoke.operate.dead_letters.targets import ReplayTargets
from awoke.payloads import dead_letter
from awoke.payloads.formats import protobuf_classes
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.encryption import Encrypted
from awoke.payloads.formats.format import DESCRIBING, Format
from awoke.payloads.message import Outgoing, header_pairs
from awoke.payloads.registry.schemas import NO_SCHEMAS
from awoke.payloads.topic_formats import TopicFormats
from awoke.preconditions import checks

COUNT_MAX = 10_000
"""The most letters of one replay."""
SHOWN_MAX = 100
"""The most refused letters that are named."""


class ReplayWanted(msgspec.Struct, kw_only=True, frozen=True):
    """The letters that an operator wants to send again."""

    topic: str
    places: list[tuple[int, int]] = []
    """None selects by fingerprint and filter."""
    fingerprint: str = ""
    error: str | None = None
    handler: str | None = None
    to: str | None = None
    """Another topic than the one that each came from."""
    granted: list[str] = []
    """The foreign topics that the operator has named."""
    count: int = 100
    """The most letters; the first ones are sent."""
    rate_per_s: float | None = None
    again: bool = False
    """True: also those that were sent before."""

    def filter(self) -> Filter:
        """Returns the filter for the letters."""
        return Filter(error=self.error or None, handler=self.handler or None)


class Replay:
    """A replay of the letters of one topic. One thread; another one may cancel a run. A context manager.

    Inside the block it is the only member of the group that stores which letters were sent.
    """

    def __init__(self, brokers: Brokers, wanted: ReplayWanted, is_read: Callable[[str], bool]) -> None:
        check(wanted)
        self._brokers, self._wanted = brokers, wanted
        self._targets = ReplayTargets(wanted.to, is_read, wanted.granted)
        self._is_read = is_read
        self._memory: ReplayMemory | None = None
        self._sender: Sender | None = None
        self._is_cancelled = False
        self._exit = contextlib.ExitStack()
        self._chosen: list[Letter] = []
        self._sent_before = 0

    def __enter__(self) -> Replay:
        """Reads the letters, and which were sent before. Blocks until the group has a place for this member.

        Raises:
            AwokeError: Another replay of the topic runs, or the topic is too large. ReplayCancelled.
            UnknownTopic; AuthorizationFailed; OperationTimeout.
        """
        wanted = self._wanted
        read = read_letters(self._brokers, wanted.topic)
        if read.is_partial:  # The stored offsets would count the letters that were not read as sent.
            raise AwokeError(f"{wanted.topic} has too many messages for the console: use awoke dead-letter replay")
        options = self._brokers.options()
        with self._brokers.admin() as admin:
            partitions = [each.partition for each in admin.describe_topic(wanted.topic, TIMEOUT_S).partitions]
        memory = ReplayMemory(
            wanted.topic, f"awoke-replay.{wanted.topic}", options["bootstrap_servers"], options["kafka"]
        )
        self._memory = self._exit.enter_context(memory)
        try:
            if self._is_cancelled:  # Before there was a memory to be told.
                memory.cancel()
            memory.load(read.letters, partitions)
        except BaseException:
            self._exit.close()
            raise
        chosen = select(read.letters, wanted)
        fresh = [each for each in chosen if wanted.again or not memory.has_sent(each)]
        self._sent_before = len(chosen) - len(fresh)
        self._chosen = fresh[: wanted.count]
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def plan(self) -> ReplayPlan:
        """Returns what would be sent, and sends nothing: a dry run."""
        refused = list[LetterRefused]()
        fit = list[Letter]()
        for each in self._chosen:
            try:
                self._targets.check(each)
                fit.append(each)
            except AwokeError as error:
                refused.append(_refused(each, error))
        counts = Counter(map(self._targets.of, fit))
        return ReplayPlan(
            topic=self._wanted.topic,
            count=len(fit),
            targets=[
                TargetCount(topic=topic, count=count, is_foreign=self._targets.is_foreign(topic))
                for topic, count in sorted(counts.items())
            ],
            refused=refused[:SHOWN_MAX],
            sent_before=self._sent_before,
            digest=digest_of([each.place for each in fit], sorted(counts)),
        )

    def run(self, digest: str, tell: Callable[[int, int], None] | None = None) -> ReplayResult:
        """Sends the letters of a plan in order, and stops at the first that is refused. Blocks.

        `tell` gets the number of letters that were sent, and that of all: first with none, then after each letter.

        Raises:
            AwokeError: The letters are no longer those of the plan. ConfigError: A target is foreign, and not granted.
        """
        plan = self.plan()
        if plan.digest != digest:
            raise AwokeError(f"the dead letters of {plan.topic} have changed since the plan; look at the new one")
        foreign = [each.topic for each in plan.targets if each.is_foreign]
        if foreign:
            raise ConfigError(
                f"only the letters name these topics, name them, too: {', '.join(foreign)[:500]}", "granted"
            )
        unfit = {(each.partition, each.offset) for each in plan.refused}
        letters = [each for each in self._chosen if each.place not in unfit]
        memory, total = self._memory, len(letters)
        assert memory is not None, "a replay runs inside its block"
        memory.check_room(letters)
        if tell is not None:
            tell(0, total)
        properties = dead_letter.producer_properties(self._brokers.options()["kafka"])
        with self._brokers.producer(properties) as producer:
            sender = self._sender = Sender(producer, memory, self._targets, self._wanted.rate_per_s)
            if self._is_cancelled:  # Before there was a sender to be told.
                sender.cancel()
            sender.send(letters, True, None if tell is None else lambda sent: tell(sent, total))
        return ReplayResult(
            topic=plan.topic,
            sent=sender.sent,
            refused=[_refused(letter, error) for letter, error in sender.failures],
            left=len(letters) - sender.sent - len(sender.failures),
            is_cancelled=sender.is_cancelled,
        )

    def cancel(self) -> None:
        """Ends a run after the letter that is being sent, or before the first one. Does not block. Any thread."""
        self._is_cancelled = True
        for each in (self._memory, self._sender):
            if each is not None:
                each.cancel()


class Edited(msgspec.Struct, kw_only=True, frozen=True):
    """A dead letter as an operator has edited it; a field that is left out stays as it was."""

    key: str | msgspec.UnsetType | None = msgspec.UNSET
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    """None is a tombstone."""
    headers: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """In the place of the message's own."""


def send_edited(
    brokers: Brokers,
    letter: Letter,
    edited: Edited,
    to: str,
    check_value: Callable[[bytes], Any] | None = None,
    formats: TopicFormats | None = None,
) -> tuple[int, int]:
    """Sends a letter with the parts that were edited to a topic; returns its partition and offset there. Blocks.

    `check_value` is the decoder of the route that reads the topic: it raises if the edited value is of no use to it.
    `formats` are those of the app's topics: the edited value is written in the format of the topic.

    Raises:
        ConfigError: The topic's name or the value is wrong. DeliveryFailed; MessageTooLarge.
    """
    checks.topic("the letter", "topic", to)
    message = edited_message(letter, edited, to, formats)
    value, key, headers = message.value, message.key, message.headers
    data = value.encode() if isinstance(value, str) else value
    has_format = formats is not None and formats.value_format(to) is not None
    if data is not None and check_value is not None and not has_format:
        try:
            check_value(data)
        except Exception as error:  # It is user code, and libraries that read foreign bytes.
            cause = error.__cause__ or error
            raise ConfigError(f"the edited value can't be read by the route of {to!r}: {cause}", "value") from None
    with brokers.producer(dead_letter.producer_properties(brokers.options()["kafka"])) as producer:
        delivery = producer.produce(to, data, key=key, headers=headers).wait(TIMEOUT_S)
    return delivery.partition, delivery.offset


def edited_message(letter: Letter, edited: Edited, to: str, formats: TopicFormats | None) -> Outgoing:
    """Returns the message of a letter with the parts that were edited, as the topic's format writes it.

    Raises:
        ConfigError: The value is in a format that this console does not have, or is no value of the topic's format.
    """
    record = dead_letter.original(letter.message)
    key = record.key if edited.key is msgspec.UNSET else edited.key
    headers = record.headers if edited.headers is msgspec.UNSET else edited.headers
    form = None if formats is None else formats.value_format(to)
    describing = [pair for pair in header_pairs(record.headers) if pair[0] in DESCRIBING["value"]]
    value: Any
    if edited.value is msgspec.UNSET:
        value = record.value
        given = {name for name, _ in header_pairs(headers)}
        headers = [*header_pairs(headers), *(pair for pair in describing if pair[0] not in given)]
        before = None if formats is None else formats.value_format(letter.origin.topic)
        if value is not None and before is not None and before.is_encrypted:
            value = Encrypted(value)
    elif edited.value is None or form is not None:
        value = None if edited.value is None or form is None else edited_value(form, edited.value, to)
    elif describing or (record.value or b"")[:1] == b"\0":
        text = "the value names a schema, or a key of encryption, in whose format this console can't write"
        raise ConfigError(f"{text}: open the console of the app, as awoke console MODULE:APP", "value")
    else:
        value = edited.value
    message = Outgoing(to, value, key, headers)
    return message if formats is None else formats(message)


def edited_value(form: Format, text: str, topic: str) -> Any:
    """Returns a text that an operator has edited as the value that a format writes: JSON, unless it writes bytes.

    Raises:
        ConfigError: It is not a value of the format.
    """
    kind = form.value_type
    if kind in (bytes, str, bytes | None, str | None):
        return text.encode()
    if protobuf_classes.class_in(kind) is not None:
        raise ConfigError(f"values of {topic!r} are Protobuf, which can't be edited here", "value")
    try:
        if kind is None:
            return msgspec.json.decode(text)
        return BY_TYPE.of(kind).decoder(topic, "value", NO_SCHEMAS)(text.encode())
    except Exception as error:  # The type is user code, and the libraries of types have errors of their own.
        raise ConfigError(f"the edited value can't be read by the route of {topic!r}: {error}", "value") from None


def select(letters: Sequence[Letter], wanted: ReplayWanted) -> list[Letter]:
    """Returns the letters that are wanted: those at places, or else those of a fingerprint and a filter."""
    if wanted.places:
        places = {tuple(each) for each in wanted.places}
        return [each for each in letters if each.place in places]
    return pick(letters, wanted.filter(), wanted.fingerprint)


def check(wanted: ReplayWanted) -> None:
    """Refuses a replay without bounds.

    Raises:
        ConfigError: It has none.
    """
    if not 1 <= wanted.count <= COUNT_MAX:
        raise ConfigError(f"count is a number from 1 to {COUNT_MAX}, not {wanted.count}", "count")
    if wanted.rate_per_s is not None and not 0.001 <= wanted.rate_per_s <= 1_000_000:
        raise ConfigError(f"rate is a number of letters per second above 0, not {wanted.rate_per_s}", "rate_per_s")
    if wanted.to is not None:
        checks.topic("the replay", "to", wanted.to)


def digest_of(places: Collection[Place], topics: Collection[str]) -> str:
    """Returns the same text for the same letters and targets."""
    lines = [*("{}:{}".format(*each) for each in places), *topics]
    return hashlib.blake2b("\n".join(lines).encode(errors="replace"), digest_size=8).hexdigest()


def _refused(letter: Letter, error: AwokeError) -> LetterRefused:
    return LetterRefused(partition=letter.message.partition, offset=letter.message.offset, reason=str(error))
