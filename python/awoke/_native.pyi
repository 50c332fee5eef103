"""awoke's engine, as Python sees it. Internal but for Batch, DeliveryHandle, Message and what Producer inherits."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar, final

from typing_extensions import TypeVar as TypeVarWithDefault
from typing_extensions import disjoint_base

from awoke.payloads.message import Outgoing, Record
from awoke.rpc.call_options import Request
from awoke.settings import EngineSettings
from awoke.waiting.handles import Delivery

_Value = TypeVar("_Value", covariant=True)
_Key = TypeVarWithDefault("_Key", covariant=True, default=bytes | None)
_Entry = TypeVar("_Entry")

def librdkafka_version() -> str:
    """Returns the version of librdkafka that is built in."""

def library_versions() -> list[tuple[str, str]]:
    """Returns the C libraries that are linked, with their versions, librdkafka first. Each of them is asked."""

def build_facts() -> list[tuple[str, str | None]]:
    """Returns how the module was built: its profile, target, commit and time (seconds since 1970), None for unknown.

    Commit and time come from the environment of the build alone, so that the same sources give the same module.
    """

def set_fetched_batch_max(bytes: int) -> None:
    """Bounds the memory of one fetched batch, in bytes, for all consumers of the process from now on.

    Does not block.
    """

def is_secret(property: str) -> bool:
    """Tells whether the value of this librdkafka property must never be shown."""

def permanent_codes() -> frozenset[int]:
    """Returns the codes with which a record is refused now and later."""

def denied_codes() -> frozenset[int]:
    """Returns the codes for what the brokers do not allow."""

def flush_now(handles: Sequence[DeliveryHandle]) -> None:
    """Sends these messages together, without lingering. Does not block."""

def wait_all(handles: Sequence[DeliveryHandle], timeout_s: float | None = None) -> bool:
    """Waits until all handles are answered, delivered or not; returns whether they are.

    Blocks with the GIL released.
    """

def make_batch(
    at: tuple[str, int],
    messages: Sequence[tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int | None]],
    decoders: Decoders | None = None,
    attempt: int = 1,
) -> Batch[Any, Any]:
    """Makes a batch of messages, each given as offset, value, key, headers and timestamp in milliseconds.

    Copies the bytes. Does not block.
    """

def deliver(topic: str, at: tuple[int, int], timestamp_ms: int) -> DeliveryHandle:
    """Returns the handle of a message that is delivered already, by no producer: for tests of user code.

    Does not block.
    """

@final
class AvroWalk:
    """Walks over Avro values of one schema, and refuses those that would kill their decoder. Any thread."""

    def __new__(cls, types: Sequence[tuple[str, Sequence[int]]]) -> Self: ...
    def check(self, data: bytes) -> None:
        """Checks a value. Does not block.

        Raises:
            ValueError: it is nested too deep, has too many values or digits, or is not of the schema.
        """

@final
class LinearPattern:
    """A regular expression without looking around and without references back. Any thread."""

    def __new__(cls, pattern: str) -> Self: ...
    def search(self, text: str) -> bool:
        """Returns whether the pattern is found anywhere in a text. Takes time; the GIL is released."""

@final
class Decoders:
    """The functions that decode the messages of a route; None leaves the bytes."""

    def __new__(
        cls,
        value: Callable[..., Any] | None = None,
        key: Callable[..., Any] | None = None,
        *,
        with_headers: bool = False,
        with_key: bool = False,
    ) -> Decoders: ...

@final
class Message(Generic[_Value, _Key]):
    """One message: a view into its batch, which it keeps alive. Keep values rather than messages for long."""

    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def partition(self) -> int:
        """The partition."""
    @property
    def offset(self) -> int:
        """The offset."""
    @property
    def key(self) -> _Key:
        """Its key: decoded, if the route has a type for keys; else bytes. None for a message without a key.

        Raises:
            DecodeError: the bytes can't be read as the type of the keys, or there is no key and the type takes no None.
        """
    @property
    def raw_key(self) -> bytes | None:
        """The key as bytes, or None."""
    @property
    def value(self) -> _Value:
        """Its value: decoded once, if the route has a type; else bytes.

        A tombstone is None if the type takes it: `value=Order | None` and `Message[Order | None]`. Without a type it is
        None, too: a route whose topic has tombstones takes `Message[bytes | None]`.

        Raises:
            DecodeError: the bytes can't be read as the route's type, or it is a tombstone and the type takes no None.
        """
    @property
    def raw_value(self) -> bytes | None:
        """The value as bytes; None for a tombstone."""
    @property
    def value_buffer(self) -> memoryview | None:
        """The value as a read-only memoryview of the fetched bytes, not copied; None for a tombstone."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in order as pairs of name and bytes (or None); a name may occur more than once."""
    @property
    def timestamp_ms(self) -> int | None:
        """Milliseconds since 1970, or None."""
    @property
    def attempt(self) -> int:
        """The number of the attempt at this message, from 1."""

@final
class Batch(Generic[_Value, _Key]):
    """Messages of one topic-partition in offset order; at least one.

    A weak reference tells the runtime that user code keeps a batch beyond its job.
    """

    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def partition(self) -> int:
        """The partition."""
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
        """The number of the attempt at the first message, from 1."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Message[_Value, _Key]: ...
    def __iter__(self) -> Iterator[Message[_Value, _Key]]: ...
    @property
    def size_bytes(self) -> int:
        """Keys and values of all messages together."""
    def pick(self, places: Sequence[int]) -> Batch[_Value, _Key]:
        """Returns the messages at these places, counted from 0, in this order. Copies no bytes.

        Raises:
            IndexError: a place that the batch does not have.
        """
    def values(self) -> list[_Value]:
        """Returns all values in offset order: decoded, where the route has a type.

        Raises:
            DecodeError: names the first message that does not decode.
        """
    def raw_values(self) -> list[bytes | None]:
        """Returns all values in offset order as bytes; None for tombstones."""
    def keys(self) -> list[_Key]:
        """Returns all keys in offset order: decoded, where the route has a type for keys.

        None for messages without one.

        Raises:
            DecodeError: names the first message whose key does not decode.
        """
    def offsets(self) -> list[int]:
        """Returns all offsets in order."""
    def detach(self) -> None:
        """Copies the messages out of librdkafka's memory and frees it. Does not block.

        awoke does so when the job of a kept batch has ended.
        """

@final
class BatchIterator:
    """Iterates over a batch."""

    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Message[Any]: ...

@final
class ValueBuffer:
    """Lends the bytes of a message's value; keeps librdkafka's memory for as long as a buffer of it is in use."""

@final
class DeliveryHandle:
    """A message that was sent and awaits the broker's answer. Dropping it costs nothing."""

    def wait(self, timeout_s: float | None = None) -> Delivery:
        """Waits until the broker has answered for this message.

        Blocks the calling thread with the GIL released. None waits for `delivery.timeout.ms`. Any thread may wait.

        Raises:
            DeliveryTimeout: no answer within `timeout_s`; the message may still be delivered.
            DeliveryFailed: the broker or librdkafka refused it; see `code_name` and `is_retriable`.
        """
    def result(self) -> Delivery:
        """Returns the answer, which must be there. Does not block.

        Raises:
            DeliveryTimeout: there is no answer yet; DeliveryFailed: it was refused.
        """
    def exception(self) -> BaseException | None:
        """Returns the error that `result` would raise, or None. Does not block."""
    def done(self) -> bool:
        """Tells whether the answer is there. Does not block."""
    def add_done_callback(self, callback: Callable[[DeliveryHandle], object]) -> None:
        """Calls `callback(handle)` when the answer is there, on a thread of awoke's; its errors are logged."""
    def __await__(self) -> Generator[Any, None, Delivery]: ...
    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def woken_at_ns(self) -> int:
        """When the answer came, in nanoseconds of `time.monotonic_ns()`; 0 if no thread or task waited for it."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Has `token` posted to the mailbox when the answer comes. Returns False when it is there already."""

