"""Routes: topics, the code that processes their messages, and the options."""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
import typing
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any, NamedTuple, cast

import msgspec

from awoke._native import Decoders
from awoke.declare import handlers
from awoke.declare.annotations import contradicts, result_type_of, type_name, types_of
from awoke.declare.choosing import Handlers, union
from awoke.declare.concurrency import Concurrency, Lanes, by_partition
from awoke.declare.consumer import Consumer
from awoke.declare.incoming import Incoming, check_incoming, check_suits
from awoke.declare.injection.parameters import Parameters, parameters_of
from awoke.declare.route_options import Batching, Flow, KindOptions, Retry, RouteOptions, check_kinds
from awoke.declare.starts import start_of
from awoke.errors import ConfigError
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import BYTES, Format, decoder_of, decoders_of, format_of, type_of
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import NO_SCHEMAS, Schemas
from awoke.payloads.topics import Topic
from awoke.preconditions import checks
from awoke.state.table import KeyedRows, Table

BATCH_TIME_S = 1.0
"""The time that a batch of a class without a `batch` option takes at most, about."""

CONSUMER_METHODS = ("assigned", "consume", "tick", "revoked", "lost", "shutdown")
"""The methods of a consumer class that awoke calls."""

FUNCTION_MESSAGES = 10_000
"""The most messages of a function's job, which ends between two messages when its time is up: a longer job of a fast
function waits less often for acknowledgements, and commits more in one transaction."""
CAREFUL_MESSAGES = 1_000
"""The least number of messages to process one by one after a crash: as many as a job may have held."""


numbers = itertools.count(1)
"""Tells the routes of a process apart: two groups may read one topic."""


