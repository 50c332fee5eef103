"""awoke's engine, as Python sees it. Internal but for Batch, DeliveryHandle, Message and what Producer inherits."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar, final

from typing_extensions import disjoint_base

from awoke._waiting import Delivery
from awoke.settings import EngineSettings

_Value = TypeVar("_Value", covariant=True)
_Entry = TypeVar("_Entry")

def librdkafka_version() -> str:
    """The version of librdkafka that is built in."""

def set_fetched_batch_max(bytes: int) -> None:
    """Bound what one fetched batch may take in memory, for all consumers of the process from here on. Does not block."""

def is_secret(property: str) -> bool:
    """Whether the value of this librdkafka property must never be shown."""

def hurry_all(handles: Sequence[DeliveryHandle]) -> None:
    """Have these messages sent without lingering, together. Does not block."""

def first_undelivered(handles: Sequence[DeliveryHandle]) -> int | None:
    """Return the place of the first handle that is not answered, or badly; None when all messages were delivered."""

def wait_all(handles: Sequence[DeliveryHandle], timeout_s: float | None = None) -> bool:
    """Wait until all handles are answered, well or badly; whether they are. Blocks with the GIL released."""

@final
class Message(Generic[_Value]):
    """One message: a view into its batch, which it keeps alive. Keep values rather than messages for long."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> _Value:
        """Decoded once, where the route has a type; bytes otherwise.

        A tombstone is None where the type takes it: `value=Order | None` and `Message[Order | None]`. Without a type it is
        None, too: a route whose topic has tombstones takes `Message[bytes | None]`.

        Raises:
            DecodeError: the bytes can't be read as the route's type, or it is a tombstone and the type takes no None.
        """
    @property
    def raw_value(self) -> bytes | None:
        """The value as bytes; None for a tombstone."""
    @property
    def value_buffer(self) -> memoryview | None:
        """The fetched bytes themselves, read-only, not copied; None for a tombstone."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """In order; a name may come more than once."""
    @property
    def timestamp_ms(self) -> int | None:
        """Milliseconds since 1970."""
    @property
    def attempt(self) -> int:
        """Which try of this message it is, from 1."""

@final
class Batch(Generic[_Value]):
    """Messages of one topic-partition in offset order; at least one."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def first_offset(self) -> int:
        """The offset of the first message.

        Raises:
            IndexError: the batch is empty.
        """
    @property
    def last_offset(self) -> int:
        """The offset of the last message.

        Raises:
            IndexError: the batch is empty.
        """
    @property
    def attempt(self) -> int:
        """Which try of the first message this is, from 1."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Message[_Value]: ...
    def __iter__(self) -> Iterator[Message[_Value]]: ...
    @property
    def size_bytes(self) -> int:
        """Keys and values of all messages together."""
    def pick(self, places: Sequence[int]) -> Batch[_Value]:
        """The messages at these places, counted from 0, in this order. Copies no bytes.

        Raises:
            IndexError: a place that the batch does not have.
        """
    def values(self) -> list[_Value]:
        """All values in offset order: decoded, where the route has a type.

        Raises:
            DecodeError: names the first message that does not decode.
        """
    def raw_values(self) -> list[bytes | None]:
        """All values in offset order as bytes; None for tombstones."""
    def keys(self) -> list[bytes | None]:
        """All keys in offset order."""
    def offsets(self) -> list[int]:
        """All offsets in order."""
    def detach(self) -> None:
        """Copy the messages out of librdkafka's memory and let go of it; awoke does so when a kept batch's job has ended."""

@final
class BatchIterator:
    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Message[Any]: ...

@final
class ValueBuffer: ...

@final
class DeliveryHandle:
    """What the sender of a message holds until the broker has answered for it. Dropping it costs nothing."""

    def wait(self, timeout_s: float | None = None) -> Delivery:
        """Wait until the broker has answered for this message.

        Blocks the calling thread with the GIL released. None waits for `delivery.timeout.ms`. Any thread may wait.

        Raises:
            DeliveryTimeout: no answer within `timeout_s`; the message may still be delivered.
            DeliveryFailed: the broker or librdkafka refused it; see `code_name` and `is_retriable`.
        """
    def result(self) -> Delivery:
        """The answer, which must be there. Does not block.

        Raises:
            DeliveryTimeout: there is no answer yet; DeliveryFailed: it was refused.
        """
    def exception(self) -> BaseException | None:
        """What `result` would raise, or None. Does not block."""
    def done(self) -> bool:
        """Whether the answer is there. Does not block."""
    def add_done_callback(self, callback: Callable[[DeliveryHandle], object]) -> None:
        """Call `callback(handle)` when the answer is there, on a thread of awoke's; what it raises is logged."""
    def __await__(self) -> Generator[Any, None, Delivery]: ...
    @property
    def topic(self) -> str: ...
    @property
    def woken_at_ns(self) -> int:
        """When the answer came, in nanoseconds of `time.monotonic_ns()`; 0 when nobody was waiting for it then."""
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...

