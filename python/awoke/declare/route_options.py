"""The options of routes, and the limits that they consist of: batches, retries, flow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

import msgspec

from awoke._native import Message
from awoke.declare.concurrency import Concurrency
from awoke.declare.incoming import Incoming
from awoke.declare.starts import Start
from awoke.errors import ConfigError, DecodeError
from awoke.preconditions import checks
from awoke.state.table import KeyedRows
from awoke.waiting.backoff import Backoff

Where = Callable[[Message[Any, Any]], bool]


class Batching(msgspec.Struct, frozen=True):
    """Limits of one job. A batch has the messages that are there when a worker is free, up to these limits."""

    max_messages: int = 1_000
    max_bytes: int = 16 * 1024 * 1024
    """A batch ends with the first few hundred messages that reach this sum of keys and values."""
    max_wait_s: float | None = None
    """The time that a batch that is not full waits for more messages; None for no wait."""
    max_time_s: float | None = None
    """The time that a batch takes at most, about: its size follows from the times of the batches before it. None: no
    bound. Where a class has no `batch` option, one second. Functions need no bound: a job of theirs ends between
    two messages, and holds up to 10,000 of them where the route has no dead letter topic."""

    def __post_init__(self) -> None:
        checks.whole("Batching", "max_messages", self.max_messages, 1, "batch")
        checks.whole("Batching", "max_bytes", self.max_bytes, 1, "batch")
        checks.optional_seconds("Batching", "max_wait_s", self.max_wait_s, "batch")
        checks.optional_seconds("Batching", "max_time_s", self.max_time_s, "batch", is_zero_allowed=False)


class Retry(msgspec.Struct, frozen=True):
    """The retries of a message whose handler raised: it stays in its place and is tried again later."""

    attempts: int | None = None
    """The number of tries of a message; None for no limit."""
    backoff_s: tuple[float, float] = (0.1, 30.0)
    """Delay after the first failure, doubled after each further one, and its limit."""
    jitter: float = 0.2
    """Each delay is shortened by up to this share, so that partitions that failed together come apart."""
    on: tuple[type[BaseException], ...] = (BaseException,)
    """Errors that are worth another try; after any other error the message is exhausted at once. A value that does
    not decode stays so and is not tried again either, unless `DecodeError` itself is named here. `SystemExit` and
    `KeyboardInterrupt` end the app, whatever is named here."""
    not_on: tuple[type[BaseException], ...] = ()
    """Errors that are not worth another try, although `on` names them or a base class."""
    on_exhausted: Literal["stop", "skip", "pause"] = "stop"
    """After the last try, where there is no dead letter topic: `stop` ends the app (the message is there at the next
    start), `skip` goes on with an event, `pause` leaves the partition alone until `app.resume` or a rebalance."""
    crashes: int = 3
    """After this many consecutive process crashes at the same message, the message goes to the dead letter topic."""

    def __post_init__(self) -> None:
        if self.attempts is not None:
            checks.whole("Retry", "attempts", self.attempts, 1, "retry")
        checks.whole("Retry", "crashes", self.crashes, 1, "retry")
        self._check_backoff()
        for name in ("on", "not_on"):
            kinds = getattr(self, name)
            if not isinstance(kinds, tuple) or not all(map(is_exception_class, kinds)):
                text = f"Retry: {name} is a tuple of exception classes, as in {name}=(OSError,), not {kinds!r}"
                raise ConfigError(text, "retry")
        if self.on_exhausted not in ("stop", "skip", "pause"):
            raise ConfigError(f"Retry: on_exhausted is 'stop', 'skip' or 'pause', not {self.on_exhausted!r}", "retry")

    def _check_backoff(self) -> None:
        backoff_s: Any = self.backoff_s
        is_pair = isinstance(backoff_s, (tuple, list)) and len(backoff_s) == 2 and all(map(checks.is_number, backoff_s))
        if not is_pair or not 0 <= backoff_s[0] <= backoff_s[1]:
            text = f"Retry: backoff_s is the first delay and the limit, as in backoff_s=(0.1, 30.0), not {backoff_s!r}"
            raise ConfigError(text, "retry")
        if not checks.is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise ConfigError(f"Retry: jitter must be a number from 0 to 1, not {self.jitter!r}", "retry")

    def delay_s(self, attempt: int) -> float:
        """Returns the delay after this attempt (from 1) has failed."""
        return Backoff(*self.backoff_s, jitter=self.jitter).delay_s(attempt)

    @property
    def retries_undecodable(self) -> bool:
        """True if a value that does not decode is tried again."""
        return DecodeError in self.on

    def is_exhausted(self, attempt: int, error: BaseException) -> bool:
        """Tells whether this attempt (from 1), which ended with this error, was the last."""
        if isinstance(error, self.not_on) or not isinstance(error, self.on):
            return True
        return self.attempts is not None and attempt >= self.attempts


class Flow(msgspec.Struct, frozen=True):
    """Limits the rate of messages and their age, and filters them."""

    per_s: float | None = None
    """Most messages per second, in all partitions of this process together."""
    delay_s: float | None = None
    """The least age of a message, by its timestamp, before it is processed."""
    expire_s: float | None = None
    """Messages that are older, by their timestamp, are skipped."""
    where: Where | None = None
    """Messages for which this is false are skipped."""

    def __post_init__(self) -> None:
        checks.optional_seconds("Flow", "per_s", self.per_s, "flow", is_zero_allowed=False)
        checks.optional_seconds("Flow", "delay_s", self.delay_s, "flow")
        checks.optional_seconds("Flow", "expire_s", self.expire_s, "flow")
        if self.where is not None and not callable(self.where):
            raise ConfigError(f"Flow: where is a function of a message, not {self.where!r}", "flow")

    def skip_reason(self, message: Message[Any, Any], now_ms: float) -> Literal["expired", "filtered"] | None:
        """Returns why a message is skipped; None for one that is processed."""
        if self.expire_s is not None and (message.timestamp_ms or now_ms) < now_ms - self.expire_s * 1_000:
            return "expired"
        return "filtered" if self.where is not None and not self.where(message) else None


class Dedup(msgspec.Struct, frozen=True, kw_only=True):
    """Skips a message whose id came before under the same key.

    The id is one of three: the value of a header, a field of the message's value (`order.id` is the field `id` of its
    field `order`; of a mapping, the entry), or what a function of the message returns. A message without an id, or
    with None, is processed. Ids are rows of a table: they are committed with their message, in one transaction with
    its results, and survive a restart.
    """

    header: str | None = None
    field: str | None = None
    by: Callable[[Message[Any, Any]], object] | None = None
    for_s: float
    """The time for which an id is known."""

    def __post_init__(self) -> None:
        if [self.header, self.field, self.by].count(None) != 2:
            text = "Dedup: the id is a header, a field, or the result of a function: say one of header=, field=, by="
            raise ConfigError(text, "dedup")
        for name, value in (("header", self.header), ("field", self.field)):
            if value is not None and (not isinstance(value, str) or not all(value.split("."))):
                raise ConfigError(f"Dedup: {name} is a name, as in {name}='id', not {value!r}", "dedup")
        if self.by is not None and not callable(self.by):
            raise ConfigError(f"Dedup: by is a function of a message, not {self.by!r}", "dedup")
        checks.optional_seconds("Dedup", "for_s", self.for_s, "dedup", is_zero_allowed=False)

    def id_of(self, message: Message[Any, Any]) -> bytes | None:
        """Returns the id of a message; None where it has none.

        Raises what the function raises; AttributeError: the value has no such field.
        """
        if self.header is not None:
            return next((value for name, value in reversed(message.headers) if name == self.header), None)
        found: object = message.value if self.by is None else self.by(message)
        for name in () if self.field is None else self.field.split("."):
            if found is not None:
                found = found.get(name) if isinstance(found, Mapping) else getattr(found, name)
        if found is None or isinstance(found, bytes):
            return found
        return str(found).encode()


class RouteOptions(TypedDict, total=False):
    """The options of a route, for functions and classes alike."""

    value: Any
    """The type of the values: `bytes`, `str`, what msgspec reads as JSON, a pydantic model, a class of protobuf's; or
    a format, as `awoke.avro(Order)`. They are checked before user code sees them. Left out, it is what the topic says
    (`awoke.Topic`), or else the annotation (`Message[Order]`), or else bytes. Tombstones reach the route where it
    takes None (`Order | None`); they do not decode otherwise."""
    key: Any
    """The type of the keys, as `value`; left out, it is what the topic or the annotation says (`Message[Order, int]`),
    or else bytes."""
    batch: Batching | None
    retry: Retry | None
    dead_letter: str | None
    """The topic for exhausted messages; each is acknowledged there before its offset moves."""
    flow: Flow | None
    start: Start | None
    """Where to begin when the group has committed nothing; None leaves it to `auto.offset.reset` (here: earliest)."""
    weight: int
    """Of two routes with work waiting, one of weight 2 gets twice as many jobs as one of weight 1."""
    concurrency: Concurrency | None
    """Several messages of a partition at once: `by_key`, `by`, `unordered`; None for one job at a time."""
    exactly_once: bool
    """True if what is sent, dead letters too, and the offsets are one transaction."""
    incoming: Sequence[Incoming]
    """Middleware around the handler: see `App.incoming`, and for classes `App.incoming_batch`. Inside of the app's."""
    jobs_max: int | None
    """The most jobs of the route at once in this process, over all its partitions, for example the size of a pool.
    None: no bound beside `concurrency`, which is for each partition."""
    group: str | None
    """The consumer group that reads the topic; None for the app's own: the setting `group`, or else the app's name.
    Each group has a member of its own, and gets all messages."""
    partitions: Sequence[int] | None
    """The partitions that each process reads by itself, without a member of a group; None: a group assigns them."""
    tables: Sequence[KeyedRows[Any, Any]] | None
    """The tables (`App.table`) whose rows the handler reads and writes, in the transaction of its results and its
    offsets: `exactly_once` is implied. And references (`App.reference`), whose rows it reads."""
    dedup: Dedup | None
    """Skips messages whose id came before: `exactly_once` is implied. Functions only."""
    max_processing_s: float | None
    """A job that runs longer is reported with its stack, and health is bad until it ends."""


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that only a function has (`App.on`), and those that only a class has (`App.consumer`)."""

    output: str | Sequence[str] | None = None
    ordered: bool = False
    forward_headers: bool | Collection[str] = False
    offsets: Literal["auto", "manual"] = "auto"
    tick_every_s: float | None = None
    own_thread: bool = False


def check_kinds(topic: str, options: RouteOptions, output: object) -> None:
    """Refuses options of the wrong type, where the route is made.

    Raises:
        ConfigError: names the topic and the option, and shows an example.
    """
    owner = f"route {topic!r}"
    checks.kind(owner, "retry", options.get("retry"), Retry, "awoke.Retry(attempts=3)")
    checks.kind(owner, "batch", options.get("batch"), Batching, "awoke.Batching(max_messages=100)")
    checks.kind(owner, "flow", options.get("flow"), Flow, "awoke.Flow(per_s=100)")
    checks.kind(owner, "group", options.get("group"), str, "'billing'")
    group = options.get("group")
    if group is not None and (not group or group != group.strip() or not group.isprintable()):
        raise ConfigError(f"{owner}: group={group!r} is no name of a consumer group, as group='billing' is", "group")
    checks.kind(owner, "partitions", options.get("partitions"), Sequence, "[0, 3]")
    checks.kind(owner, "incoming", options.get("incoming"), Sequence, "[measure]")
    checks.kind(owner, "tables", options.get("tables"), Sequence, "[totals]")
    checks.kind(owner, "dedup", options.get("dedup"), Dedup, "awoke.Dedup(header='id', for_s=86_400)")
    checks.kind(owner, "dead_letter", options.get("dead_letter"), str, f"'{topic}.dead'")
    for each in output if isinstance(output, Sequence) and not isinstance(output, str) else [output]:
        checks.kind(owner, "output", each, str, f"'{topic}.out'")


def is_exception_class(value: object) -> bool:
    """Tells whether a value is a class of exceptions."""
    return isinstance(value, type) and issubclass(value, BaseException)