class HandlerNotes(NamedTuple):
    """All that is known of a handler beside itself."""

    around: FrameType | None = None
    """The frame in which it was defined; None if its annotations were read already."""
    parameters: Parameters | None = None
    """The arguments that its annotations say; None if they were not read yet."""
    incoming: tuple[Incoming, ...] = ()
    """The middleware of the routers that have included its route."""
    result_type: Any = None
    """The type of its results; None if the annotations say none, or were not read yet."""


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
        default: Format = BY_TYPE,
        schemas: Schemas = NO_SCHEMAS,
        app: str = "app",
    ) -> None:
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"a route needs the name of a topic, not {topic!r}", "topic")
        checks.topic("a route", "topic", topic)
        self.topic = topic
        self.number = next(numbers)
        """Its number in this process; jobs carry it."""
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
        self.group = options.get("group")
        """The consumer group that reads the topic; None for the app's own."""
        self.partitions = self._named_partitions(options.get("partitions"))
        """The partitions that each process reads by itself; empty where a group assigns them."""
        self.weight = options.get("weight", 1)
        self.jobs_max = options.get("jobs_max")
        self.max_processing_s = options.get("max_processing_s")
        self.concurrency = options.get("concurrency") or by_partition()
        if not isinstance(self.concurrency, Concurrency):
            text = f"route {topic!r}: concurrency is made by awoke.by_key(16) or the like, not {self.concurrency!r}"
            raise ConfigError(text, "concurrency")
        self.dedup = options.get("dedup")
        self.seen = self._seen(app)
        """The table of the ids of its messages; None where duplicates are processed."""
        self.tables = [*(options.get("tables") or ()), *([] if self.seen is None else [self.seen])]
        """The tables whose rows its function reads and writes."""
        self.is_exactly_once = bool(options.get("exactly_once", bool(self.written_tables)))
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
        self.default_format, self.schemas = default, schemas
        self.types = value, key = self._types(options, notes.around)
        """The types or formats of values and keys; None for bytes."""
        self.value_format, self.key_format = self._format("value", value), self._format("key", key)
        self.decoders = decoders_of(self.value_format, self.key_format, topic, schemas)
        """The functions that decode its messages; None where all stays bytes."""
        self.result_type = self._result_type(notes)
        """The type of its results, by the annotation of its function; None if that says nothing."""
        kind = handlers.kind_of(self.function)
        self.is_async = self.handlers.is_async if self.handlers is not None else kind.startswith("async")
        for each in self.incoming:
            self.check_incoming(each)
        self._check(options, own)

    @functools.cached_property
    def loading_decoders(self) -> Decoders | None:
        """The same, but they load the schemas that they need on the calling thread."""
        return decoders_of(self.value_format, self.key_format, self.topic, self.schemas, loads=True)

    @property
    def is_typed(self) -> bool:
        """True if user code does not get the values as bytes."""
        return self.value_format is not BYTES

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
        share = "even" if self.consumer is not None else "short"
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
            name = sorted(unknown)[0]
            raise ConfigError(f"route {self.topic!r}: there is no option {name!r}{instead_of(name)}", name)
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
        self._check_tables(options)
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

    def _seen(self, app: str) -> Table[Any, Any] | None:
        if self.dedup is None:
            return None
        name = "dedup." + ".".join(filter(None, [self.group, self.topic]))
        checks.topic(f"dedup of route {self.topic!r}", "dedup", f"{app}.{name}")
        return Table(name, Topic(f"{app}.{name}"), None, None, BYTES, NO_SCHEMAS, self.dedup.for_s)

    def _check_tables(self, options: RouteOptions) -> None:
        if not self.tables:
            return
        text, option = None, "tables" if options.get("tables") else "dedup"
        unknown = [each for each in self.tables if not isinstance(each, KeyedRows)]
        if unknown:
            text = f"are made by app.table(…) or app.reference(…), not {unknown[0]!r}"
        elif len({table.name for table in self.tables}) < len(self.tables):
            text = "names a table twice"
        elif not self.written_tables:
            return
        elif options.get("exactly_once") is False:
            text = "and exactly_once=False do not go together: a row is committed with the offset of its message"
        elif self.consumer is not None and self.dedup is not None:
            text, option = "is of functions: a class gets whole batches", "dedup"
        elif self.concurrency.by not in ("partition", "key"):
            text = "go with by_key(…), or one job of a partition at a time: one job at a time may change a row"
        if text is not None:
            raise ConfigError(f"route {self.topic!r}: {option} {text}", option)

    @property
    def written_tables(self) -> list[Table[Any, Any]]:
        """Those of the tables that its function writes."""
        return [table for table in self.tables if isinstance(table, Table)]

    def _check_exactly_once(self) -> None:
        if not self.is_exactly_once:
            return
        text = None
        if self.consumer is None and self.output is None and not self.written_tables:
            text = "is about an output, and there is none; what user code does elsewhere may happen twice"
        elif self.is_ordered:
            text = "and ordered=True do not go together: a job's results leave in one transaction with its offsets"
        elif self.is_manual:
            text = "commits offsets itself, in transactions: mark messages within self.transaction()"
        elif self.partitions:
            text = "needs a group, which fences a process that has lost its partitions; leave partitions=… out"
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

    def _named_partitions(self, partitions: Sequence[int] | None) -> Sequence[int]:
        if partitions is None:
            return ()
        owner = f"route {self.topic!r}"
        are_numbers = all(type(each) is int and each >= 0 for each in partitions)
        if not partitions or not are_numbers or len(set(partitions)) < len(partitions):
            text = f"{owner}: partitions are numbers from 0, each once, as in [0, 3], not {partitions!r}"
            raise ConfigError(text, "partitions")
        if self.group is not None:
            text = (
                f"{owner}: partitions={list(partitions)} are read without a group, and group={self.group!r} names one"
            )
            raise ConfigError(text, "partitions")
        return tuple(partitions)

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

    def _format(self, part: Part, kind: Any) -> Format:
        """Returns the format of values or keys by their type or format, if it can read them."""
        try:
            found = format_of(kind, self.default_format)
            decoder_of(found, self.topic, part, NO_SCHEMAS)
        except (TypeError, msgspec.MsgspecError) as error:
            text = f"route {self.topic!r}: {part}s can't be read as {type_name(type_of(kind))}: {error}"
            raise ConfigError(text, part) from None
        return found

    def _result_type(self, notes: HandlerNotes) -> Any:
        if self.output is None or notes.around is None:
            return notes.result_type
        functions = [self.function] if self.handlers is None else [each.function for each in self.handlers.cases]
        kinds = [self._result_type_of(each, notes.around) for each in functions]
        return None if None in kinds else union(kinds)

    def _result_type_of(self, function: Callable[..., Any], around: FrameType) -> Any:
        result = result_type_of(function, around)
        if "generator" in handlers.kind_of(function):
            result = next(iter(typing.get_args(result)), None)
        try:
            format_of(result, self.default_format).check_writable()
        except TypeError as error:
            text = f"route {self.topic!r}: {function.__qualname__} returns {type_name(result)}, which can't be sent"
            raise ConfigError(f"{text}: {error}", "output") from None
        return result


OF_OTHERS = {
    "auto_offset_reset": "start='latest', or a number or a time",
    "autoretry_for": "retry=awoke.Retry(on=(…,))",
    "batch_size": "batch=awoke.Batching(max_messages=…)",
    "group_id": "group='…', or App(group='…') for all routes",
    "max_retries": "retry=awoke.Retry(attempts=…)",
    "max_workers": "concurrency=awoke.by_key(…)",
    "response_model": "output='…', and an annotation of the result",
    "sink": "output='…'",
}
"""What awoke has in place of the options of other frameworks."""


def instead_of(name: str) -> str:
    """Returns what is meant by an option that does not exist, as the end of a sentence; empty if that is not known."""
    if name in OF_OTHERS:
        return f": write {OF_OTHERS[name]}"
    near = difflib.get_close_matches(name, RouteOptions.__annotations__, 1)
    return f"; is {near[0]!r} meant?" if near else f"; there are {', '.join(sorted(RouteOptions.__annotations__))}"