@disjoint_base
class Producer:
    def __new__(
        cls,
        properties: Mapping[str, str],
        encoder: Callable[[Any], bytes],
        produce_timeout_s: float | None,
        idle_after_s: float | None,
        events: EventBox,
        patience_s: float = 0.0,
    ) -> Self: ...
    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
        variant: Variant | None = None,
    ) -> DeliveryHandle:
        """Send a message; the handle says what became of it.

        The value is bytes, text, None (a tombstone) or anything that msgspec writes as JSON. Does not block but for a full
        queue, where it waits for room up to `timeout_s` (None: the setting `produce_timeout_s`; 0: not at all) with the
        GIL released. Any thread.

        Raises:
            QueueFull: no room in time; MessageTooLarge; EncodeError; KafkaError: refused at once, as for an unknown
            partition; ClosedError; ForkedClientError. Nothing was sent then.
        """
    def produce_many(
        self,
        topic: str,
        messages: Iterable[Any],
        *,
        timeout_s: float | None = None,
        variant: Variant | None = None,
    ) -> list[DeliveryHandle]:
        """Send messages in order; one handle for each.

        A message is a `Record`, a pair of value and key, or a value alone. Of a list or a tuple many go at once; of anything
        else each is sent when it comes. Blocks while the queue is full, for each message as long as `timeout_s`; on an
        error the messages before it have been sent.

        Raises:
            QueueFull, MessageTooLarge, EncodeError, KafkaError, ClosedError, ForkedClientError: as `produce`.
        """
    def begin(self, timeout_s: float | None = None) -> Transaction: ...
    def flush(self, timeout_s: float | None = None) -> bool:
        """Send what is queued without lingering and wait for the answers; whether all came. Blocks."""
    def close(self, timeout_s: float | None = None) -> int:
        """Flush and end; how many messages were not delivered. Blocks."""
    def queued(self) -> tuple[int, int]:
        """Messages and bytes that wait for their delivery report. Does not block."""

@final
class Variant:
    def __new__(cls, properties: Mapping[str, str]) -> Variant: ...

@final
class Transaction:
    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
    ) -> DeliveryHandle: ...
    def commit(self, timeout_s: float | None = None) -> None: ...
    def abort(self, timeout_s: float | None = None) -> None: ...

@final
class Transactor:
    def __new__(
        cls,
        properties: Mapping[str, str],
        is_alone: bool,
        settings: EngineSettings,
        encoder: Callable[[Any], bytes],
        events: EventBox,
    ) -> Transactor: ...
    def contribution(self) -> Contribution: ...
    def submit(self, contribution: Contribution, job: Job, offset: int | None) -> PendingCommit: ...
    def commit(self, partition: Partition) -> PendingCommit: ...
    def close(self) -> None: ...

@final
class Contribution:
    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...

@final
class EventBox:
    def __new__(cls) -> EventBox: ...
    def fileno(self) -> int: ...
    def drain(self) -> list[tuple[str, str, dict[str, Any]]]: ...
    def dropped(self) -> int: ...

@final
class Mailbox:
    def __new__(cls) -> Mailbox: ...
    def fileno(self) -> int: ...
    def drain(self) -> list[int]: ...
    def post(self, token: int) -> None: ...

@final
class Bell:
    def __new__(cls) -> Bell: ...
    def fileno(self) -> int: ...
    def quiet(self) -> None: ...
    def ring(self) -> None: ...

@final
class Scheduler:
    def __new__(cls) -> Scheduler: ...
    def next(self) -> Job | HookJob | Sorting | None: ...
    def next_or_ring(self, bell: Bell) -> tuple[Job | HookJob | Sorting | None, float | None, bool]: ...
    def quiet(self) -> None: ...
    def close(self) -> None: ...
    def dismiss(self, workers: int) -> None: ...
    def counters(self) -> dict[str, int]: ...

