"""Routes: topics, the code that processes their messages, and the options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any, Literal, NamedTuple, TypedDict, cast

import msgspec

from awoke import checks, handlers
from awoke._native import Message
from awoke.annotations import contradicts, result_type_of, type_name, types_of
from awoke.backoff import Backoff
from awoke.choosing import Handlers
from awoke.codecs.formats import Coding, Decoding, Format, decoding_of, type_of
from awoke.concurrency import Concurrency, Lanes, by_partition
from awoke.consumer import Consumer
from awoke.errors import ConfigError, DecodeError
from awoke.incoming import Incoming, check_incoming, check_suits
from awoke.injection.parameters import Parameters, parameters_of
from awoke.starts import Start, start_of

Where = Callable[[Message[Any, Any]], bool]

BATCH_TIME_S = 1.0
"""The time that a batch of a class without a `batch` option takes at most, about."""

CONSUMER_METHODS = ("assigned", "consume", "tick", "revoked", "lost", "shutdown")
"""The methods of a consumer class that awoke calls."""

FUNCTION_MESSAGES = 10_000
"""The most messages of a function's job, which ends between two messages when its time is up: a longer job of a fast
function waits less often for acknowledgements, and commits more in one transaction."""
CAREFUL_MESSAGES = 1_000
"""The least number of messages to process one by one after a crash: as many as a job may have held."""


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
    on: tuple[type[BaseException], ...] = (Exception,)
    """Errors that are worth another try; after any other error the message is exhausted at once. A value that does
    not decode stays so and is not tried again either, unless `DecodeError` itself is named here."""
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


class HandlerNotes(NamedTuple):
    """All that is known of a handler beside itself."""

    around: FrameType | None = None
    """The frame in which it was defined; None if its annotations were read already."""
    parameters: Parameters | None = None
    """The arguments that its annotations say; None if they were not read yet."""
    incoming: tuple[Incoming, ...] = ()
    """The middleware of the routers that have included its route."""


class Route:
    """One topic and the code that processes it."""

    def __init__(
        self,
        topic: str,
        target: Callable[..., Any] | type[Consumer] | Handlers,
        options: RouteOptions,
        own: KindOptions = KindOptions(),  # noqa: B008 - it is frozen.
        *,
        notes: HandlerNotes = HandlerNotes(),  # noqa: B008 - it is never changed.
        coding: Coding = Coding(),  # noqa: B008 - it is never changed.
    ) -> None:
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"a route needs the name of a topic, not {topic!r}", "topic")
        checks.topic("a route", "topic", topic)
        self.topic = topic
        check_kinds(topic, options, own.output)
        is_class = isinstance(target, type) and issubclass(target, Consumer)
        self.handlers = target if isinstance(target, Handlers) else None
        """The handlers, where the route has several."""
        self.consumer: type[Consumer] | None = cast("type[Consumer]", target) if is_class else None
        """The class, where the route has one."""
        self.function: Callable[..., Any] = target if self.consumer is None else self.consumer.consume
        """The function that is called for each message; of a class, its `consume`."""
        self.name = str(getattr(target, "__qualname__", target)) if self.handlers is None else self.handlers.name
        """The code's name, for logs."""
        self.retry = options.get("retry") or Retry()
        self.dead_letter = options.get("dead_letter")
        self.batch = options.get("batch") or self._default_batch()
        self.flow = options.get("flow") or Flow()
        self.start = start_of(options.get("start"))
        self.weight = options.get("weight", 1)
        self.jobs_max = options.get("jobs_max")
        self.max_processing_s = options.get("max_processing_s")
        self.concurrency = options.get("concurrency") or by_partition()
        if not isinstance(self.concurrency, Concurrency):
            text = f"route {topic!r}: concurrency is made by awoke.by_key(16) or the like, not {self.concurrency!r}"
            raise ConfigError(text, "concurrency")
        self.is_exactly_once = bool(options.get("exactly_once", False))
        self.outputs = [own.output] if isinstance(own.output, str) else list(own.output or ())
        """The topics that results are sent to; each result that does not say another one goes to the first."""
        self.output = self.outputs[0] if self.outputs else None
        self.forward_headers = self._forwarded(own.forward_headers)
        """The headers of a message that are forwarded to its results: all, none, or those of these names."""
        self.is_ordered = own.ordered and self.concurrency.by != "partition"
        """True if results that come in any order are sent on in the order of the messages."""
        self.is_manual = own.offsets == "manual"
        """True if only `mark` moves the offset."""
        self.tick_every_s = own.tick_every_s
        self.has_own_thread = own.own_thread
        """True if all code of an instance runs on one thread that belongs to its assignment."""
        self.incoming: Sequence[Incoming] = [*notes.incoming, *(options.get("incoming") or ())]
        """Middleware around the handler, inside of the app's; the first is outermost."""
        self._check_target(target)
        self.parameters = self._parameters(notes)
        """The arguments of its handler beside the message; None where there are several handlers."""
        self._coding = coding
        self.types = value, key = self._types(options, notes.around)
        """The types or formats of values and keys; None for bytes."""
        self.formats: Sequence[Format] = [each for each in (value, key) if isinstance(each, Format)]
        """The formats that its messages have."""
        self.decoding = self._decoding(value, key)
        """The functions that decode its messages."""
        self.decoders = self.decoding.native()
        self._check_result(notes.around)
        kind = handlers.kind_of(self.function)
        self.is_async = self.handlers.is_async if self.handlers is not None else kind.startswith("async")
        for each in self.incoming:
            self.check_incoming(each)
        self._check(options, own)

    @property
    def is_typed(self) -> bool:
        """True if user code does not get the values as bytes."""
        return self.decoding.value is not None

    @property
    def all_parameters(self) -> Sequence[Parameters]:
        """The arguments of each of its handlers."""
        if self.handlers is not None:
            return [each.parameters for each in self.handlers.cases]
        return [] if self.parameters is None else [self.parameters]

    @property
    def skips_some(self) -> bool:
        """True if some messages are skipped without being processed."""
        return self.flow.expire_s is not None or self.flow.where is not None

    @property
    def lanes(self) -> Lanes | None:
        """The concurrency as the engine takes it; None for one job at a time."""
        each = self.concurrency
        if each.by == "partition":
            return None
        # After a crash, all messages in flight are processed one by one.
        in_flight = each.in_flight_max(is_exactly_once=self.is_exactly_once and self.dead_letter is None)
        careful = max(CAREFUL_MESSAGES, in_flight)
        share = "even" if self.consumer is not None else "one" if self.is_ordered else "short"
        return Lanes(each.by, each.jobs, in_flight, each.commit_gap, share, careful)

    @property
    def topics_out(self) -> Sequence[str]:
        """The topics that the route produces to."""
        return [*self.outputs, *([self.dead_letter] if self.dead_letter else [])]

    def _default_batch(self) -> Batching:
        if self.consumer is not None:
            return Batching(max_time_s=BATCH_TIME_S)
        # After a crash, all messages that a job may have held are processed one by one.
        return Batching(max_messages=FUNCTION_MESSAGES if self.dead_letter is None else CAREFUL_MESSAGES)

    def _check(self, options: RouteOptions, own: KindOptions) -> None:
        unknown = set(options) - set(RouteOptions.__annotations__)
        if unknown:
            raise ConfigError(f"route {self.topic!r}: there is no option {sorted(unknown)[0]!r}", sorted(unknown)[0])
        owner = f"route {self.topic!r}"
        checks.whole(owner, "weight", self.weight, 1, "weight")
        if self.jobs_max is not None:
            checks.whole(owner, "jobs_max", self.jobs_max, 1, "jobs_max")
        for name, value in (("max_processing_s", self.max_processing_s), ("tick_every_s", self.tick_every_s)):
            checks.optional_seconds(owner, name, value, name, is_zero_allowed=False)
        if own.ordered and self.output is None:
            raise ConfigError(f"route {self.topic!r}: ordered=True is about an output, and there is none", "ordered")
        if self.lanes is not None and self.is_manual:
            text = f"route {self.topic!r}: offsets='manual' goes with one job of a partition at a time"
            raise ConfigError(text, "concurrency")
        self._check_tick()
        self._check_plain()
        self._check_exactly_once()
        self._check_own_thread()
        if own.offsets not in {"auto", "manual"}:
            raise ConfigError(f"route {self.topic!r}: offsets are 'auto' or 'manual', not {own.offsets!r}", "offsets")
        for name, other in (("dead_letter", self.dead_letter), *(("output", each) for each in self.outputs)):
            if other is not None:
                checks.topic(owner, name, other)
        if self.dead_letter == self.topic:
            raise ConfigError(f"route {self.topic!r}: is its own dead letter topic", "dead_letter")
        if self.topic in self.outputs:
            text = f"route {self.topic!r}: is its own output, so that each result would come back as a message"
            raise ConfigError(text, "output")

    def _check_tick(self) -> None:
        """Refuses a hook that would never be called."""
        has_tick = self.consumer is not None and self.consumer.tick is not Consumer.tick
        if has_tick and self.tick_every_s is None:
            text = f"route {self.topic!r}: {self.name}.tick is never called without an interval: say tick_every_s=…"
            raise ConfigError(text, "tick_every_s")

    def _check_plain(self) -> None:
        for name, function in (("concurrency", self.concurrency.lane_of), ("flow", self.flow.where)):
            if function is not None:
                handlers.check_plain(function, f"route {self.topic!r}: {name}")

    def _check_exactly_once(self) -> None:
        if not self.is_exactly_once:
            return
        text = None
        if self.consumer is None and self.output is None:
            text = "is about an output, and there is none; what user code does elsewhere may happen twice"
        elif self.is_ordered:
            text = "and ordered=True do not go together: a job's results leave in one transaction with its offsets"
        elif self.is_manual:
            text = "commits offsets itself, in transactions: mark messages within self.transaction()"
        if text is not None:
            raise ConfigError(f"route {self.topic!r}: exactly_once=True {text}", "exactly_once")

    def _check_own_thread(self) -> None:
        if not isinstance(self.has_own_thread, bool):
            text = f"route {self.topic!r}: own_thread is True or False, not {self.has_own_thread!r}"
            raise ConfigError(text, "own_thread")
        if not self.has_own_thread:
            return
        methods = [getattr(self.consumer, name) for name in CONSUMER_METHODS]
        text = None
        if any(inspect.iscoroutinefunction(each) for each in methods):
            text = "is about def methods; async def methods run on one thread already, the event loop's"
        elif self.lanes is not None:
            text = "and concurrency do not go together: several jobs of a partition at once need several threads"
        if text is not None:
            raise ConfigError(f"route {self.topic!r}: own_thread=True {text}", "own_thread")

    def _forwarded(self, names: bool | Collection[str]) -> bool | frozenset[str]:
        text = f"route {self.topic!r}: forward_headers"
        if names is not False and self.output is None:
            raise ConfigError(f"{text} is about an output, and there is none", "forward_headers")
        if isinstance(names, bool):
            return names
        is_list = isinstance(names, Collection) and not isinstance(names, str | bytes)
        if not is_list or not all(isinstance(name, str) for name in names):
            raise ConfigError(f"{text} is True, False or a list of names, not {names!r}", "forward_headers")
        return frozenset(names)

    def _check_target(self, target: Any) -> None:
        where = f"route {self.topic!r}: {self.name}"
        if self.handlers is not None:
            self.handlers.check(where)
            for each in self.handlers.cases:
                handlers.check_function(each.function, where, may_yield=bool(self.outputs))
        elif self.consumer is None:
            handlers.check_function(target, where, may_yield=bool(self.outputs))
        else:
            handlers.check_consumer(self.consumer, where)

    def _parameters(self, notes: HandlerNotes) -> Parameters | None:
        if self.handlers is not None or notes.parameters is not None:
            return notes.parameters
        where = f"route {self.topic!r}: {self.name}"
        if self.consumer is None:
            return parameters_of(self.function, notes.around, where)
        has_self = handlers.has_self(self.consumer, "consume")
        return parameters_of(self.function, notes.around, f"{where}.consume", is_batch=True, has_self=has_self)

    def check_incoming(self, function: Incoming) -> None:
        """Checks that middleware can be called around the handler.

        Raises:
            ConfigError: It can't.
        """
        where = f"route {self.topic!r}: incoming"
        check_incoming(function, where)
        check_suits(function, where, self.name, is_async=self.is_async)

    def _types(self, options: RouteOptions, around: FrameType | None) -> tuple[Any, Any]:
        """Returns the types of values and keys: as the route, the topic, or the handler's annotation says."""
        said = {part: options.get(part) or getattr(self.topic, part, None) for part in ("value", "key")}
        try:
            annotated = self._annotated(around)
        except ConfigError as error:
            if said["value"] is not None:
                return said["value"], said["key"]
            raise ConfigError(f"route {self.topic!r}: {self.name}: {error}", "value") from None
        if self.handlers is not None:
            return said["value"] or annotated[0], said["key"] or annotated[
                1
            ]  # Each handler takes a part of the values.
        return self._agreed("value", said["value"], annotated[0]), self._agreed("key", said["key"], annotated[1])

    def _annotated(self, around: FrameType | None) -> tuple[Any, Any]:
        if self.handlers is not None:
            return self.handlers.value_type, self.handlers.key_type
        value, key = types_of(self.function, around)
        assert self.parameters is not None
        return value or self.parameters.value_type, key or self.parameters.key_type

    def _agreed(self, part: str, said: Any, annotated: Any) -> Any:
        if said is None or annotated is None or type_of(said) is None:
            return annotated if said is None else said
        if contradicts(type_of(said), annotated):
            text = f"route {self.topic!r}: {part}={type_name(type_of(said))} contradicts the annotation of {self.name}"
            raise ConfigError(f"{text}, which takes {type_name(annotated)}; say the same in both", part)
        return said

    def _decoding(self, value: Any, key: Any) -> Decoding:
        for part, kind in (("value", value), ("key", key)):
            try:
                decoding_of(kind, None, self.topic, Coding(self._coding.codec))
            except (TypeError, msgspec.MsgspecError) as error:
                text = f"route {self.topic!r}: {part}s can't be read as {type_name(type_of(kind))}: {error}"
                raise ConfigError(text, part) from None
        return decoding_of(value, key, self.topic, self._coding)

    def _check_result(self, around: FrameType | None) -> None:
        if self.output is None:
            return
        functions = [self.function] if self.handlers is None else [each.function for each in self.handlers.cases]
        for each in functions:
            self._check_result_of(each, around)

    def _check_result_of(self, function: Callable[..., Any], around: FrameType | None) -> None:
        result = result_type_of(function, around)
        if "generator" in handlers.kind_of(function):
            result = next(iter(typing.get_args(result)), None)
        try:
            self._coding.codec.check_encodable(result)
        except TypeError as error:
            text = f"route {self.topic!r}: {function.__qualname__} returns {type_name(result)}, which can't be sent"
            raise ConfigError(f"{text}: {error}", "output") from None


def check_kinds(topic: str, options: RouteOptions, output: object) -> None:
    """Refuses options of the wrong type, where the route is made.

    Raises:
        ConfigError: names the topic and the option, and shows an example.
    """
    owner = f"route {topic!r}"
    checks.kind(owner, "retry", options.get("retry"), Retry, "awoke.Retry(attempts=3)")
    checks.kind(owner, "batch", options.get("batch"), Batching, "awoke.Batching(max_messages=100)")
    checks.kind(owner, "flow", options.get("flow"), Flow, "awoke.Flow(per_s=100)")
    checks.kind(owner, "incoming", options.get("incoming"), Sequence, "[measure]")
    checks.kind(owner, "dead_letter", options.get("dead_letter"), str, f"'{topic}.dead'")
    for each in output if isinstance(output, Sequence) and not isinstance(output, str) else [output]:
        checks.kind(owner, "output", each, str, f"'{topic}.out'")


def is_exception_class(value: object) -> bool:
    """Tells whether a value is a class of exceptions."""
    return isinstance(value, type) and issubclass(value, BaseException)