@final
class Results:
    """The results of one job, each sent when it is added; their answers are waited for as one.

    A result costs no Python object: its key and its delivery handle are made into some only where it was refused.
    """

    def __new__(cls) -> Self: ...
    def send(self, producer: Producer, topic: str, message: Message[Any], value: Any) -> None:
        """Sends a value under the key of its message; arguments, waits and errors are those of `Producer.produce`."""
    def keep(self, offset: int, handle: DeliveryHandle, record: Record) -> None:
        """Adds a record that was sent."""
    def __len__(self) -> int: ...
    def wait(self) -> bool:
        """Waits until all are answered; returns whether all are delivered. Blocks with the GIL released."""
    def take(self) -> list[tuple[int, DeliveryHandle, Record]]:
        """Takes all out, in order: the message's offset, the handle, and the parts of a `Record`."""
    def done(self) -> bool:
        """Tells whether all are answered. Does not block. Nothing may be added after this, nor after the next two."""
    def result(self) -> bool:
        """Returns whether all are delivered. Does not block."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Posts `token` to the mailbox when all are answered; returns False if they are now."""

@final
class OrderedQueue:
    """The results of one reading of a partition: they are sent in the order of its messages.

    The thread that brings the missing result also sends those behind it. Any thread.
    """

    def __new__(cls, producer: Producer | None, topic: str) -> Self:
        """`producer` sends values to the topic; without it, Python sends all."""
    def skip(self, ordinal: int | None) -> None:
        """Skips the place of an ordinal, if its turn is not over; `None`: it has no place.

        Blocks while the producer's queue is full, if results behind it are sent.
        """
    def close(self) -> None:
        """Drops the results that wait, and all that come. Does not block."""

@final
class OrderedResults:
    """The results of one job, each sent when its turn comes; the worker of the job adds them in the order of the job.

    A message that is passed without a result gives its turn to the next. `outgoing` is told of what is sent after
    `seal`: `sending()` before, `sent(results, failed)` after it; `send(offset, records)` sends what Python sends.
    """

    def __new__(cls, queue: OrderedQueue, offsets: Sequence[int], ordinals: Sequence[int | None]) -> Self:
        """`offsets` and `ordinals` of the messages of the job that are not done."""
    def send(self, outgoing: Any, message: Message[Any], value: Any) -> None:
        """Adds a value, which is sent under the key of its message.

        Blocks while the producer's queue is full, if it is its turn; raises as `Producer.produce`, and then its turn
        has not ended.
        """
    def add(self, outgoing: Any, offset: int, records: Any) -> None:
        """Adds the records of the message with this offset, which `outgoing` sends. Blocks as `send`."""
    def skip(self, offset: int) -> None:
        """Skips the message with this offset, which has no result. Blocks as `send`."""
    def skip_before(self, place: int) -> None:
        """Skips the messages without a result before this place; nothing may be added after it. Blocks as `send`."""
    def seal(self) -> tuple[Results, list[tuple[int, BaseException]], bool]:
        """Ends the adding. Does not block.

        Returns what was sent, the offsets that could not be sent with the reasons, and whether more is sent at this
        moment: `outgoing.sent` is called then.
        """
    def place_of(self, offset: int) -> int:
        """Returns the place of the message with this offset, in the order of the job; 0 where it is not one of the
        job."""
    @property
    def others_s(self) -> float:
        """Seconds in which the worker sent results of other jobs."""
    @property
    def are_waiting(self) -> bool:
        """True if results wait for their turn."""
    def first_open(self, refused: Sequence[int]) -> int | None:
        """Returns the offset of the first message in the order of the job whose result waits, or was refused.

        None for none. Does not block.
        """

@disjoint_base
class Producer:
    """Takes messages in and returns a delivery handle for each."""

    def __new__(
        cls,
        properties: Mapping[str, str],
        encoder: Callable[[Any], bytes],
        produce_timeout_s: float | None,
        idle_after_s: float | None,
        events: EventBox,
        for_calls: bool = False,
        middleware: Callable[..., Outgoing] | None = None,
        typed: Callable[..., Outgoing] | None = None,
    ) -> Self: ...
    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float | None = None,
        variant: Variant | None = None,
    ) -> DeliveryHandle:
        """Sends a message; the handle has the broker's answer.

        The value is bytes, text, None (a tombstone) or anything that msgspec writes as JSON. Blocks only if the queue
        is full: it then waits for room up to `timeout_s` (None: the setting `produce_timeout_s`; 0: not at all), with
        the GIL released. Any thread.

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
        """Sends messages in order; returns one handle for each.

        A message is a `Record`, a pair of value and key, or a value alone. Of a list or a tuple, many are sent at once,
        unless there is middleware; of any other iterable, each is sent when it comes. Blocks while the queue is full,
        up to `timeout_s` for each message. On an error, the messages before it have been sent.

        Raises:
            QueueFull, MessageTooLarge, EncodeError, KafkaError, ClosedError, ForkedClientError: as `produce`.
        """
    def begin(self, timeout_s: float | None = None) -> Transaction:
        """Begins a transaction when those before it have ended. Blocks with the GIL released."""
    def flush(self, timeout_s: float | None = None) -> bool:
        """Sends queued messages without lingering and waits for the answers; returns whether all came. Blocks."""
    def close(self, timeout_s: float | None = None) -> int:
        """Flushes and ends; returns how many messages were not answered. Blocks."""
    def queued(self) -> tuple[int, int]:
        """Returns messages and bytes that wait for their delivery report; 0 when closed. Does not block."""

@final
class Variant:
    """Settings of topics that differ from the producer's."""

    def __new__(cls, properties: Mapping[str, str]) -> Variant: ...