@final
class Job:
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def first_offset(self) -> int: ...
    @property
    def remaining(self) -> int: ...
    @property
    def waited_s(self) -> float: ...
    @property
    def is_fenced(self) -> bool: ...
    def assignment(self) -> Partition: ...
    def cut(self, messages: int) -> None: ...
    def release(self) -> None: ...
    def pass_on(self) -> None: ...
    def batch(self, decoder: Callable[[bytes], Any] | None = None) -> Batch[Any]: ...
    def each(self, batch: Batch[Any]) -> Iterator[Message[Any]]:
        """Gives the messages of this batch, which is the job's or picked from it, one by one.

        Before each but the first it looks whether the job is to end: its partition is to be given back, paused or sought
        in, the process stops, or its turn is over. Then it leaves the rest to a later job. Does not block.

        Raises:
            ClosedError: the job has ended.
        """
    @property
    def rest_offset(self) -> int | None: ...
    @property
    def left(self) -> int: ...
    def done(self, offset: int) -> None: ...
    def complete(self) -> None: ...
    def retry(self, delay_s: float) -> None: ...
    @property
    def is_of_lanes(self) -> bool: ...
    @property
    def epoch(self) -> int: ...
    def ordinals(self) -> list[int | None]: ...
    def step_aside(self, is_held: bool) -> None: ...
    def part(self, offset: int) -> Job | None: ...
    def hold_partition(self) -> bool: ...
    def let_go_of_partition(self) -> None: ...

@final
class Intake:
    """Hands out the calls of a service, and decides which are to be carried out. Any thread."""

    def __new__(
        cls,
        scheduler: Scheduler,
        options: Any,
        calls_topic: str,
        reply_topics: Mapping[str, int],
        methods: Sequence[Any],
        events: EventBox,
    ) -> Self:
        """`options` is an `awoke.rpc.methods.Options`, each method an `awoke.rpc.methods.Method`.

        `reply_topics` are the topics that replies may go to, each with the number of its partitions.
        """
    def set_reply_topics(self, partitions: Mapping[str, int]) -> None:
        """Replaces the topics that replies may go to. Does not block."""
    def next(self) -> Work | None:
        """The next call to be carried out, or refused; None when the scheduler has closed. Blocks with the GIL released."""
    def end(self, work: Work, kind: str | None, body: bytes) -> list[Work]:
        """The answer to a call is final (`kind` None: an error, or none); who waits for the same. Does not block."""
    def leave(self, work: Work) -> Work | None:
        """A call was carried out; the one that is to be carried out in its place. Does not block."""
    def counts(self) -> tuple[int, int]:
        """How many calls run, and how many stand in line. Does not block."""

