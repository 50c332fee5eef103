"""Both sides of a call: the parts of its request, and its replies as results or errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Annotated, Any, cast

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.errors import ClosedError, ConfigError, DecodeError, EncodeError
from awoke.observe.tracing import Tracer
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc.call_options import OutgoingCall
from awoke.rpc.caller.exchange import KEPT_MAX, CallerForms, Part, Planner, ReplyReader
from awoke.rpc.context import current
from awoke.rpc.errors import KINDS, DeadlineExceeded
from awoke.rpc.protocol import problem_of
from awoke.waiting.clock import monotonic_s
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line
from tests.unit.rpc.caller.fakes import FORMS, planned


class FakeTracer:
    def headers(self, pairs: list[Any]) -> list[Any]:
        return [*pairs, ("traceparent", b"00")]


def planner(*, is_retried: bool = True, tracer: Any = None) -> Planner:
    return Planner(5.0, frozenset({"find"}), is_retried, cast("Tracer | None", tracer), FORMS)


def plan(planner: Planner, method: str = "quote", *args: Any, kwargs: Any = None, **options: Any) -> OutgoingCall:
    return planner.plan(OutgoingCall(method=method, **options), args, kwargs or {})


def requested(call: OutgoingCall) -> tuple[bytes | None, bytes | None]:
    """Returns the keys of its requests."""
    _, _, _, key, idempotency_key, _ = call.request(1.0)
    return key, idempotency_key


@pytest.fixture
def executing() -> Iterator[None]:
    """Within a call whose caller waits for two more seconds."""
    token = current.set(cast(Any, SimpleNamespace(remaining_s=2.0)))
    yield
    current.reset(token)


def test_arguments_are_the_body() -> None:
    assert plan(planner(), "quote", "A1", 2).body == b'["A1",2]'
    assert plan(planner(), kwargs={"sku": "A1"}).body == b'{"sku":"A1"}'


def test_the_time_of_a_call_is_its_own_or_else_the_callers() -> None:
    assert plan(planner()).granted_s == 5.0
    made = plan(planner(), timeout_s=60.0)
    assert made.granted_s == 60.0
    assert 59.0 < made.left_s() <= 60.0
    assert made.until_s <= monotonic_s() + 60.0


@pytest.mark.parametrize(("timeout_s", "late"), [(-1.0, "1 s"), (-0.25, "250 ms"), (0.0, "0 ms")])
def test_a_call_whose_time_is_over_is_not_made(timeout_s: float, late: str) -> None:
    with pytest.raises(DeadlineExceeded, match=f"^quote: its time was over {late} before the call: nothing was sent"):
        plan(planner(), timeout_s=timeout_s)


@pytest.mark.parametrize(("timeout_s", "found_s"), [(None, 2.0), (60.0, 2.0), (0.5, 0.5)])
def test_a_call_within_a_call_waits_no_longer_than_the_outer_one(
    executing: None, timeout_s: float | None, found_s: float
) -> None:
    assert plan(planner(), timeout_s=timeout_s).granted_s == found_s


@pytest.mark.parametrize(
    ("method", "idempotent", "is_idempotent"),
    [("quote", None, False), ("find", None, True), ("find", False, False), ("quote", True, True)],
)
def test_a_call_is_idempotent_if_it_or_the_caller_says_so(
    method: str, idempotent: bool | None, is_idempotent: bool
) -> None:
    made = plan(planner(), method, idempotent=idempotent)
    assert made.is_idempotent is is_idempotent
    assert (made.idempotency_key is not None) is is_idempotent


def test_each_idempotent_call_has_a_key_of_its_own_for_all_its_attempts() -> None:
    first, second = (plan(planner(), "find").idempotency_key for _ in range(2))
    assert first != second


def test_without_retries_no_key_is_needed() -> None:
    made = plan(planner(is_retried=False), "find")
    assert (made.is_idempotent, made.idempotency_key) == (True, None)


def test_the_key_of_the_user_makes_a_call_idempotent() -> None:
    made = plan(planner(is_retried=False), idempotency_key="order 1")
    assert (made.is_idempotent, requested(made)) == (True, (None, b"order 1"))
    assert requested(plan(planner(), idempotency_key=b"\x00")) == (None, b"\x00")


@pytest.mark.parametrize(("key", "found"), [(None, None), ("ä", b"\xc3\xa4"), (b"\x00", b"\x00")])
def test_the_key_of_the_order_is_bytes(key: Any, found: bytes | None) -> None:
    assert requested(plan(planner(), key=key)) == (found, None)


def test_headers_are_those_of_the_user_and_of_the_trace() -> None:
    assert plan(planner()).pairs is None
    assert plan(planner(), headers={"tenant": "a"}).pairs == [("tenant", "a")]
    tracer = FakeTracer()
    assert plan(planner(tracer=tracer)).pairs == [("traceparent", b"00")]
    assert plan(planner(tracer=tracer), headers={"tenant": "a"}).pairs == [("tenant", "a"), ("traceparent", b"00")]


def test_headers_of_the_protocol_are_refused() -> None:
    with pytest.raises(ValueError, match="rpc- belong to the protocol"):
        plan(planner(), headers={"rpc-kind": "cast"})


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("A1",), {"kwargs": {"sku": "A1"}}, TypeError),
        ((object(),), {}, EncodeError),
        ((), {"returns": Planner}, ConfigError),
    ],
    ids=["both", "no JSON", "no result"],
)
def test_a_call_that_can_not_work_is_not_made(arguments: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        plan(planner(), "quote", *arguments, **options)


class Order(msgspec.Struct):
    id: int


ORDERS = awoke.avro(Order)


@pytest.fixture
def forms() -> CallerForms:
    return CallerForms("shop", KnownSchemas())


def test_arguments_are_json_unless_a_format_is_named(forms: CallerForms) -> None:
    assert forms.body("price", (1, "a"), {}, None) == b'[1,"a"]'
    assert forms.body("price", (), {"order": Order(7)}, None) == b'{"order":{"id":7}}'
    assert forms.body("price", (Order(7),), {}, ORDERS) == b"\0\0\0\0\1\x0e"
    assert forms.body("price", (), {"order": Order(7)}, ORDERS) == b"\0\0\0\0\1\x0e"


def test_a_message_of_protobuf_writes_itself(forms: CallerForms) -> None:
    assert forms.body("price", (Line(sku="a"),), {}, None) == b"\n\x01a"
    assert forms.body("price", (), {"line": Line(sku="a")}, Line) == b"\n\x01a"
    with pytest.raises(awoke.EncodeError, match="JSON"):
        forms.body("price", (Line(), 1), {}, None)


def test_a_call_with_a_format_has_one_argument(forms: CallerForms) -> None:
    for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"order": 2}), ((), {"a": 1, "b": 2})):
        with pytest.raises(TypeError, match=f"exactly one argument, {len(args) + len(kwargs)} were given"):
            forms.body("price", args, kwargs, ORDERS)
    with pytest.raises(awoke.ConfigError, match=r"argument=.* is no format"):
        forms.body("price", (1,), {}, Order)


def test_results_are_json_unless_a_format_is_named(forms: CallerForms) -> None:
    assert forms.reader("price", Order)(b'{"id":7}') == Order(7)
    for returns in (awoke.msgpack(Order), Annotated[Order, awoke.msgpack(Order)]):
        assert forms.reader("price", returns)(b"\x81\xa2id\x07") == Order(7)
    assert forms.reader("price", Line)(b"\n\x01a") == Line(sku="a")
    with pytest.raises(awoke.ConfigError, match="returns="):
        forms.reader("price", complex)


def test_each_method_has_a_subject_of_its_own() -> None:
    schemas = KnownSchemas()
    forms = CallerForms("shop", schemas)
    for method in ("price", "price", "quote"):
        forms.body(method, (Order(7),), {}, ORDERS)
    assert schemas.subjects == ["shop.rpc.calls.price-value", "shop.rpc.calls.quote-value"], "the writer is kept"


def test_formats_that_are_made_for_each_call_do_not_pile_up() -> None:
    schemas = KnownSchemas()
    forms, before = CallerForms("shop", schemas), len(schemas._kept)
    for _ in range(2 * KEPT_MAX):
        forms.body("price", (Order(7),), {}, awoke.avro(Order))
    assert len(schemas._kept) - before <= KEPT_MAX + 1


class Missing(KnownSchemas):
    """A schema is missing until it was loaded."""

    loaded = 0

    def for_writing(self, *wanted: Any) -> Any:
        if not self.loaded:
            raise SchemaNeeded("not yet", self.load)
        return super().for_writing(*wanted)

    def load(self) -> None:
        self.loaded += 1


def test_a_schema_that_is_missing_is_loaded_on_a_thread_and_not_on_a_loop() -> None:
    schemas = Missing()
    forms = CallerForms("shop", schemas)

    async def on_loop() -> None:
        with pytest.raises(SchemaNeeded):
            forms.body("price", (Order(7),), {}, ORDERS)

    asyncio.run(on_loop())
    assert schemas.loaded == 0
    assert forms.body("price", (Order(7),), {}, ORDERS) == b"\0\0\0\0\1\x0e"
    assert schemas.loaded == 1


def test_only_a_client_of_its_own_is_closed() -> None:
    closed: list[str] = []

    class Closing(Schemas):
        def close(self, timeout_s: float | None = None) -> None:
            closed.append("closed")

    schemas = Closing(lambda: None)  # type: ignore[arg-type, return-value]
    CallerForms("shop", schemas).close()
    assert closed == []
    CallerForms("shop", schemas, is_own=True).close()
    assert closed == ["closed"]


class Money(msgspec.Struct):
    amount: float


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


READER = ReplyReader("shop", {**KINDS, OutOfStock.code: OutOfStock}, FORMS)


def error_in(part: Part) -> rpc.RpcError:
    with pytest.raises(rpc.RpcError) as raised:
        READER.read(planned(2.5), part)
    return raised.value


@pytest.mark.parametrize(
    ("body", "returns", "result"),
    [
        (b'{"amount":2}', Any, {"amount": 2}),
        (b'{"amount":2}', Money, Money(2.0)),
        (b"null", None, None),
        (b'"text"', str, "text"),
    ],
)
def test_a_reply_is_read_as_what_was_asked_for(body: bytes, returns: Any, result: Any) -> None:
    assert READER.read(planned(returns=returns), ("reply", body, None)) == result
    assert READER.read_item(planned(returns=returns), ("item", body, None)) == result


@pytest.mark.parametrize(
    ("body", "returns", "named"),
    [(b"{", Any, "JSON"), (b'"a"', int, "int"), (b'"\xff"', Any, "JSON"), (b"[" * 100_000, Any, "JSON")],
    ids=["no JSON", "another type", "no text", "too deep"],
)
def test_a_reply_that_can_not_be_read_names_method_and_type(body: bytes, returns: Any, named: str) -> None:
    with pytest.raises(DecodeError, match=rf"shop\.quote can't be read as .*{named}"):
        READER.read(planned(returns=returns), ("reply", body, None))


def test_a_stream_is_not_one_result() -> None:
    for kind in ("item", "end"):
        with pytest.raises(rpc.InvalidArgument, match=r"shop\.quote returns a stream .* use stream"):
            READER.read(planned(), (kind, b"1", None))


def test_an_error_comes_with_all_that_the_responder_says() -> None:
    problem = rpc.ResourceExhausted("busy", details={"queue": 7}, retry_after_s=1.5)
    error = error_in(("error", problem_of(problem, "a trace", is_rejected=True), None))
    assert type(error) is rpc.ResourceExhausted
    assert (error.message, error.details, error.retry_after_s) == ("busy", {"queue": 7}, 1.5)
    assert (error.is_rejected, error.is_retryable, error.remote_traceback) == (True, True, "a trace")


def test_a_code_of_the_service_has_the_class_that_the_caller_knows() -> None:
    assert type(error_in(("error", b'{"code":"out_of_stock","message":"none"}', None))) is OutOfStock
    unknown = error_in(("error", b'{"code":"sold","message":"none"}', None))
    assert (type(unknown), unknown.code) == (rpc.RpcError, "sold")


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_an_error_that_can_not_be_read_is_internal(body: bytes) -> None:
    error = error_in(("error", body, None))
    assert type(error) is rpc.Internal
    assert "shop.quote: its error can't be read" in error.message


def test_a_call_that_ends_at_its_deadline_tells_its_time() -> None:
    error = error_in(("failed", "deadline_exceeded", ""))
    assert type(error) is rpc.DeadlineExceeded
    assert error.message == "shop.quote: no reply within 2.5 s; it may still be executed"


def test_a_closed_caller_is_no_error_of_the_service() -> None:
    with pytest.raises(ClosedError, match=r"shop\.quote: this caller is closed"):
        READER.read(planned(), ("failed", "closed", "this caller is closed"))


def test_without_a_responder_the_other_group_is_named() -> None:
    error = error_in(("failed", "nobody_there", "the group has no member"))
    assert type(error) is rpc.NobodyThere
    assert "say so with group=" in error.message


def test_a_full_caller_is_not_worth_another_try() -> None:
    full = error_in(("failed", "resource_exhausted", "too many"))
    assert (type(full), full.is_retryable) == (rpc.ResourceExhausted, False)
    gone = error_in(("failed", "unavailable", "no broker"))
    assert (type(gone), gone.is_retryable) == (rpc.Unavailable, True)
