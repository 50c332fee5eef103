"""awoke's engine, as Python sees it. Internal but for Batch, DeliveryHandle, Message and what Producer inherits."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar, final

from typing_extensions import disjoint_base

from awoke._waiting import Delivery
from awoke.settings import EngineSettings

_Value = TypeVar("_Value", covariant=True)
_Entry = TypeVar("_Entry")

def librdkafka_version() -> str:
    """Returns the version of librdkafka that is built in."""

def library_versions() -> list[tuple[str, str]]:
    """Returns the C libraries that are linked, with their versions, librdkafka first. Each of them is asked."""

def build_facts() -> list[tuple[str, str | None]]:
    """Returns how the module was built: its profile, target, commit and time (seconds since 1970), None for unknown."""

def set_fetched_batch_max(bytes: int) -> None:
    """Bounds the memory of one fetched batch, for all consumers of the process from now on. Does not block."""

def is_secret(property: str) -> bool:
    """Tells whether the value of this librdkafka property must never be shown."""

def flush_now(handles: Sequence[DeliveryHandle]) -> None:
    """Has these messages sent without lingering, together. Does not block."""

def first_undelivered(handles: Sequence[DeliveryHandle]) -> int | None:
    """Returns the index of the first handle without an answer, or with an error; None if all were delivered."""

def wait_all(handles: Sequence[DeliveryHandle], timeout_s: float | None = None) -> bool:
    """Waits until all handles are answered, well or badly; returns whether they are. Blocks with the GIL released."""

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
        """Copies the messages out of librdkafka's memory. awoke does so when the job of a kept batch has ended."""

@final
class BatchIterator:
    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Message[Any]: ...

@final
class ValueBuffer: ...

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
        """The answer, which must be there. Does not block.

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
    def topic(self) -> str: ...
    @property
    def woken_at_ns(self) -> int:
        """When the answer came, in nanoseconds of `time.monotonic_ns()`; 0 if no thread or task waited for it."""
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
        report_coalescing_s: float = 0.0,
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

        A message is a `Record`, a pair of value and key, or a value alone. Of a list or a tuple, many are sent at once;
        of any other iterable, each is sent when it comes. Blocks while the queue is full, up to `timeout_s` for each
        message. On an error, the messages before it have been sent.

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
class TransactionBatcher:
    def __new__(
        cls,
        properties: Mapping[str, str],
        is_alone: bool,
        settings: EngineSettings,
        encoder: Callable[[Any], bytes],
        events: EventBox,
    ) -> TransactionBatcher: ...
    def entry(self) -> TransactionEntry: ...
    def submit(self, entry: TransactionEntry, job: Job, offset: int | None) -> PendingCommit: ...
    def commit(self, partition: Partition) -> PendingCommit: ...
    def close(self) -> None: ...

@final
class TransactionEntry:
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
class Notifier:
    def __new__(cls) -> Notifier: ...
    def fileno(self) -> int: ...
    def clear(self) -> None: ...
    def notify(self) -> None: ...

@final
class Scheduler:
    def __new__(cls) -> Scheduler: ...
    def next(self) -> Job | HookJob | LaneAssignment | None: ...
    def next_or_notify(
        self, notifier: Notifier
    ) -> tuple[Job | HookJob | LaneAssignment | None, float | None, bool]: ...
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
    def truncate(self, messages: int) -> None: ...
    def release(self) -> None: ...
    def release_rest(self) -> None: ...
    def batch(self, decoder: Callable[[bytes], Any] | None = None) -> Batch[Any]: ...
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
    def leave_slot(self, keeps_assigned: bool) -> None: ...
    def split_off(self, offset: int) -> Job | None: ...
    def keep_assigned(self) -> bool: ...
    def allow_revoke(self) -> None: ...

@final
class Admission:
    """Hands out the calls of a service that are to be executed, or answered without being executed. Any thread."""

    def __new__(
        cls,
        scheduler: Scheduler,
        options: Any,
        calls_topic: str,
        methods: Sequence[Any],
        events: EventBox,
        on_cancelled: Callable[[list[Callable[[], object]]], object],
    ) -> Self:
        """`options` is an `awoke.rpc.responder.methods.Options`, each method an `awoke.rpc.responder.methods.Method`.

        `on_cancelled` gets the callbacks of a call that was cancelled, on the thread that receives the cancellation.
        """
    def set_reply_topics(self, partitions: Mapping[str, int]) -> None:
        """Replaces the topics that replies may go to (at first none), each with the number of its partitions.

        Does not block.
        """
    def next(self) -> IncomingCall | None:
        """Returns the next call; None once the scheduler has closed. Blocks with the GIL released."""
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
    """The call that a method executes. Any thread."""

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
        """When it is to end, on `time.monotonic()`: its caller stops waiting, or its method's time is over."""
    @property
    def remaining_s(self) -> float:
        """The time that is left for it, at least 0."""
    @property
    def is_cancelled(self) -> bool:
        """True if its caller has cancelled it, or its time is over."""
    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Waits until it is cancelled or its time is over; returns whether it is. Blocks with the GIL released."""
    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Calls a function when the caller cancels, on the thread that receives the cancellation; at once if it has."""

    # For awoke's own responder.

    @property
    def target(self) -> Any:
        """Its `awoke.rpc.responder.methods.Method`; None if the service has no such method."""
    @property
    def not_executed(self) -> tuple[str, str] | None:
        """Why its method is not executed; None if it is.

        "rejected" or "invalid" and a reason, or "cached" and the kind of the reply.
        """
    @property
    def cached_body(self) -> bytes | None:
        """The body of the reply, if a call with its idempotency key was executed before."""
    @property
    def reply_to(self) -> tuple[str, int] | None:
        """Topic and partition of its replies; None if it wants none."""
    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and offset of its request."""
    @property
    def times_s(self) -> tuple[float, float, float, float]:
        """The caller's time; what was left of it, and the time in queues, at the reading; the time of the method."""
    @property
    def was_cancelled(self) -> bool:
        """True if its caller has cancelled it."""
    @property
    def body(self) -> bytes:
        """The arguments as they came."""
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
        """Keeps its record readable after its end, because user code sees the call."""
    def start(self) -> None:
        """Starts the clock of its method."""
    def stop(self) -> None:
        """Stops the clock of its method."""

