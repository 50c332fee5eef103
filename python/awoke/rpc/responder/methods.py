"""The methods of a service: by exact name, with typed arguments that are checked before they are called."""

from __future__ import annotations

import inspect
import keyword
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import msgspec

from awoke.declare.handlers import check_ran, kind_of
from awoke.declare.injection.sources import is_marked
from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError, RpcError, end_in
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc import forms
from awoke.rpc.call_options import CALLER_WORDS
from awoke.rpc.context import current
from awoke.rpc.errors import KINDS, Internal, InvalidArgument
from awoke.rpc.protocol import METHODS
from awoke.rpc.responder.method_values import Arguments, MethodForms, check_result
from awoke.text.printable import text_of
from awoke.text.secrets import shown_fields, shown_repr

Function = TypeVar("Function", bound=Callable[..., Any])

NO_SCHEMAS = Schemas.none()

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a service: `app.rpc.options(…)`."""

    mode: Literal["at_most_once", "at_least_once", "exactly_once"] = "at_least_once"
    """A call whose responder dies is not executed again; is executed again; or its reply, the messages that it sent
    and its offset are one transaction."""
    threads: int = 8
    """Most calls of `def` methods that run at once in each process."""
    tasks: int = 1_000
    """Most calls of `async def` methods that run at once in each process."""
    waiting_max: int = 1_000
    """Most calls that wait in a process for a thread, a task, or their method; more are rejected."""
    waiting_bytes_max: int = 64 * 1024 * 1024
    """Most bytes of their requests."""
    queue_time_share_max: float = 0.5
    """A call that has spent more than this share of its caller's time in queues is rejected, so that others are in
    time."""
    retry_after_s: float = 0.1
    """Delay that the caller of a rejected call is told to wait before the next attempt."""
    clock_skew_s: float = 0.0
    """Tolerated clock skew: a call expires this long after its deadline."""
    timeout_max_s: float = 3_600.0
    """A call whose deadline is farther away is rejected."""
    credit_wait_s: float = 300.0
    """The longest time that a stream waits for its caller to take more results; then it is cut off. At most half of the
    threads, and half of the tasks, wait so."""
    request_bytes_max: int = 1024 * 1024
    """A larger request is refused before it is decoded."""
    reply_topics: tuple[str, ...] = ()
    """Topics that replies may go to, beside the service's own."""
    partitions: int = 1
    """Number of partitions of new topics."""
    secret: bytes | None = None
    """The key of signatures: requests must be signed with it, and replies are."""
    tracebacks: bool = False
    """True if callers get the text and traceback of an unexpected exception."""
    results_max: int = 10_000
    """Most results that are kept for repeated calls with the same idempotency key."""
    results_bytes_max: int = 64 * 1024 * 1024
    """Most bytes of these results."""
    results_ttl_s: float = 300.0
    """Time that they are kept."""

    def __post_init__(self) -> None:
        for name in ("threads", "tasks", "waiting_max", "waiting_bytes_max", "partitions", "request_bytes_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"rpc option {name!r}: must be at least 1, not {getattr(self, name)}", name)
        for name in ("retry_after_s", "clock_skew_s", "results_max", "results_bytes_max", "results_ttl_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"rpc option {name!r}: must not be negative, but is {getattr(self, name)}", name)
        if not 0 < (share := self.queue_time_share_max) <= 1:
            text = f"rpc option 'queue_time_share_max': must be more than 0 and at most 1, not {share}"
            raise ConfigError(text, "queue_time_share_max")
        for name in ("timeout_max_s", "credit_wait_s"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"rpc option {name!r}: must be more than 0, not {getattr(self, name)}", name)
        if self.secret is not None and not self.secret:
            raise ConfigError("rpc option 'secret': must not be empty", "secret")

    def __repr__(self) -> str:
        return shown_repr(self, self.__struct_fields__)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return shown_fields(self, self.__struct_fields__)


class Method:
    """One method of a service."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        is_idempotent: bool,
        concurrency: int | None,
        callers: frozenset[str] | None,
        deadline_s: float | None,
    ) -> None:
        self.function = function
        self.name = name
        self.is_idempotent = is_idempotent
        self.concurrency = concurrency
        """Most of its calls that run at once in a process; None for no limit of its own."""
        self.callers = callers
        """The callers that may call it; None for all."""
        self.deadline_s = deadline_s
        """Time that a call may run, whatever its caller grants; None for no limit of its own."""
        if not callable(function) or isinstance(function, type):
            raise ConfigError(f"an rpc method is a function, not {function!r}", "method")
        kind = kind_of(function)
        self.is_async = kind.startswith("async")
        """True if it runs on the event loop."""
        self.is_stream = kind.endswith("generator")
        """True if it gives several results."""
        self._arguments: Arguments | None = None
        self._forms = MethodForms(name, None, None)
        self.is_json = False
        """True if its arguments and its results are JSON, as `prepare` finds: no schema is needed for them."""
        self._check()

    def name_forms(self, argument: Any, returns: Any) -> None:
        """Says the formats of the argument and of the result; None: the annotations say them. Called before `prepare`.

        Raises:
            ConfigError: One is no format.
        """
        self._forms = MethodForms(self.name, forms.checked(argument, "argument"), forms.checked(returns, "returns"))

    @property
    def argument_form(self) -> Any:
        """The format of its only argument; None: JSON."""
        return self._forms.argument

    @property
    def result_form(self) -> Any:
        """The format of its results; None: JSON."""
        return self._forms.result

    def prepare(self, service: str = "", schemas: Schemas = NO_SCHEMAS, *, is_early: bool = False) -> None:
        """Reads its annotations. If it `is_early`, a name that does not exist yet is left for later.

        Raises:
            ConfigError: JSON can't be read as the type of a parameter, or the results can't be written as JSON; a
            format is not that of the only parameter, or contradicts its annotation.
        """
        self._arguments = None
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
            names = list(signature_of(self.function).parameters)
            for name in names:
                if is_marked(hints.get(name)):
                    text = f"rpc method {self.name!r}: parameter {name!r}: callers give all arguments of a method"
                    raise ConfigError(f"{text}; Depends, Header and the like are for handlers of routes", "method")
            result = self._result_hint(hints.pop("return", Any))
            self._prepare_forms({name: hints.get(name, Any) for name in names}, result)
            is_json = self.argument_form is None
            self._arguments = Arguments(self.function, hints if is_json else {})
            self.is_json = is_json and self.result_form is None
            if self.result_form is None:
                check_result(self.function, result, False)
            if not is_early:
                self._forms.open(service, schemas)
        except (TypeError, NameError, ValueError, msgspec.MsgspecError) as error:
            if is_early and isinstance(error, NameError):
                return
            what = "parameters can't be read from JSON" if self._arguments is None else "result can't be sent"
            raise ConfigError(f"rpc method {self.name!r}: its {what}: {error}", "method") from None

    def _prepare_forms(self, parameters: Mapping[str, Any], result: Any) -> None:
        try:
            self._forms.prepare(parameters, result)
        except TypeError as error:
            raise ConfigError(f"rpc method {self.name!r}: {error}", "method") from None

    def arguments(self, body: bytes) -> dict[str, Any]:
        """Returns a request's body as named arguments.

        Raises:
            InvalidArgument: one is missing, unknown, or of a wrong kind; names it.
        """
        assert self._arguments is not None
        try:
            if not self.is_json and self.argument_form is not None:
                return self._forms.read(body)
            return self._arguments.read(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidArgument(f"{self.name}: {error}", details={"method": self.name}) from None

    def check_result_loaded(self) -> None:
        """Checks that a result can be written at once, as far as is known before there is one.

        Raises:
            SchemaNeeded: A schema is not loaded yet.
        """
        self._forms.check_loaded()

    def written(self, result: Any) -> bytes:
        """Returns a result as a body, in the format of the method.

        Raises:
            Internal: It does not fit. HandlerDidNotRun: It is a coroutine, another awaitable or a generator.
            SchemaNeeded: A schema is not loaded yet.
        """
        if result is not None:
            check_ran(result, self.name)
        return self._forms.write(result)

    def describe(self) -> dict[str, Any]:
        """Returns its description for callers."""
        signature = described(inspect.signature(self.function, eval_str=True))
        return {
            "name": self.name,
            "signature": f"{self.name}{signature}",
            "doc": inspect.getdoc(self.function) or "",
            "is_idempotent": self.is_idempotent,
            "is_stream": self.is_stream,
            "result_type": self._result_type(signature.return_annotation),
            "argument_format": forms.name_of(self.argument_form),
            "result_format": forms.name_of(self.result_form),
        }

    def _result_type(self, hint: Any) -> str:
        """Names the type of the result, or of each result of a stream: `Iterator[Line]` gives `Line`."""
        if hint is not inspect.Signature.empty:
            hint = forms.plain(self._result_hint(hint))
        return "Any" if hint is inspect.Signature.empty else inspect.formatannotation(hint)

    def _result_hint(self, hint: Any) -> Any:
        """Returns the annotation of one result."""
        return (typing.get_args(hint) or (Any,))[0] if self.is_stream else hint

    def _check(self) -> None:
        if not NAME.fullmatch(self.name) or keyword.iskeyword(self.name):
            raise ConfigError(f"rpc method {self.name!r}: is no name for a method", "method")
        if self.concurrency is not None and self.concurrency < 1:
            raise ConfigError(f"rpc method {self.name!r}: concurrency must be at least 1", "concurrency")
        if self.deadline_s is not None and self.deadline_s <= 0:
            raise ConfigError(f"rpc method {self.name!r}: deadline_s must be more than 0", "deadline_s")
        for parameter in signature_of(self.function).parameters.values():
            problem = None
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                problem = "arguments come by their names: no *args, no **kwargs, nothing that has a place only"
            elif parameter.name in CALLER_WORDS:
                problem = "that is a word of the caller's; give it another name"
            if problem is not None:
                raise ConfigError(f"rpc method {self.name!r}, parameter {parameter.name!r}: {problem}", "method")


class Hidden:
    """Stands for a default value that callers are not told: it may be a secret."""

    def __repr__(self) -> str:
        return "..."


def described(signature: inspect.Signature) -> inspect.Signature:
    """Returns a signature that shows which parameters have a default, and not which; without the formats."""
    parameters = [each.replace(annotation=forms.plain(each.annotation)) for each in signature.parameters.values()]
    hidden = [each if each.default is each.empty else each.replace(default=Hidden()) for each in parameters]
    return signature.replace(parameters=hidden, return_annotation=forms.plain(signature.return_annotation))


class Rpc:
    """The methods of an app's service: `app.rpc`."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.methods: dict[str, Method] = {}
        self.reads_from = ("earliest", 0)
        """Where calls are read from, where no offset is committed. Tests set it."""
        self.reads_partitions: Sequence[int] | None = None
        """The partitions that each process reads by itself; None: those that its group assigns. The console sets it."""
        self.settings = Options()
        self._mapped: dict[type[Exception], type[RpcError] | str] = {}

    @overload
    def method(self, function: Function, /) -> Function: ...

    @overload
    def method(
        self,
        /,
        *,
        name: str | None = None,
        idempotent: bool = False,
        concurrency: int | None = None,
        callers: Iterable[str] | None = None,
        deadline_s: float | None = None,
        argument: Any = None,
        returns: Any = None,
    ) -> Callable[[Function], Function]: ...

    def method(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        idempotent: bool = False,
        concurrency: int | None = None,
        callers: Iterable[str] | None = None,
        deadline_s: float | None = None,
        argument: Any = None,
        returns: Any = None,
    ) -> Function | Callable[[Function], Function]:
        """Serves the decorated function, `def` or `async def`, under its name. A generator gives its results one by
        one.

        Arguments are read as its annotations say and checked before it is called. `idempotent` says that it may be
        executed twice. At most `concurrency` of its calls run at once in a process. Of callers, only those named in
        `callers` may call it. It may run for `deadline_s`, or for as long as its caller waits. `argument` and `returns`
        are formats, as `awoke.avro(Order)`, of its only argument and of its result, or of each result of a stream. An
        annotation says the same: `Annotated[Order, awoke.avro(Order)]`. A class of protobuf's is its own format.

        Raises:
            ConfigError: the name is taken, an option is out of range, or a format does not fit the function.
        """

        def decorate(function: Function) -> Function:
            allowed = None if callers is None else frozenset([callers] if isinstance(callers, str) else callers)
            own_name = str(getattr(function, "__name__", function))
            method = Method(function, name or own_name, idempotent, concurrency, allowed, deadline_s)
            method.name_forms(argument, returns)
            method.prepare(is_early=True)
            self._add(method)
            return function

        return decorate if function is None else decorate(function)

    def options(self, **options: Any) -> None:
        """Sets options of the service: see `awoke.rpc.Options`.

        Raises:
            ConfigError: an option does not exist or is out of range.
        """
        merged = {**{name: getattr(self.settings, name) for name in Options.__struct_fields__}, **options}
        try:
            self.settings = msgspec.convert(merged, Options)
        except msgspec.ValidationError as error:
            raise ConfigError(f"rpc options: {error}", "rpc") from None

    def map_error(self, kind: type[Exception], to: type[RpcError] | str) -> None:
        """Maps an exception, and those that derive from it, to an error or code for callers. Its message is kept.

        Raises:
            ConfigError: neither an exception, nor an error or a code.
        """
        is_code = isinstance(to, str) or (isinstance(to, type) and issubclass(to, RpcError))
        if not (isinstance(kind, type) and issubclass(kind, Exception) and is_code):
            raise ConfigError(f"rpc: {kind!r} can't be mapped to {to!r}", "map_error")
        self._mapped[kind] = to

    def error_of(self, error: BaseException) -> RpcError:
        """Returns the error for callers of an exception."""
        if isinstance(error, RpcError):
            return error
        if end_in(error) is not None:
            return Internal("the responder ends")
        text = text_of(error)
        for kind in type(error).__mro__:
            to = self._mapped.get(kind)
            if to is None:
                continue
            if isinstance(to, str):
                found = KINDS.get(to, RpcError)(text)
                found.code = to
                return found
            try:
                return to(text)
            except Exception:  # A class that takes other arguments: the caller is to get an answer all the same.
                break
        words = f": {text}" if self.settings.tracebacks else "; the service's log says more"
        return Internal(f"{type(error).__name__}{words}")

    def prepare(self, schemas: Schemas = NO_SCHEMAS) -> None:
        """Reads all annotations. The formats get their schemas from these.

        Raises:
            ConfigError: see `Method.prepare`.
        """
        if METHODS not in self.methods:
            # A plain method would need a thread beside the event loop of the others.
            is_async = bool(self.methods) and all(method.is_async for method in self.methods.values())
            self._add(Method(self._adescribe if is_async else self._describe, METHODS, True, None, None, None))
        for method in self.methods.values():
            method.prepare(self.service, schemas)

    def _describe(self) -> list[Mapping[str, Any]]:
        """Describes the methods that the caller may call."""
        call = current.get()
        caller = "" if call is None else call.caller
        visible = (method for name, method in sorted(self.methods.items()) if name != METHODS)
        return [method.describe() for method in visible if method.callers is None or caller in method.callers]

    async def _adescribe(self) -> list[Mapping[str, Any]]:
        """As `_describe`."""
        return self._describe()

    def _add(self, method: Method) -> None:
        if method.name in self.methods:
            raise ConfigError(f"rpc method {method.name!r}: the service has one of this name", "method")
        self.methods[method.name] = method