@final
class Transaction:
    """An open transaction. Dropped without an end, it is aborted."""

    def produce(self, topic: str, record: Record, timeout_s: float | None = None) -> DeliveryHandle:
        """Sends a record in the transaction; waits and errors are those of `Producer.produce`.

        Raises:
            KafkaError: only an abort is possible then; ProducerFenced; else as `Producer.produce`.
        """
    def commit(self, timeout_s: float | None = None) -> None:
        """Commits. Blocks with the GIL released."""
    def abort(self, timeout_s: float | None = None) -> None:
        """Aborts. Blocks with the GIL released."""

@final
class TransactionBatcher:
    """Commits the records that jobs produce together with the jobs' offsets."""

    def __new__(
        cls,
        properties: Mapping[str, str],
        is_alone: bool,
        settings: EngineSettings,
        encoder: Callable[[Any], bytes],
        events: EventBox,
    ) -> TransactionBatcher: ...
    def entry(self) -> TransactionEntry:
        """Makes an empty entry."""
    def submit(self, entry: TransactionEntry, job: Job, offset: int | None) -> PendingStep:
        """Commits the records of an entry, and that its job is done up to this offset (None: to its end).

        Does not block; the returned object has the answer.
        """
    def commit(self, partition: Partition) -> PendingStep:
        """Commits the stored offset of a hook's partition, with its metadata text. Does not block."""
    def close(self) -> None:
        """Ends the batcher; entries that are not committed fail. Blocks with the GIL released."""

@final
class TransactionEntry:
    """The records that one job sends. None is sent before the entry is submitted."""

    def add(self, topic: str, record: Record) -> None:
        """Adds a record: an `awoke.Record`, a pair of value and key, or a value alone. Does not block."""
    def add_result(self, topic: str, message: Message[Any], value: Any) -> None:
        """Adds a value under the key of its message. Does not block."""
    def rows_of(self, table: Table, job: Job) -> JobRows | None:
        """Returns the rows of a table as the job sees them, of the job's partition; None where its route does not name
        the table. What is written there is committed with the entry. Does not block.

        Raises:
            ClosedError: the job has ended.
        """

@final
class Table:
    """A table: the committed rows of the partitions that this process has."""

    def __new__(cls, name: str, changelog: str, is_followed: bool = False, ttl_s: float | None = None) -> Table: ...
    def partitions(self) -> list[tuple[int, int, int, int, bool]]:
        """Returns for each partition that this process has its number, its rows, the bytes of their keys and values,
        the memory that they take, and whether they are restored, in the order of the numbers. Does not block."""
    def committed(self, partition: int, key: bytes) -> bytes | None:
        """Returns the committed value of a key; None where there is none. Does not block.

        Raises:
            ClosedError: this process does not have the partition.
        """
    def committed_items(self, partition: int) -> list[tuple[bytes, bytes]]:
        """Returns the committed rows of a partition, in no order. Does not block."""

@final
class JobRows:
    """The rows of one partition of a table as one job sees them: the committed ones, and above them what the job
    wrote."""

    @property
    def is_of_lane(self) -> bool:
        """True if other jobs of the partition may run at the same time."""
    @property
    def is_written(self) -> bool:
        """True if the job has written any row."""
    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key; None where there is no row. Does not block."""
    def set(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Writes a row for the message of this offset; a value of None deletes it. Does not block.

        Raises:
            ClosedError: the job has ended.
        """
    def sees(self, offset: int, key: bytes | None, id: bytes) -> bool:
        """Notes an id for the message of this offset, under the key of the message. Returns whether it was noted
        before. Does not block.

        Raises:
            ClosedError: the job has ended.
        """
    def forget(self, offset: int) -> None:
        """Forgets what the message of this offset has written: it has failed. Does not block."""
    def items(self) -> list[tuple[bytes, bytes]]:
        """Returns all rows of the partition, in no order. Does not block."""