@final
class Work:
    """A call that is to be carried out, or refused, for awoke's own responder. Any thread."""

    @property
    def verdict(self) -> str | None:
        """Why it is not to be carried out; None where it is."""
    @property
    def known(self) -> tuple[str, bytes] | None:
        """Kind and body of the answer, where it was carried out before."""
    @property
    def id(self) -> bytes: ...
    @property
    def name(self) -> str:
        """Of the method that is called."""
    @property
    def method(self) -> Any:
        """As `Intake` was told of it; None where there is none of this name."""
    @property
    def caller(self) -> str: ...
    @property
    def reply_to(self) -> tuple[str, int] | None: ...
    @property
    def idempotency_key(self) -> bytes | None: ...
    @property
    def signed_names(self) -> list[str] | None:
        """The names of other headers that its caller has signed; None where nothing is signed."""
    @property
    def budget_s(self) -> float: ...
    @property
    def left_s(self) -> float:
        """How long its caller still waited when it was read; negative when it did no more."""
    @property
    def queued_s(self) -> float:
        """From the call to the reading, on the callers' clock."""
    @property
    def until_s(self) -> float:
        """When it is to end, on `time.monotonic()`."""
    @property
    def remaining_s(self) -> float: ...
    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled, or its time is over."""
    @property
    def is_given_up(self) -> bool:
        """Whether it was cancelled."""
    @property
    def ran_s(self) -> float: ...
    @property
    def job(self) -> Job | None: ...
    @property
    def last(self) -> DeliveryHandle | None:
        """The reply that was sent last."""
    @property
    def window(self) -> Any:
        """Of a stream, its `awoke.rpc.window.Window`."""
    @property
    def contribution(self) -> Any: ...
    @contribution.setter
    def contribution(self, contribution: Any) -> None: ...
    @property
    def body(self) -> bytes: ...
    @property
    def message(self) -> Message[bytes]: ...
    @property
    def incoming(self) -> Any:
        """The call as its method sees it: an `awoke.rpc.context.IncomingCall`."""
    def when_cancelled(self, function: Callable[[], object]) -> bool:
        """Have a function called when its caller cancels before it is over; False where it has done so already."""
    def forget(self, function: Callable[[], object]) -> None: ...
    def begin(self) -> str | None:
        """It may run now. Why it is not to be executed: "fenced", "cancelled", "expired" or "impatient"."""
    def start(self) -> None:
        """Its method begins."""
    def stop(self) -> None:
        """Its method has ended."""
    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and offset of its record."""
    def take_job(self) -> Job | None:
        """Its job, for who ends that before the call."""
    def reply(self, producer: Producer, kind: str, body: bytes, code: str | None = None) -> None:
        """Send a reply, if anybody wants it. Blocks while the producer's queue is full. Raises as `Producer.produce`."""
    def reply_headers(
        self, kind: str, body: bytes, code: str | None = None
    ) -> list[tuple[str, bytes | str | None]] | None:
        """What `reply` would send with it; None where nobody wants it."""
    def step_aside(self, is_held: bool) -> None: ...
    def close(self) -> None:
        """It is over: what nobody kept is let go of."""
    def end_job(self, delay_s: float) -> None:
        """End its job when the last reply is acknowledged or refused for good, or now.

        Refused otherwise, it comes again after `delay_s`.
        """
    def retry(self, delay_s: float) -> None:
        """Have it carried out again by whoever has the partition then."""

@final
class Sorting:
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    def batch(self, decoder: Callable[[bytes], Any] | None = None) -> Batch[Any]: ...
    def finish(self, numbers: Sequence[int]) -> None: ...

@final
class HookJob:
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def name(self) -> str: ...
    def assignment(self) -> Partition: ...
    def finish(self) -> None: ...

@final
class Partition:
    """One assignment of a partition; when it has ended, everything here raises `FencedError`. Any thread."""

    @property
    def is_current(self) -> bool: ...
    def offsets(self) -> tuple[int | None, int | None]: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def hasten(self) -> None: ...
    def seek(self, offset: int) -> None: ...
    def offset_at(self, timestamp_ms: int) -> int: ...
    def committed(self) -> tuple[int, str | None] | None: ...
    def annotate(self, offset: int, metadata: str | None) -> None: ...

