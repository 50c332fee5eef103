"""Sends dead letters again, and stores which were sent in the committed offsets of a consumer group.

The group's offset of a partition is that of the first dead letter that was not sent. The metadata of that offset has
the later ones that were sent, as ranges of offsets: `12-15,20`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import monotonic

import awoke
from awoke.errors import AwokeError, FencedError, is_refused_for_good
from awoke.operate.dead_letters.letters import Letter
from awoke.operate.dead_letters.targets import ReplayTargets

JOINED_WITHIN_S = 60.0
"""The longest wait for all partitions: more than the session timeout of a replay that was killed (45 s)."""
TOLD_AFTER_S = 3.0
"""The time after which a wait for partitions is told: a group without another member gives them sooner."""
COMMITTED_WITHIN_S = 30.0
METADATA_BYTES_MAX = 4_000
"""The longest metadata. Brokers accept 4,096 bytes (`offset.metadata.max.bytes`)."""
CHUNK_MAX = 1_000
"""The number of messages sent before their answers are awaited and stored. After a crash they may be sent twice."""


class ReplayCancelled(AwokeError):
    """An operator has cancelled the replay; its text says how many letters were sent."""


def encode(offsets: Sequence[int], sent: set[int]) -> tuple[int, str] | None:
    """Returns the offset and the metadata that store which offsets were sent; `None` if `offsets` is empty.

    `offsets` are those of all dead letters of the partition, in order.
    """
    if not offsets:
        return None
    first = next((each for each in offsets if each not in sent), offsets[-1] + 1)
    ranges: list[tuple[int, int]] = []
    is_open = False
    for each in offsets:
        is_sent = each > first and each in sent
        if is_sent and is_open:
            ranges[-1] = (ranges[-1][0], each)
        elif is_sent:
            ranges.append((each, each))
        is_open = is_sent
    return first, ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def decode(offsets: Sequence[int], offset: int, metadata: str | None) -> set[int]:
    """Returns those of these offsets that were sent. Ignores metadata of other programs."""
    sent = {each for each in offsets if each < offset}
    for word in (metadata or "").split(","):
        low, _, high = word.partition("-")
        if low.isdecimal() and (high or low).isdecimal():
            sent |= {each for each in offsets if int(low) <= each <= int(high or low)}
    return sent


class ReplayMemory:
    """The stored state of replays of a topic. A context manager: inside the block it is a member of a group."""

    def __init__(self, topic: str, group: str, bootstrap_servers: str | None, kafka: Mapping[str, str]) -> None:
        self._topic, self._group = topic, group
        self._app = awoke.App("awoke-replay", group=group, bootstrap_servers=bootstrap_servers, kafka=kafka, workers=1)
        self._changed = threading.Condition()
        self._is_cancelled = False
        self._assigned: dict[int, awoke.Consumer] = {}
        self._app.consumer(topic, offsets="manual")(self._consumer())
        self._server = awoke.AppRunner(self._app, serves_metrics=False)
        self._offsets: dict[int, list[int]] = {}
        self._sent: dict[int, set[int]] = {}

    def _consumer(self) -> type[awoke.Consumer]:
        changed, all_assigned = self._changed, self._assigned

        class Bookmark(awoke.Consumer):
            def assigned(self) -> None:
                self.pause()
                with changed:
                    all_assigned[self.partition] = self
                    changed.notify_all()

            def consume(self, batch: awoke.Batch[bytes]) -> None:
                """Does nothing: the partition is paused, so this is never called."""

        return Bookmark

    def __enter__(self) -> ReplayMemory:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def load(
        self, letters: Iterable[Letter], partitions: Iterable[int], tell: Callable[[str], object] | None = None
    ) -> None:
        """Reads which of these letters were sent. Blocks until this member has all partitions.

        `tell` gets a text that says what is waited for, if that takes long.

        Raises:
            AwokeError: Another member has some partitions, or the brokers do not answer.
            ReplayCancelled: `cancel` was called before the partitions came.
        """
        wanted = set(partitions)

        def is_over() -> bool:
            return self._is_cancelled or wanted <= set(self._assigned)

        with self._changed:
            has_all = self._changed.wait_for(is_over, min(TOLD_AFTER_S, JOINED_WITHIN_S))
            if not has_all and tell is not None:
                text = "another replay of it runs, or one was killed, whose session ends after 45 s"
                tell(f"waiting up to {JOINED_WITHIN_S:.0f} s for the partitions of {self._topic}: {text}")
            has_all = has_all or self._changed.wait_for(is_over, max(0.0, JOINED_WITHIN_S - TOLD_AFTER_S))
            if self._is_cancelled:
                raise ReplayCancelled("the replay was cancelled before it sent a letter")
            if not has_all:
                text = f"the group {self._group} did not give all partitions of {self._topic} to this process"
                raise AwokeError(f"{text} within {JOINED_WITHIN_S:.0f} s: does another replay of it run?")
        self._offsets = {each: [] for each in wanted}
        for letter in letters:
            self._offsets[letter.message.partition].append(letter.message.offset)
        for partition, offsets in self._offsets.items():
            offset, metadata = self._assigned[partition].committed() or (0, None)
            self._sent[partition] = decode(offsets, offset, metadata)

    def cancel(self) -> None:
        """Ends `load`, also one that begins later. Does not block. Any thread."""
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()

    def has_sent(self, letter: Letter) -> bool:
        """Returns whether a dead letter was sent before."""
        partition, offset = letter.place
        return offset in self._sent[partition]

    def check_room(self, letters: Iterable[Letter]) -> None:
        """Checks that the metadata can store these letters.

        Raises:
            AwokeError: They make too many ranges.
        """
        then = {partition: set(sent) for partition, sent in self._sent.items()}
        for letter in letters:
            then[letter.message.partition].add(letter.message.offset)
        for partition, offsets in self._offsets.items():
            found = encode(offsets, then[partition])
            if found is not None and len(found[1]) > METADATA_BYTES_MAX:
                text = f"these dead letters of {self._topic}[{partition}] make too many ranges to be remembered"
                raise AwokeError(f"{text}: send fewer of them at a time, or send those in between, too")

    def remember(self, letters: Iterable[Letter]) -> None:
        """Records letters as sent, and commits that. Blocks.

        Raises:
            AwokeError: The brokers refused the commit, or another replay has begun.
        """
        changed = {letter.message.partition for letter in letters if not self.has_sent(letter)}
        for letter in letters:
            self._sent[letter.message.partition].add(letter.message.offset)
        try:
            for partition in changed:
                found = encode(self._offsets[partition], self._sent[partition])
                assert found is not None
                self._assigned[partition]._assigned().annotate(*found)
            if changed:
                self._assigned[changed.pop()].commit(COMMITTED_WITHIN_S)
        except FencedError:
            text = f"another replay of {self._topic} has begun: what this one sent last is not remembered"
            raise AwokeError(text) from None


class Sender:
    """Sends dead letters again. One thread; another one may cancel."""

    def __init__(
        self, producer: awoke.Producer, memory: ReplayMemory, targets: ReplayTargets, rate_per_s: float | None
    ) -> None:
        self._producer, self._memory, self._targets, self._rate_per_s = producer, memory, targets, rate_per_s
        self._cancelled = threading.Event()
        self.sent = 0
        self.failures: list[tuple[Letter, AwokeError]] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        """Ends the replay after the letters that are being sent. Does not block. Any thread."""
        self.is_cancelled = True
        self._cancelled.set()

    def send(
        self, letters: Sequence[Letter], stops_at_failure: bool, tell: Callable[[int], None] | None = None
    ) -> None:
        """Sends letters in order, and records each chunk when it is acknowledged. Blocks.

        `tell` gets the number of letters that were sent, after each chunk.
        """
        size = CHUNK_MAX if self._rate_per_s is None else max(1, min(CHUNK_MAX, int(self._rate_per_s)))
        for chunk in self._paced(chunks(letters, 1 if stops_at_failure else size)):
            done = self._send_chunk(chunk)
            self.sent += len(done)
            self._memory.remember(done)
            if tell is not None:
                tell(self.sent)
            if self.failures and stops_at_failure:
                return

    def _paced(self, all_chunks: Iterable[Sequence[Letter]]) -> Iterator[Sequence[Letter]]:
        """Yields each chunk at the moment that the rate allows, until the replay is cancelled."""
        began_s, count = monotonic(), 0
        for chunk in all_chunks:
            if self._rate_per_s is not None:
                self._cancelled.wait(max(0.0, began_s + count / self._rate_per_s - monotonic()))
            if self.is_cancelled:
                return
            yield chunk
            count += len(chunk)

    def _send_chunk(self, chunk: Sequence[Letter]) -> list[Letter]:
        """Returns the letters that were acknowledged, and keeps the failures of the others."""
        failures = self._try(chunk)
        if len(chunk) > 1:  # A broker refuses a complete batch as too large, so each of its messages is sent alone.
            alone = [letter for letter, error in failures if is_refused_for_good(error)]
            failures = [failure for failure in failures if not is_refused_for_good(failure[1])]
            failures += [failure for letter in alone for failure in self._try([letter])]
        self.failures += failures
        failed = {letter.place for letter, _ in failures}
        return [letter for letter in chunk if letter.place not in failed]

    def _try(self, chunk: Iterable[Letter]) -> list[tuple[Letter, AwokeError]]:
        """Sends letters together; returns those that were refused, with their errors."""
        pending, failures = [], []
        for letter in chunk:
            try:
                pending.append((letter, self._produce(letter)))
            except AwokeError as error:
                failures.append((letter, error))
        for letter, handle in pending:
            try:
                handle.wait()
            except AwokeError as error:
                failures.append((letter, error))
        return failures

    def _produce(self, letter: Letter) -> awoke.DeliveryHandle:
        self._targets.check(letter)
        record = awoke.dead_letter.original(letter.message)
        return self._producer.produce(self._targets.of(letter), record.value, key=record.key, headers=record.headers)


def chunks(letters: Sequence[Letter], size: int) -> Iterator[Sequence[Letter]]:
    """Yields letters in order, `size` at a time."""
    rest = iter(letters)
    while chunk := list(islice(rest, size)):
        yield chunk