@final
class StreamCredit:
    """The credit of a stream. It has a result when there is credit, or none will come because the call is cancelled."""

    @property
    def is_named(self) -> bool:
        """True if the request named a credit."""
    def try_take(self) -> bool:
        """Takes the credit of one result; returns False if there is none. Does not block."""
    def done(self) -> bool: ...
    def wait(self, timeout_s: float | None = None) -> None:
        """Waits for a result, at most until the call's time is over. Blocks with the GIL released."""
    def result(self) -> None: ...
    def notify(self, mailbox: Mailbox, token: int) -> bool: ...

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
        """Leaves the slot of the call's job to other jobs, and copies its record. Does not block."""
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
        """Has the partition's owner execute the call again after `delay_s`. Does not block."""

@final
class LaneAssignment:
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
    def clear_backoff(self) -> None: ...
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
    def commit_gap(self) -> int: ...
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
        request_clock_skew_s: float | None = None,
        turn_max_s: float | None = None,
        batch_time_max_s: float | None = None,
        stores_by_hand: bool = False,
        jobs_max: int | None = None,
    ) -> Route: ...
    @property
    def expired(self) -> int: ...

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
    def __new__(
        cls,
        producer_properties: Mapping[str, str],
        consumer_properties: Mapping[str, str],
        address: _ServiceAddress,
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
        """Makes a call and takes its reply: `call`, `wait` and `result` in one. Blocks with the GIL released."""
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
        """Takes the next part: a kind and a body, or `failed`, a code and a text; None if it is not there yet."""
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
        """Starts the thread. The lifeline owns the descriptor `tripwire`, the writing end of a pipe, from here on.

        The socket stays the caller's, who keeps it open until `close` has returned. Raises SystemFailure.
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
        batcher: TransactionBatcher | None,
        events: EventBox,
    ) -> GroupMember: ...
    def commit(self) -> PendingCommit: ...
    def close(self, timeout_s: float | None = None) -> bool:
        """Gives all partitions back in order and leaves the group. Blocks with the GIL released.

        Returns False if a call of librdkafka's has not returned 10 s after the deadline: its thread then ends by
        itself.
        """
    def stop_waiting(self) -> None: ...
    def resume(self, topic: str, partition: int) -> bool:
        """Continues a stuck partition from its first message; returns False if it is not stuck. Does not block.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
    def fetch_queue_bytes(self) -> int | None:
        """Returns the most bytes that are fetched ahead of each partition; None if librdkafka's settings say it."""
    def stuck(self) -> list[tuple[str, int, str, bool]]:
        """Returns partitions, and topics (partition -1), whose messages no longer come, each with the reason.

        The last field tells whether `resume` reads the partition from its first message; others continue when the cause
        has gone.
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

    The thread that brings the missing entry calls `sink` with a list of all contiguous entries (up to 512 at a time);
    no other thread is woken for it. One thread at a time is in `sink`, and no lock is held. `sink` may bring entries
    itself, but must not wait for one, nor for room. Its errors are raised to the thread that called it, and break the
    sequencer.

    There is room for `capacity` entries (rounded up to a power of two) from the first missing one on. Any thread may
    call any method. See `docs/ordered.md`.
    """

    def __new__(cls, sink: Callable[[list[_Entry]], object], capacity: int = 65_536) -> Sequencer[_Entry]: ...
    def append(self, index: int, entry: _Entry, timeout_s: float | None = None) -> None:
        """Brings an entry and waits until it has been appended. Blocks.

        Raises:
            OperationTimeout: not in time; the entry is taken back and its index skipped, unless it was being appended
                at that moment. ValueError: the index has been there before. ClosedError, SequencerBroken.
        """

    def deposit(self, index: int, entry: _Entry, timeout_s: float | None = None) -> SequencerTicket:
        """Brings an entry and returns. Blocks only while there is no room for its index.

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
    def appended(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def missing(self) -> tuple[int, float] | None: ...
    def close(self) -> None:
        """Ends every wait, now and later, with `ClosedError`. Does not block."""

@final
class SequencerPermit(Generic[_Entry]):
    """A claimed index. At the end of a `with`, or dropped without an entry, it is skipped."""

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
    def clear(self) -> None: ...
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