class _Lanes(Protocol):
    @property
    def by(self) -> str: ...
    @property
    def jobs(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def trail(self) -> int: ...
    @property
    def shares(self) -> bool: ...
    @property
    def careful(self) -> int: ...

@final
class Route:
    def __new__(
        cls,
        topic: str,
        scheduler: Scheduler,
        *,
        messages_max: int,
        bytes_max: int,
        wait_max_s: float | None = None,
        delay_s: float | None = None,
        rate_per_s: float | None = None,
        weight: int = 1,
        tick_every_s: float | None = None,
        start: tuple[str, int] | None = None,
        concurrency: _Lanes | None = None,
        is_transactional: bool = False,
        expires_by: tuple[str, float] | None = None,
        turn_max_s: float | None = None,
        batch_time_max_s: float | None = None,
        stores_by_hand: bool = False,
        jobs_max: int | None = None,
    ) -> Route: ...
    @property
    def expired(self) -> int: ...

class _Whom(Protocol):
    @property
    def calls_topic(self) -> str: ...
    @property
    def replies_topic(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def calls_max(self) -> int: ...
    @property
    def bytes_max(self) -> int: ...
    @property
    def reply_bytes_max(self) -> int: ...
    @property
    def secret(self) -> bytes | None: ...

@final
class Caller:
    def __new__(
        cls,
        producer_properties: Mapping[str, str],
        consumer_properties: Mapping[str, str],
        whom: _Whom,
        timeout_s: float,
        events: EventBox,
    ) -> Caller: ...
    def call(
        self,
        method: str,
        body: bytes,
        timeout_s: float,
        *,
        key: bytes | None = None,
        idempotency_key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | str | None]] | None = None,
        replies: int = 1,
        window: int | None = None,
        may_wait: bool = True,
    ) -> Call | None: ...
    def ask(
        self,
        method: str,
        body: bytes,
        timeout_s: float,
        key: bytes | None = None,
        idempotency_key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | str | None]] | None = None,
    ) -> tuple[str, bytes | str | None, str | None]:
        """`call`, `wait` and `result` in one; without time it fails at once. Blocks with the GIL released."""
    def cast(
        self,
        method: str,
        body: bytes,
        timeout_s: float,
        *,
        key: bytes | None = None,
        idempotency_key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | str | None]] | None = None,
    ) -> DeliveryHandle: ...
    def replies_at(self) -> tuple[str, int]: ...
    def open_calls(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def close(self, timeout_s: float) -> None: ...

@final
class Call:
    def wait(self, timeout_s: float | None = None) -> bool: ...
    def result(self) -> tuple[str, bytes | str | None, str | None] | None:
        """`reply`, `item` or `error`, and a body; or `end`; or `failed`, a code, words; None for nothing yet."""
    def done(self) -> bool: ...
    def has_ended(self) -> bool: ...
    def cancel(self) -> bool: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...
    @property
    def id(self) -> bytes: ...
    @property
    def woken_at_ns(self) -> int: ...

@final
class Lifeline:
    def __new__(cls, socket: int, tripwire: int, interval_s: float, drain_s: float, exit_code: int) -> Lifeline:
        """Start the thread. `tripwire`, the writing end of a pipe, is given away: the descriptor is the lifeline's from here.

        The socket stays its owner's, who keeps it open until `close` has returned. Raises SystemFailure.
        """
    def watch(self, schedulers: Sequence[Scheduler], member: GroupMember) -> None: ...
    def pulse(self, assigned: int, lag: int) -> bool: ...
    def close(self) -> None: ...

@final
class GroupMember:
    def __new__(
        cls,
        properties: Mapping[str, str],
        routes: Sequence[Route],
        settings: EngineSettings,
        transactor: Transactor | None,
        events: EventBox,
    ) -> GroupMember: ...
    def commit(self) -> PendingCommit: ...
    def close(self, timeout_s: float | None = None) -> bool:
        """Give everything back in order and leave the group. Blocks with the GIL released.

        Returns False when a call of librdkafka's did not return 10 s after the deadline; its thread is left to itself then.
        """
    def hurry(self) -> None: ...
    def resume(self, topic: str, partition: int) -> bool:
        """Let a stuck partition go on from its first message; False when it is not stuck. Does not block.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
    def fetch_queue_bytes(self) -> int | None:
        """Return the most bytes that are fetched ahead of each partition; None where librdkafka's own settings say it."""
    def stuck(self) -> list[tuple[str, int, str, bool]]:
        """Return partitions, and topics (partition -1), whose messages do not come any more, with why.

        The last says whether `resume` reads the partition from its first message; others go on when the cause has gone.
        """
    def partitions(
        self,
    ) -> list[tuple[str, int, int | None, int | None, int | None, int | None, tuple[int, int, int, float] | None]]: ...
    def fatal_error(self) -> tuple[int, str, str] | None: ...

@final
class PendingCommit:
    def wait(self, timeout_s: float | None = None) -> None: ...
    def done(self) -> bool: ...
    def result(self) -> None: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...
    def __await__(self) -> Generator[Any]: ...

@final
class Sequencer(Generic[_Entry]):
    """Entries with the indexes 0, 1, 2, … that come from any thread in any order and are given to a function in order.

    Whoever brings the missing entry calls `sink` for everybody, with a list of all that are contiguous (up to 512 at a
    time); nobody is woken for it. One thread at a time is in `sink`, and no lock is held. It may bring entries itself, but
    must not wait for one, nor for room. What it raises is raised to whoever called it, and breaks the sequencer.

    There is room for `capacity` entries (rounded up to a power of two) from the first missing one on. Any thread may call
    anything. See `docs/ordered.md`.
    """

    def __new__(cls, sink: Callable[[list[_Entry]], object], capacity: int = 65_536) -> Sequencer[_Entry]: ...
    def append(self, index: int, entry: _Entry, timeout_s: float | None = None) -> None:
        """Bring an entry and wait until it has been appended. Blocks.

        Raises:
            OperationTimeout: not in time; the entry is taken back and its index passed over, unless it was being appended
                at that moment. ValueError: the index has been there before. ClosedError, SequencerBroken.
        """

    def deposit(self, index: int, entry: _Entry, timeout_s: float | None = None) -> SequencerTicket:
        """Bring an entry and go on. Blocks only while there is no room for its index.

        Raises:
            OperationTimeout: no room in time; ValueError, ClosedError, SequencerBroken: as `append`.
        """

    def void(self, index: int, timeout_s: float | None = None) -> None:
        """Say that an entry will never come: its index is passed over. Blocks and raises as `deposit`."""

    def claim(self, timeout_s: float | None = None) -> SequencerPermit[_Entry]:
        """The next index that nobody has claimed. Blocks while there is no room.

        Raises:
            OperationTimeout: no room in time; ClosedError, SequencerBroken.
        """

    def wait_for(self, count: int, timeout_s: float | None = None) -> None:
        """Wait until so many entries have been appended or passed over. Blocks.

        Raises:
            OperationTimeout: not in time; names the entry that is missing. ClosedError, SequencerBroken.
        """

    @property
    def appended(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def missing(self) -> tuple[int, float] | None: ...
    def close(self) -> None:
        """End every wait, now and later, with `ClosedError`. Does not block."""

@final
class SequencerPermit(Generic[_Entry]):
    """An index that belongs to its holder alone; at the end of a `with`, or dropped without an entry, it is passed over."""

    @property
    def index(self) -> int: ...
    def append(self, entry: _Entry, timeout_s: float | None = None) -> None: ...
    def deposit(self, entry: _Entry) -> SequencerTicket: ...
    def void(self) -> None: ...
    def __enter__(self) -> SequencerPermit[_Entry]: ...
    def __exit__(self, *why: object) -> None: ...

@final
class SequencerTicket:
    """An entry that was brought: `wait`, or `await` it, until it has been appended."""

    @property
    def index(self) -> int: ...
    def done(self) -> bool: ...
    def wait(self, timeout_s: float | None = None) -> None: ...
    def result(self) -> None: ...
    def cancel(self) -> bool: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...
    def __await__(self) -> Generator[Any]: ...

@final
class Admin:
    def __new__(cls, properties: Mapping[str, str], events: EventBox) -> Admin: ...
    def metadata(
        self, topic: str | None, timeout_s: float
    ) -> tuple[list[tuple[int, str]], list[tuple[str, int, list[tuple[int, int, list[int], list[int]]]]]]: ...
    def create_topics(
        self, topics: Sequence[tuple[str, int, int, Sequence[tuple[str, str]]]], timeout_s: float
    ) -> PendingCall: ...
    def delete_topics(self, topics: Sequence[str], timeout_s: float) -> PendingCall: ...
    def group_offsets(self, group: str, timeout_s: float) -> PendingCall: ...
    def list_offsets(self, partitions: Sequence[tuple[str, int]], at: int, timeout_s: float) -> PendingCall: ...
    def delete_records(self, before: Sequence[tuple[str, int, int]], timeout_s: float) -> PendingCall: ...
    def close(self) -> None: ...

@final
class PendingCall:
    def wait(self, timeout_s: float) -> Any: ...
    def done(self) -> bool: ...
    def result(self) -> Any: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...
    def __await__(self) -> Generator[Any, None, Any]: ...

@final
class Reader:
    def __new__(
        cls, properties: Mapping[str, str], starts: Sequence[tuple[str, int, str, int]], events: EventBox
    ) -> Reader: ...
    def next(self, timeout_s: float | None = None) -> Batch[bytes | None] | tuple[str, int] | None: ...
    def fileno(self) -> int: ...
    def quiet(self) -> None: ...
    def close(self) -> None: ...

@final
class MockCluster:
    def __new__(cls, brokers: int, events: EventBox) -> MockCluster: ...
    @property
    def bootstrap_servers(self) -> str: ...
    def create_topic(self, topic: str, partitions: int, replicas: int) -> None: ...
    def set_broker_up(self, broker: int, is_up: bool) -> None: ...
    def set_round_trip(self, broker: int, round_trip_ms: int) -> None: ...
    def fail_requests(self, api_key: int, codes: list[int]) -> None: ...
    def close(self) -> None: ...