@final
class EventBox:
    """The box that the engine's clients put their events in. It is bounded: the oldest events are dropped first."""

    def __new__(cls) -> EventBox: ...
    def fileno(self) -> int:
        """The descriptor that becomes readable when there are events."""
    def drain(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Takes all events, oldest first: (client, name, fields). Does not block."""
    def dropped(self) -> int:
        """Returns the number of events that were dropped because they were not taken in time."""

@final
class Mailbox:
    """Tokens of completions that have their result, for one event loop or one thread."""

    def __new__(cls, *, of_loop: bool = False) -> Mailbox: ...
    def fileno(self) -> int:
        """The descriptor that becomes readable when there are tokens."""
    def drain(self) -> list[int]:
        """Takes all tokens. An event loop serves the queues first that its tasks wait for. Does not block."""
    def post(self, token: int) -> None:
        """Posts a token. Does not block; any thread."""

@final
class Notifier:
    """Makes a descriptor readable when an event loop should ask for work."""

    def __new__(cls) -> Notifier: ...
    def fileno(self) -> int:
        """The descriptor that becomes readable when it is notified."""
    def clear(self) -> None:
        """Makes the descriptor unreadable until the next `notify`. Does not block."""
    def notify(self) -> None:
        """Makes the descriptor readable. Does not block; any thread."""

def clock_ns() -> int:
    """Returns the clock's time in nanoseconds: `time.monotonic_ns()`, unless a test moved it. Does not block."""

def wall_ns() -> int:
    """Returns the time since 1970 in nanoseconds, which moves with the clock while a test has it. Does not block."""

def clock_is_virtual() -> bool:
    """Returns whether a test has the clock. Does not block."""

@final
class TakenClock:
    """The clock in the hands of a test: it stands still until it is moved."""

    def __new__(cls) -> TakenClock:
        """Takes the clock. Raises `RuntimeError` if it is taken."""
    def release(self) -> None:
        """Gives the clock back: it goes on from where it stands, at the pace of real time."""
    def move_by(self, nanoseconds: int) -> None:
        """Moves the clock, and has everything act that is due then. Does not wait for it."""
    def due_in(self) -> tuple[int | None, int | None]:
        """Returns in how many nanoseconds something is due that happens once, and something that happens again and
        again."""
    def running(self) -> int:
        """Returns the number of jobs that run, or are about to, and do not wait for the clock. Does not block."""
    def settle(self, within_s: float, going_on: int) -> list[str]:
        """Waits in real time until nothing runs that does not wait for the clock, but for this number of jobs.

        Returns what still does when the time is up. Blocks with the GIL released.
        """

@final
class Signal:
    """A signal that can be set and cleared, as `threading.Event`; waits for it are timed by the clock."""

    def __new__(cls) -> Signal: ...
    def set(self) -> None:
        """Sets the signal, and ends all waits. Does not block; any thread."""
    def clear(self) -> None:
        """Clears the signal. Does not block; any thread."""
    def is_set(self) -> bool:
        """Returns whether the signal is set. Does not block."""
    def wait(self, timeout_s: float | None = None, *, recurs: bool = False, is_tracked: bool = False) -> bool:
        """Waits until the signal is set, at most `timeout_s`; returns whether it is set. Blocks with the GIL released.

        `recurs`: the thread waits so again and again. `is_tracked`: it calls `leave` when it will not wait again.
        """
    def begin_wait(
        self, timeout_s: float | None = None, *, recurs: bool = False, is_of_job: bool = False
    ) -> SignalWait:
        """Begins a wait, as `wait`, for an event loop. `is_of_job`: a job waits. Does not block."""
    def leave(self) -> None:
        """Notes that the calling thread waits no more. Does not block."""

@final
class SignalWait:
    """One wait of an event loop for a signal."""

    def done(self) -> bool:
        """Returns whether it is over: the signal is set, or its moment has come. Does not block."""
    def end(self) -> None:
        """Ends the wait: what keeps it any longer, an exception for example, waits no more. Does not block."""
    def result(self) -> bool:
        """Returns whether the signal is set. Does not block."""
    def remaining_s(self) -> float | None:
        """Returns the real time until its moment, in seconds; None where only `notify` tells of it. Does not block."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Posts `token` to the mailbox when it may be over, again and again; returns `False` if it is."""

@final
class Scheduler:
    """Decides which partition is worked on next."""

    def __new__(cls) -> Scheduler: ...
    def next(self) -> Job | HookJob | LaneAssignment | None:
        """Returns the next work; None when the scheduler has closed. Blocks with the GIL released."""
    def next_or_notify(self, notifier: Notifier) -> tuple[Job | HookJob | LaneAssignment | None, float | None, bool]:
        """Returns the next work, the seconds until the caller has to ask again, and whether the scheduler has closed.

        Without work, the notifier is notified as soon as there is some. Does not block.
        """
    def quiet(self) -> None:
        """Starts no messages from now on; hooks still run. Does not block."""
    def close(self) -> None:
        """Ends every worker's wait, now and later. Does not block."""
    def dismiss(self, workers: int) -> None:
        """Ends this number of workers, busy ones when they come for more. Does not block."""
    def at_rest(self, jobs_least: int) -> PendingStep:
        """Returns a handle for the first moment at which this number of jobs has begun, and no job runs or is ready to.

        Partitions that wait for a moment, for messages or for a resume rest. It fails when the scheduler closes. Does
        not block.
        """
    def counters(self) -> dict[str, int]:
        """Returns counts: `jobs`, `job_wakes`, `clock_wakes`, and of now: `ready`, `busy`, `idle`. Does not block."""

@final
class Job:
    """A batch lent to a worker. It ends with `complete` or `retry`; dropped without either, it is tried again."""

    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def partition(self) -> int:
        """The partition."""
    @property
    def generation(self) -> int:
        """The number of the assignment of the partition, among all of the process."""
    @property
    def route_number(self) -> int:
        """The number of its route."""
    @property
    def attempt(self) -> int:
        """The number of the attempt at the first message that is not done, from 1."""
    @property
    def first_offset(self) -> int:
        """The offset of the first message that is not done, of the last one where all are.

        Raises ClosedError when the job has ended.
        """
    @property
    def remaining(self) -> int:
        """The number of messages that are not done."""
    @property
    def waited_s(self) -> float:
        """Seconds that the partition was ready before a worker came."""
    @property
    def is_fenced(self) -> bool:
        """True if the partition was revoked meanwhile."""
    def assignment(self) -> Partition:
        """Returns the partition. Raises ClosedError when the job has ended."""
    def truncate(self, messages: int) -> None:
        """Leaves all but this number of the messages that are not done to a later job. Does not block."""
    def release(self) -> None:
        """Gives the partition back without storing an offset. Does not block."""
    def done_before(self, offset: int) -> None:
        """Records that all messages before the one with this offset are done, and stores the offset after them.

        Does not block.

        Raises `FencedError` when the partition was revoked meanwhile.
        """
    def release_rest(self) -> None:
        """Gives the partition back; the messages that are not done come again, with attempt 1. Does not block."""
    def batch(self, decoders: Decoders | None = None) -> Batch[Any, Any]:
        """Returns the messages that are not done, decoded by these functions.

        Raises ClosedError when the job has ended.
        """
    def each(self, batch: Batch[Any], is_done_when_passed: bool = False) -> Iterator[Message[Any]]:
        """Gives the messages of this batch, which is the job's or picked from it, one by one.

        With `is_done_when_passed` a message is done when the next one is asked for: see `store_passed`.

        Before each message but the first it checks whether the job is to end: its partition is to be given back, paused
        or sought in, the process stops, or its turn is over. It then leaves the rest to a later job. Does not block.

        Raises:
            ClosedError: the job has ended.
        """
    def store_passed(self) -> None:
        """Stores the offset behind the messages that `each` has passed, if they are done then. Does not block.

        Any thread, while another one runs the job.

        Raises:
            FencedError: the partition was revoked meanwhile.
        """
    @property
    def rest_offset(self) -> int | None:
        """The offset of the first message that was left to a later job; None when none was, or the job has ended."""
    @property
    def left(self) -> int:
        """The number of messages of the job that `each` has left to a later one."""
    def done(self, offset: int) -> None:
        """Records that all messages up to this offset are done, and stores the offset after them. Does not block.

        Raises FencedError when the partition was revoked meanwhile.
        """
    def complete(self) -> None:
        """Records that all messages are done, and gives the partition back. Does not block.

        Raises FencedError when the partition was revoked meanwhile.
        """
    def retry(self, delay_s: float, is_counted: bool = True) -> None:
        """Keeps the messages that are not done and gives the partition back; they come again after `delay_s`.

        Does not block. The try counts as an attempt at the first message, unless `is_counted` is false: it failed
        for another reason.
        """
    @property
    def is_of_lanes(self) -> bool:
        """True if it is one of several jobs of its partition."""
    @property
    def has_several_lanes(self) -> bool:
        """True if it has several lanes, whose messages user code gets one by one."""
    @property
    def epoch(self) -> int:
        """The number of the reading of the partition: a seek begins another one."""
    def ordinals(self) -> list[int | None]:
        """Returns the ordinals of the messages that are not done, in order of admission. Does not block.

        None for a message of before a seek.
        """
    def leave_slot(self, keeps_assigned: bool, others_s: float = 0.0) -> None:
        """Gives the job slot to other jobs, and keeps the lanes; with `keeps_assigned` the partition, too, until the
        job has ended. For `others_s` of its time the worker did something for other jobs. Does not block."""
    def split_off(self, offset: int) -> Job | None:
        """Splits the messages up to this offset that are not done off into a job of their own, which has no job slot.

        None where one job at a time runs, or the job has ended. Does not block.
        """
    def split_lanes_behind(self, offset: int) -> Job | None:
        """Splits the lanes behind that of this message off into a job that ends by itself; None if there are none, or
        the job has its slot or has ended. Does not block."""
    def keep_assigned(self) -> bool:
        """Keeps the partition assigned until the job has ended. Returns False when it was revoked before.

        Does not block.
        """
    def allow_revoke(self) -> None:
        """Ends a `keep_assigned`. Does not block."""

@final
class Admission:
    """Hands out the calls of a service that are to be executed, or answered without being executed. Any thread.

    `options` is an `awoke.rpc.responder.methods.Options`, each method an `awoke.rpc.responder.methods.Method`.
    `on_cancelled` gets the callbacks of a call that was cancelled, on the thread that receives the cancellation.
    """

    def __new__(
        cls,
        scheduler: Scheduler,
        options: Any,
        calls_topic: str,
        methods: Sequence[Any],
        events: EventBox,
        on_cancelled: Callable[[list[Callable[[], object]]], object],
    ) -> Self: ...
    def set_reply_topics(self, partitions: Mapping[str, int]) -> None:
        """Replaces the topics that replies may go to (at first none), each with its number of partitions.

        Does not block.
        """
    def next(self) -> IncomingCall | None:
        """Returns the next call to be executed, or answered without being executed. Blocks with the GIL released.

        None once the scheduler has closed.
        """
    def next_or_notify(self, notifier: Notifier) -> tuple[IncomingCall | None, float | None, bool]:
        """Returns the next call, as `next`, the seconds until the caller has to ask again, and whether the scheduler
        has closed.

        Without work, the notifier is notified as soon as there is some. After a few records that need no call, the
        caller has to ask again at once: others have their turn in between. Does not block.
        """
    def end(self, call: IncomingCall, kind: str | None, body: bytes) -> list[IncomingCall]:
        """Records a call's final answer; returns the duplicates that were waiting for it. Does not block.

        `kind` is None if the call failed, or its answer must not be cached.
        """
    def release(self, call: IncomingCall) -> IncomingCall | None:
        """Releases the place of a call that has ended; returns the call that takes it, if one waits. Does not block."""
    def counts(self) -> tuple[int, int]:
        """Returns how many calls run, and how many wait in the queue. Does not block."""

@final
class IncomingCall:
    """The call that a method executes. Any thread.

    Its callbacks may form a reference cycle with it; `CallReplies.close` drops them.
    """

    @property
    def method(self) -> str:
        """The name of the method."""
    @property
    def id(self) -> bytes:
        """The id that its caller gave it."""
    @property
    def caller(self) -> str:
        """The caller, by its own word; see `docs/rpc.md` for signed calls."""
    @property
    def idempotency_key(self) -> bytes | None:
        """The key that all attempts at one call share; None without one."""
    @property
    def key(self) -> bytes | None:
        """The key of its record: calls with one key are executed in order."""
    @property
    def headers(self) -> Mapping[str, bytes | None]:
        """Its headers, the last of several with one name; of a signed call only those that its caller has signed."""
    @property
    def transaction_entry(self) -> Any:
        """Of an exactly-once service: messages sent through it are committed together with the reply. Else None."""
    @transaction_entry.setter
    def transaction_entry(self, entry: Any) -> None: ...
    @property
    def until_s(self) -> float:
        """When it is to end, on awoke's clock: its caller stops waiting, or its method's time is over."""
    @property
    def remaining_s(self) -> float:
        """The time that it may still take, in seconds; at least 0."""
    @property
    def is_cancelled(self) -> bool:
        """True if its caller has cancelled it, or its time is over."""
    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Waits until it is cancelled or its time is over; returns whether it is. Blocks with the GIL released."""
    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Calls a function when the caller cancels, on the thread that receives the cancellation; at once if it has.

        Does not block.
        """

    # For awoke's own responder.

    @property
    def target(self) -> Any:
        """Its `awoke.rpc.responder.methods.Method`; None if the service has no such method.

        For awoke's own responder.
        """
    @property
    def not_executed(self) -> tuple[str, str] | None:
        """Why its method is not executed; None if it is.

        "rejected" or "invalid" and a reason, or "cached" and the kind of the reply.
        """
    @property
    def cached_body(self) -> bytes | None:
        """The body of the answer, if a call with its idempotency key was executed before."""
    @property
    def reply_to(self) -> tuple[str, int] | None:
        """Topic and partition of its replies; None if it wants none."""
    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and offset of its request."""
    @property
    def times_s(self) -> tuple[float, float, float, float]:
        """In seconds: the caller's time; at the reading, the time left and in queues; the time of its method."""
    @property
    def was_cancelled(self) -> bool:
        """True if its caller has cancelled it."""
    @property
    def body(self) -> bytes:
        """The arguments as they came. Raises ClosedError if the record was released."""
    @property
    def message(self) -> Message[bytes]:
        """Its record. Raises ClosedError if it was released before it was read."""
    @property
    def credit(self) -> StreamCredit | None:
        """The credit of a stream; None for a call with one result."""
    @property
    def last(self) -> DeliveryHandle | None:
        """The last reply that was sent."""
    def mark_seen(self) -> None:
        """Keeps its record readable after its end, because user code sees the call from here on."""
    def start(self) -> None:
        """Starts the clock of its method."""
    def stop(self) -> None:
        """Stops the clock of its method."""

@final
class StreamCredit:
    """The credit of a stream.

    It has a result when there is credit, or none will come: the caller waits no longer, or the partition of the call is
    given back.
    """

    @property
    def is_named(self) -> bool:
        """True if the request named a credit."""
    @property
    def is_withdrawn(self) -> bool:
        """True if the partition of the call is given back: its next owner executes the call."""
    def try_take(self) -> bool:
        """Takes the credit of one result; returns False if there is none. Does not block."""
    def done(self) -> bool:
        """True if there is credit, or none will come. Does not block."""
    def wait(self, timeout_s: float | None = None) -> None:
        """Waits until there is credit, none will come, or the call's time is over. Blocks with the GIL released."""
    def result(self) -> None:
        """Returns None. Does not block."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Posts `token` to the mailbox when there is a result; returns False if there is one now."""

@final
class CallReplies:
    """Sends the replies of calls through one producer, and ends the calls. Any thread."""

    def __new__(cls, producer: Producer) -> Self: ...
    @staticmethod
    def begin(call: IncomingCall) -> str | None:
        """Begins a call whose turn has come. Does not block.

        Returns why it is not to be executed: "fenced", or the reason of a rejection.
        """
    def send(self, call: IncomingCall, kind: str, body: bytes, code: str | None = None) -> None:
        """Sends a reply, if it is wanted. Blocks while the producer's queue is full. Raises as `Producer.produce`."""
    @staticmethod
    def headers(
        call: IncomingCall, kind: str, body: bytes, code: str | None = None
    ) -> list[tuple[str, bytes | str | None]] | None:
        """Returns the headers that `send` would send; None if the reply is not wanted."""
    @staticmethod
    def leave_slot(call: IncomingCall) -> None:
        """Leaves the slot of the call's job to other jobs, and copies the call's record: the call goes on elsewhere.

        Does not block.
        """
    @staticmethod
    def take_job(call: IncomingCall) -> Job | None:
        """Takes the call's job, which the caller of this ends; None if it was taken before. Does not block."""
    @staticmethod
    def close(call: IncomingCall) -> None:
        """Drops the call's callbacks and releases its record. Does not block."""
    @staticmethod
    def settle(call: IncomingCall, delay_s: float) -> None:
        """Completes the call's job when its last reply is acknowledged or refused for good, or now if none was sent.

        Should the reply fail otherwise, the call is executed again after `delay_s`. Does not block.
        """
    @staticmethod
    def give_back(call: IncomingCall, delay_s: float) -> None:
        """Gives a call's job back: the partition's owner executes the call again after `delay_s`. Does not block."""

@final
class LaneAssignment:
    """Messages for which the route's function has to name the lanes."""

    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def partition(self) -> int:
        """The partition."""
    @property
    def route_number(self) -> int:
        """The number of its route."""
    def batch(self, decoders: Decoders | None = None) -> Batch[Any, Any]:
        """Returns the messages, decoded by these functions. Raises ClosedError when the assignment has ended."""
    def finish(self, numbers: Sequence[int]) -> None:
        """Gives each message to the lane of its number, in the order of `batch`. Does not block."""

@final
class HookJob:
    """A hook to run, and the partition that waits for it."""

    @property
    def topic(self) -> str:
        """The topic."""
    @property
    def partition(self) -> int:
        """The partition."""
    @property
    def generation(self) -> int:
        """The number of the assignment of the partition."""
    @property
    def route_number(self) -> int:
        """The number of its route."""
    @property
    def name(self) -> str:
        """`assigned`, `tick`, `revoked`, `lost` or `shutdown`."""
    def assignment(self) -> Partition:
        """Returns the partition. Raises ClosedError when the hook has ended."""
    def finish(self) -> None:
        """Gives the partition back. Does not block."""

@final
class Partition:
    """One assignment of a partition; when it has ended, all methods raise FencedError. Any thread."""

    @property
    def is_current(self) -> bool:
        """True if it is still assigned. Does not block."""
    def offsets(self) -> tuple[int | None, int | None]:
        """Returns the stored and the committed offset. Does not block."""
    def pause(self) -> None:
        """Pauses the partition: no job begins until `resume`. Does not block."""
    def resume(self) -> None:
        """Ends a pause. Does not block."""
    def clear_backoff(self) -> None:
        """Ends the back-off of messages that wait to be tried again. Does not block."""
    def seek(self, offset: int) -> None:
        """Goes on from this offset (-2 the first, -1 the end) after the job that runs now. Does not block."""
    def offset_at(self, timestamp_ms: int) -> int:
        """Returns the first offset at or after a time in milliseconds since 1970; -1 for the end.

        Blocks with the GIL released.
        """
    def committed(self) -> tuple[int, str | None] | None:
        """Returns what the group has committed: offset and metadata, or None. Blocks with the GIL released."""
    def annotate(self, offset: int, metadata: str | None) -> None:
        """Stores an offset and its metadata text, for the next commit. Does not block."""

class _Lanes(Protocol):
    @property
    def by(self) -> str: ...
    @property
    def jobs(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def commit_gap(self) -> int: ...
    @property
    def share(self) -> str: ...
    @property
    def careful(self) -> int: ...

@final
class Route:
    """One topic and the settings of its partitions."""

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
        request_clock_skew_s: float | None = None,
        turn_max_s: float | None = None,
        batch_time_max_s: float | None = None,
        stores_by_hand: bool = False,
        jobs_max: int | None = None,
        number: int = 0,
        partitions: Sequence[int] | None = None,
        tables: Sequence[Table] | None = None,
    ) -> Route: ...
    @property
    def expired(self) -> int:
        """The number of requests that were skipped because their deadline had passed."""

class _ServiceAddress(Protocol):
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
    """Calls methods of a service.

    Making it finds the end of the caller's partition of the reply topic, and blocks with the GIL released.
    """

    def __new__(
        cls,
        producer_properties: Mapping[str, str],
        consumer_properties: Mapping[str, str],
        address: _ServiceAddress,
        timeout_s: float,
        events: EventBox,
    ) -> Caller: ...
    def call(self, request: Request, replies: int = 1, window: int | None = None, may_wait: bool = True) -> Call | None:
        """Makes a call; returns None if there is no room and it may not wait.

        Blocks with the GIL released if it waits.
        """
    def ask(self, request: Request) -> tuple[str, bytes | str | None, str | None]:
        """Makes a call, waits for the reply, and takes it: `call`, `wait` and `result` in one.

        Blocks with the GIL released.
        """
    def cast(self, request: Request) -> DeliveryHandle:
        """Sends a request without a reply. Blocks with the GIL released while the producer's queue is full."""
    def replies_at(self) -> tuple[str, int]:
        """Topic and partition of the caller's replies."""
    def open_calls(self) -> int:
        """Returns how many calls have not ended."""
    def counters(self) -> dict[str, int]:
        """The caller's counters."""
    def close(self, timeout_s: float) -> None:
        """Ends all calls and delivers sent requests. Blocks with the GIL released.

        Closing again, or in a forked child, does nothing.
        """

@final
class Call:
    """A call of a caller."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the next part, at most until the call's deadline; returns whether it is there.

        Blocks with the GIL released.
        """
    def result(self) -> tuple[str, bytes | str | None, str | None] | None:
        """Takes the next part; None if it is not there yet. Does not block.

        A part is `reply`, `item` or `error` and a body; or `end`; or `failed`, a code and a text.
        """
    def done(self) -> bool:
        """Returns whether the next part is there. Does not block."""
    def has_ended(self) -> bool:
        """Returns whether the call has ended. Does not block."""
    def cancel(self) -> bool:
        """Cancels the call and tells its responder; returns False if it had ended before. Does not block."""
    def note_waiting_job(self, by: int) -> None:
        """Notes a job that begins to wait for it on an event loop, or has waited (-1), for a test that has the clock.

        Does not block.
        """
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Posts `token` to the mailbox when the next part is there; returns False if it is there now."""
    @property
    def id(self) -> bytes:
        """The call's id, as in its header."""
    @property
    def woken_at_ns(self) -> int:
        """When the waiting thread or task was woken, in nanoseconds of `time.monotonic_ns()`; 0: none was."""

@final
class Lifeline:
    """Sends signs of life and notices the supervisor's end, on a thread that needs no GIL.

    It owns the descriptor `tripwire`, the writing end of a pipe, from here on: the caller must not use its number
    again. The socket stays the caller's, who keeps it open until `close` has returned. Making it raises SystemFailure.
    """

    def __new__(cls, socket: int, tripwire: int, interval_s: float, drain_s: float, exit_code: int) -> Lifeline: ...
    def watch(self, schedulers: Sequence[Scheduler], members: Sequence[GroupMember]) -> None:
        """Begins to report the jobs of these schedulers and the state of these members. Does not block."""
    def pulse(self, assigned: int, lag: int) -> bool:
        """Answers with Python's state, and waits for the next request. Returns False at the end.

        Blocks with the GIL released.
        """
    def close(self) -> None:
        """Ends the thread. Blocks with the GIL released."""

@final
class GroupMember:
    """A member of a consumer group. Making it joins the group, and blocks with the GIL released."""

    def __new__(
        cls,
        properties: Mapping[str, str],
        routes: Sequence[Route],
        settings: EngineSettings,
        batcher: TransactionBatcher | None,
        events: EventBox,
    ) -> GroupMember: ...
    def read(self, route: Route) -> None:
        """Subscribes to the topic of one more route. Does not block; what the client refuses is an event.

        Raises:
            ClosedError: the member is closed.
        """
    def commit(self) -> PendingStep:
        """Commits the stored offsets. Does not block; the returned object has the answer."""
    def close(self, timeout_s: float | None = None) -> bool:
        """Gives all partitions back in order and leaves the group. Blocks with the GIL released.

        Returns False if a call of librdkafka's has not returned 10 s after the deadline: its thread then ends by
        itself.
        """
    def stop_waiting(self) -> None:
        """Ends the wait of a close for running jobs. Does not block."""
    def resume(self, topic: str, partition: int) -> bool:
        """Continues a stuck partition, from its first message or after the batch that cannot be read. Does not block.

        Returns False if it is not stuck.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
    def pulled(self) -> list[tuple[str, int, int | None, bool]]:
        """Returns the partitions that are assigned now: (topic, partition, next to pull or None, are messages kept
        back).

        Messages are kept back for a moment, by a pause, or because as many as allowed are under way. Does not block.
        """
    def unowned(self) -> list[tuple[str, int]]:
        """Returns the partitions of its topics that no member of the group owns: (topic, partition). Does not block.

        One member of a group compares, and others return none.
        """
    def strangers(self) -> tuple[list[str], list[str]]:
        """Returns other apps in the group: (names of apps, topics that this app does not read). Does not block."""
    def fetch_queue_bytes(self) -> int | None:
        """Returns the most bytes that are fetched ahead of each assigned partition.

        None where librdkafka's own settings bound them.
        """
    def stuck(self) -> list[tuple[str, int, str, bool]]:
        """Returns partitions, and topics (partition -1), that are stuck: (topic, partition, reason, is resumable).

        The last field tells whether `resume` reads the partition; others continue when the cause has gone. Does not
        block.
        """
    def partitions(
        self,
    ) -> list[tuple[str, int, int | None, int | None, int | None, int | None, tuple[int, int, int, float] | None]]:
        """Returns the partitions that are assigned now. Does not block.

        Each is (topic, partition, stored, committed, next to be done, end offset that the last fetch saw, commit gap).
        A commit gap is (messages, how many of them are done, offset of the oldest, seconds since that was begun).
        """
    def fatal_error(self) -> tuple[int, str, str] | None:
        """Returns the error that made the member unusable: (code, name, text), or None."""

@final
class PendingStep:
    """Something that the engine is about to do: a commit, or to come to rest."""

    def wait(self, timeout_s: float | None = None) -> None:
        """Waits until it is done. Blocks with the GIL released.

        `None` waits for a minute, and for a transaction until it has ended.
        """
    def done(self) -> bool:
        """Returns whether the answer is there. Does not block."""
    def result(self) -> None:
        """Returns or raises the answer, which must be there. Does not block."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Has `token` posted to the mailbox when the answer comes. Returns False when it is there already."""
    def __await__(self) -> Generator[Any]: ...

@final
class Sequencer(Generic[_Entry]):
    """Entries with the indexes 0, 1, 2, … that come from any thread in any order and are given to a function in order.

    The thread that brings the missing entry calls `sink` with a list of all contiguous entries (up to 512 at a time);
    no other thread is woken for it. One thread at a time is in `sink`, and no lock is held. `sink` may bring entries
    itself, but must not wait for one, nor for room. Its errors are raised to the thread that called it, and break the
    sequencer.

    There is room for `capacity` entries (rounded up to a power of two) from the first missing one on. Any thread may
    call any method. See `docs/ordered.md`.
    """

    def __new__(cls, sink: Callable[[list[_Entry]], object], capacity: int = 65_536) -> Sequencer[_Entry]: ...
    def append(self, index: int, entry: _Entry, timeout_s: float | None = None) -> None:
        """Deposits the entry of an index and waits until it has been appended. Blocks.

        Raises:
            OperationTimeout: not in time; the entry is taken back and its index skipped, unless it was being appended
                at that moment. ValueError: the index has been there before. ClosedError, SequencerBroken.
        """

    def deposit(self, index: int, entry: _Entry, timeout_s: float | None = None) -> SequencerTicket:
        """Deposits the entry of an index, and does not wait for it. Blocks only while there is no room for its index.

        Raises:
            OperationTimeout: no room in time; ValueError, ClosedError, SequencerBroken: as `append`.
        """

    def void(self, index: int, timeout_s: float | None = None) -> None:
        """Skips an index whose entry will never come. Blocks and raises as `deposit`."""

    def claim(self, timeout_s: float | None = None) -> SequencerPermit[_Entry]:
        """Claims the next free index. Blocks while there is no room.

        Raises:
            OperationTimeout: no room in time; ClosedError, SequencerBroken.
        """

    def wait_for(self, count: int, timeout_s: float | None = None) -> None:
        """Waits until `count` entries have been appended or skipped. Blocks.

        Raises:
            OperationTimeout: not in time; names the entry that is missing. ClosedError, SequencerBroken.
        """

    @property
    def appended(self) -> int:
        """The number of entries that were appended or skipped: all before this index."""
    @property
    def capacity(self) -> int:
        """The number of entries that there is room for."""
    @property
    def missing(self) -> tuple[int, float] | None:
        """The index that has not come though later ones have, and for how many seconds; None when there is none."""
    def close(self) -> None:
        """Ends every wait, now and later, with `ClosedError`. Does not block."""

@final
class SequencerPermit(Generic[_Entry]):
    """A claimed index, which its holder alone may use.

    At the end of a `with`, or dropped without an entry, it is skipped.
    """

    @property
    def index(self) -> int:
        """The index."""
    def append(self, entry: _Entry, timeout_s: float | None = None) -> None:
        """Deposits the entry and waits until it has been appended. Blocks, and raises as `Sequencer.append`."""
    def deposit(self, entry: _Entry) -> SequencerTicket:
        """Deposits the entry, and does not wait."""
    def void(self) -> None:
        """Marks the index as one without an entry."""
    def __enter__(self) -> SequencerPermit[_Entry]: ...
    def __exit__(self, *why: object) -> None: ...

@final
class SequencerTicket:
    """A deposited entry: `wait`, or `await` it, until it has been appended."""

    @property
    def index(self) -> int:
        """The index of the entry."""
    def done(self) -> bool:
        """Returns whether it was appended, or never will be. Does not block."""
    def wait(self, timeout_s: float | None = None) -> None:
        """Waits until it was appended."""
    def result(self) -> None:
        """Returns if it was appended, raises if it never will be. Does not block: call it when `done`."""
    def cancel(self) -> bool:
        """Takes the entry back, whose index is void then. Returns whether it was not appended yet."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Has `token` posted to the mailbox when it is done. Returns False when it is done now."""
    def __await__(self) -> Generator[Any]: ...

@final
class Admin:
    """A client for admin calls."""

    def __new__(cls, properties: Mapping[str, str], events: EventBox) -> Admin: ...
    def metadata(
        self, topic: str | None, timeout_s: float
    ) -> tuple[list[tuple[int, str]], list[tuple[str, int, list[tuple[int, int, list[int], list[int]]]]]]:
        """Returns brokers as (id, address), topics as (name, error code, partitions). Blocks with the GIL released."""
    def request(self, kind: str, arguments: Any, timeout_s: float) -> PendingCall:
        """Sends a request of this kind with its arguments (`awoke_kafka::AdminRequest`). Does not block."""
    def close(self) -> None:
        """Ends the client; calls that have no answer fail. Blocks with the GIL released.

        Does nothing in a forked child.
        """

@final
class PendingCall:
    """An admin call that is under way."""

    def wait(self) -> Any:
        """Waits for the answer and returns it. Blocks with the GIL released."""
    def done(self) -> bool:
        """Returns whether the answer is there. Does not block."""
    def result(self) -> Any:
        """Returns the answer, which must be there. Does not block. Its form is that of `awoke_kafka::AdminOutcome`."""
    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Has `token` posted to the mailbox when the answer comes. Returns False when it is there already."""
    def __await__(self) -> Generator[Any, None, Any]: ...

@final
class Reader:
    """Reads partitions without a group, and begins to fetch at once.

    `starts` holds (topic, partition, `earliest` | `latest` | `last` | `offset` | `time`, number).
    """

    def __new__(
        cls,
        properties: Mapping[str, str],
        starts: Sequence[tuple[str, int, str, int]],
        decoders: Mapping[str, Decoders],
        events: EventBox,
    ) -> Reader: ...
    def next(self, timeout_s: float | None = None) -> Batch[Any, Any] | tuple[str, int] | None:
        """Returns the next batch; (topic, partition) at the end of a partition; None when the time was up.

        Blocks with the GIL released; Ctrl-C ends the wait on the main thread.
        """
    def end_seen(self, topic: str, partition: int) -> int | None:
        """Returns one past the last message of a partition, as the last fetch saw it; None before. Does not block."""
    def fileno(self) -> int:
        """Returns a descriptor that is readable when there is something to read after `next` found nothing."""
    def clear(self) -> None:
        """Makes `fileno` unreadable until there is something again."""
    def close(self) -> None:
        """Stops fetching. Blocks with the GIL released. Closing again, or in a forked child, does nothing."""

@final
class EmbeddedFault:
    """A fault of embedded brokers that a test asked for."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until the fault has happened, and returns whether it has. Blocks with the GIL released."""

@final
class EmbeddedBrokers:
    """Kafka brokers inside the process. They stop with `close`, or when it is dropped."""

    def __new__(cls, brokers: int) -> EmbeddedBrokers: ...
    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers listen."""
    def create_topic(self, topic: str, partitions: int, replicas: int) -> None:
        """Creates a topic; one that exists stays as it is."""
    def inject(self, kind: str, names: list[str], numbers: list[int]) -> EmbeddedFault:
        """Has a fault happen, by its kind, the names and the numbers that it is about."""
    def close(self) -> None:
        """Stops the brokers. Blocks with the GIL released."""
