"""Common mistakes: each ends in one message with fault, place and remedy, without a traceback or silence."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastapi
import msgspec
import pytest

import awoke
from awoke.rpc import Caller
from awoke.testing import EmbeddedCluster, call, run_route, running
from tests.support.clusters import Cluster, unique
from tests.support.processes import Process
from tests.support.waiting import WITHIN_S

NOWHERE = "127.0.0.1:1"


def handle(message: awoke.Message[bytes]) -> None:
    """A handler without a fault."""


def new_app(**settings: Any) -> awoke.App:
    return awoke.App("app", **settings)


def route(**options: Any) -> Callable[[], object]:
    """A route with wrong options."""
    return lambda: new_app().on("orders", **options)(handle)


def handler(function: Any) -> Callable[[], object]:
    """A route whose handler is wrong."""
    return lambda: new_app().on("orders")(function)


def consumer(target: Any, **options: Any) -> Callable[[], object]:
    """A route whose class is wrong."""
    return lambda: new_app().consumer("orders", **options)(target)


def settings(**wrong: Any) -> Callable[[], object]:
    """An app with a wrong setting, loaded as the start loads it."""

    def load() -> None:
        new_app(**wrong).load_settings().check_member()

    return load


def start(
    bootstrap_servers: str = NOWHERE, topic: str = "orders", within_s: float = 0.5, **more: Any
) -> Callable[[], object]:
    """An app that can't start. Where brokers are to answer, `within_s` leaves them time."""

    def run() -> None:
        app = new_app(bootstrap_servers=bootstrap_servers, startup_timeout_s=within_s, **more)
        app.on(topic)(handle)
        runner = awoke.AppRunner(app)
        try:
            runner.start()
        finally:
            runner.stop()

    return run


def start_embedded(kafka: dict[str, str | int]) -> Callable[[], object]:
    """An app whose brokers are there, and that can't start."""

    def run() -> None:
        with EmbeddedCluster() as cluster:
            cluster.create_topic("orders")
            start(cluster.bootstrap_servers, within_s=WITHIN_S, kafka=kafka)()

    return run


def generator(message: awoke.Message[bytes]) -> Iterator[int]:
    yield 1


async def async_generator(message: awoke.Message[bytes]) -> AsyncIterator[int]:
    yield 1


class NoConsume(awoke.Consumer):
    """Forgot `consume`."""


class Plain:
    """Forgot to derive."""

    def consume(self, batch: awoke.Batch[bytes]) -> None: ...


def no_route() -> None:
    awoke.AppRunner(new_app()).start()


def two_routes() -> None:
    app = new_app()
    app.on("orders")(handle)
    app.on("orders")(handle)


class Unencodable:
    """Nothing that JSON knows."""


class Order(msgspec.Struct):
    """The value that the handler takes."""

    id: int


class Mistake(NamedTuple):
    """A mistake, and the words that its message must have."""

    name: str
    make: Callable[[], object]
    words: tuple[str, ...]


MISTAKES = [
    Mistake("an option that does not exist", route(retrys=3), ("orders", "retrys")),
    Mistake("a number of tries", route(retry=3), ("retry", "Retry", "3")),
    Mistake("a weight in words", route(weight="heavy"), ("weight", "heavy")),
    Mistake("no weight", route(weight=0), ("weight", "whole number from 1")),
    Mistake("a number for concurrency", route(concurrency=16), ("concurrency", "by_key(16)")),
    Mistake("a number for a batch", route(batch=100), ("batch", "Batching")),
    Mistake("a number for the flow", route(flow=5), ("flow", "Flow")),
    Mistake("a type that JSON can't be read as", route(value=lambda: None), ("orders", "value")),
    Mistake("a class of no fields as a type", route(value=Unencodable), ("orders", "Unencodable")),
    Mistake("its own dead letter topic", route(dead_letter="orders"), ("orders", "dead letter")),
    Mistake("its own output", route(output="orders"), ("orders", "output")),
    Mistake("order without an output", route(ordered=True), ("ordered", "output")),
    Mistake("exactly once without an output", route(exactly_once=True), ("exactly_once", "output")),
    Mistake("no time for a job", route(max_processing_s=0), ("max_processing_s", "more than 0")),
    Mistake("no jobs", route(jobs_max=0), ("jobs_max", "whole number from 1")),
    Mistake("a start in words", route(start="now"), ("starts at", "now")),
    Mistake("a start without a time zone", route(start=datetime(2026, 1, 1)), ("starts at", "time zone")),
    Mistake("a back-off of one number", lambda: awoke.Retry(backoff_s=1), ("backoff_s", "1")),  # type: ignore[arg-type]
    Mistake("no attempts", lambda: awoke.Retry(attempts=0), ("attempts", "whole number from 1")),
    Mistake("one exception", lambda: awoke.Retry(on=ValueError), ("Retry", "on")),  # type: ignore[arg-type]
    Mistake(
        "an unknown end",
        lambda: awoke.Retry(on_exhausted="explode"),  # type: ignore[arg-type]
        ("on_exhausted", "explode"),
    ),
    Mistake("no messages in a batch", lambda: awoke.Batching(max_messages=0), ("max_messages", "whole number from 1")),
    Mistake(
        "a batch of words",
        lambda: awoke.Batching(max_messages="many"),  # type: ignore[arg-type]
        ("max_messages",),
    ),
    Mistake("no rate", lambda: awoke.Flow(per_s=0), ("per_s", "more than 0")),
    Mistake("no jobs of a partition", lambda: awoke.by_key(0), ("jobs", "0")),
    Mistake("less in flight than jobs", lambda: awoke.by_key(16, in_flight=4), ("in_flight", "4")),
    Mistake("the name of a field", lambda: awoke.by("customer"), ("by()", "function")),  # type: ignore[arg-type]
    Mistake("no name", lambda: awoke.App(""), ("app", "name")),
    Mistake("a setting that does not exist", settings(worker=4), ("worker", "workers")),
    Mistake("workers in words", settings(workers="eight"), ("workers", "eight")),
    Mistake("a port beyond the last", settings(metrics_port=70_000), ("metrics_port", "70000")),
    Mistake("a negative time", settings(commit_interval_s=-1.0), ("commit_interval_s", "-1")),
    Mistake("a property that does not exist", start(kafka={"no.such": 1}), ("no.such",)),
    Mistake("a property in words", start(kafka={"linger.ms": "soon"}), ("linger.ms", "soon")),
    Mistake("a property that is awoke's", start_embedded({"enable.auto.commit": "true"}), ("enable.auto.commit",)),
    Mistake("a property that runs code", start(kafka={"plugin.library.paths": "/x"}), ("plugin.library.paths",)),
    Mistake("a revocation longer than the poll interval", settings(revoke_timeout_s=400.0), ("revoke_timeout_s",)),
    Mistake("@app.on without parentheses", lambda: new_app().on(handle), ("on", "topic")),  # type: ignore[arg-type]
    Mistake("a generator", handler(generator), ("generator", "yield")),
    Mistake("an async generator", handler(async_generator), ("async_generator", "yield")),
    Mistake("a handler of nothing", handler(lambda: None), ("parameter", "message")),
    Mistake("a handler of two", handler(lambda message, more: None), ("parameter", "message")),
    Mistake("no function", handler("handle"), ("function", "handle")),
    Mistake("a class without consume", consumer(NoConsume), ("NoConsume", "consume")),
    Mistake("a class that does not derive", consumer(Plain), ("Plain", "awoke.Consumer")),
    Mistake("a function as a class", consumer(handle), ("handle", "awoke.Consumer")),
    Mistake("unknown offsets", consumer(Plain, offsets="none"), ("awoke.Consumer",)),
    Mistake("two routes of a topic", two_routes, ("orders", "route already")),
    Mistake("no route", no_route, ("no route", "@app.on")),
    Mistake("no topic", lambda: new_app().on("")(handle), ("topic", "''")),
    Mistake("a topic that no broker takes", lambda: new_app().on("or ders")(handle), ("or ders", "topic")),
    Mistake("brokers that are away", start(), (NOWHERE, "answered")),
    Mistake("an address without a port", start("localhost:kafka"), ("localhost:kafka",)),
    Mistake(
        "a certificate that is not there",
        start(kafka={"security.protocol": "ssl", "ssl.ca.location": "/none"}),
        ("/none",),
    ),
    Mistake(
        "a mechanism that does not exist", start(kafka={"security.protocol": "sasl_ssl", "sasl.mechanism": "X"}), ("X",)
    ),
]


def method() -> None:
    """A handler within a class."""
    app = new_app()

    class Shop:
        @app.on("orders")
        def charge(self, message: awoke.Message[bytes]) -> None: ...


def of_list() -> None:
    """A class whose batch is annotated as a list."""

    class Charge(awoke.Consumer):
        def consume(self, orders: list[Order]) -> None: ...

    new_app().consumer("orders")(Charge)


def foreign_mark() -> None:
    """The `Depends` of another library."""

    def charge(message: awoke.Message[bytes], session: Any = fastapi.Depends(handle)) -> None: ...  # noqa: B008

    new_app().on("orders")(charge)


def called_depends() -> None:
    """What a function returns, in place of the function."""
    awoke.Depends({})  # type: ignore[arg-type]


def two_types() -> None:
    """A value that is not what the route says."""

    def charge(order: Order) -> None: ...

    new_app().on("orders", value=int)(charge)


def in_event_loop(call: Callable[[awoke.App], object]) -> Callable[[], object]:
    """A call that would block the event loop of its thread."""

    async def run() -> None:
        app = new_app()

        async def charge(message: awoke.Message[bytes]) -> None: ...

        app.on("orders")(charge)
        call(app)

    return lambda: asyncio.run(run())


def while_it_runs(call: Callable[[awoke.App, str], object]) -> Callable[[], object]:
    """A call of an app that runs."""

    def run() -> None:
        with EmbeddedCluster() as cluster:
            cluster.create_topic("orders")
            app = new_app(bootstrap_servers=cluster.bootstrap_servers)
            app.on("orders")(handle)
            with running(app):
                call(app, cluster.bootstrap_servers)

    return run


def run_again(app: awoke.App, _: str) -> None:
    """Run an app a second time, as its own handler might."""
    thread = ThreadPoolExecutor(1)
    try:
        thread.submit(app.run).result(WITHIN_S)
    finally:
        thread.shutdown()


def name_of_no_topic(read: Callable[[str], object]) -> Callable[[], object]:
    """Reads a topic whose name Kafka forbids, on brokers that are there."""

    def run() -> None:
        with EmbeddedCluster() as cluster:
            read(cluster.bootstrap_servers)

    return run


def describe(bootstrap_servers: str) -> None:
    with awoke.Admin(bootstrap_servers) as admin:
        admin.describe_topic("or ders")


def coroutine() -> None:
    """A `def` that calls an `async def` and forgets to await it."""

    async def pay() -> None: ...

    def charge(message: awoke.Message[bytes]) -> object:
        return pay()

    call(charge, b"")


def other_result() -> None:
    """A function annotated as int returns text."""
    app = new_app()

    def count(message: awoke.Message[bytes]) -> int:
        return "5"  # type: ignore[return-value]

    app.on("orders", output="counts")(count)
    (failed,) = run_route(app, "orders", [b""], limit_s=0).failures[:1]
    raise failed.error


async def async_function() -> None:
    """Nothing of a plain function."""


HABITS = [
    Mistake("a method as a handler", method, ("Shop.charge", "'self' would get the message", "shop.handle")),
    Mistake("a list in place of a batch", of_list, ("Charge.consume", "'orders'", "list", "awoke.Batch")),
    Mistake("FastAPI's Depends", foreign_mark, ("charge", "'session'", "fastapi", "use awoke.Depends")),
    Mistake("Depends of a result", called_depends, ("Depends takes a function", "Depends(session)")),
    Mistake("two types of one value", two_types, ("value=int", "charge", "Order", "the same in both")),
    Mistake("a result of another type", other_result, ("count returned a str", "annotation says int")),
    Mistake("a coroutine that nothing awaits", coroutine, ("charge returned a coroutine", "Make", "async def")),
    Mistake("app.run() in an event loop", in_event_loop(lambda app: app.run()), ("event loop", "app.serving()")),
    Mistake("a second run of an app", while_it_runs(run_again), ("runs in this process already", "another App")),
    Mistake(
        "a second runner of an app",
        while_it_runs(lambda app, _: awoke.AppRunner(app).start()),
        ("runs in this process already", "stop the first"),
    ),
    Mistake(
        "settings of an app that runs",
        while_it_runs(lambda app, _: app.use(workers=3)),
        ("runs already", "workers", "before its run"),
    ),
    Mistake(
        "a reader of no topic's name",
        name_of_no_topic(lambda servers: awoke.Reader("or ders", bootstrap_servers=servers)),
        ("'or ders'", "letters", "249"),
    ),
    Mistake("no topic's name", name_of_no_topic(describe), ("'or ders'", "letters", "249")),
]
"""What was accepted and did the wrong thing, or was told wrongly."""

OF_OTHERS = [
    Mistake("FastStream's group_id", route(group_id="g"), ("orders", "group_id", "group=")),
    Mistake("FastStream's max_workers", route(max_workers=10), ("orders", "max_workers", "awoke.by_key")),
    Mistake("FastStream's auto_offset_reset", route(auto_offset_reset="latest"), ("auto_offset_reset", "start=")),
    Mistake("Celery's max_retries", route(max_retries=3), ("orders", "max_retries", "awoke.Retry(attempts=")),
    Mistake("Celery's autoretry_for", route(autoretry_for=(OSError,)), ("autoretry_for", "awoke.Retry(on=")),
    Mistake("FastAPI's response_model", route(response_model=Order), ("response_model", "output=")),
    Mistake("Faust's sink", route(sink=[print]), ("orders", "sink", "output=")),
    Mistake("a misspelt option", route(dead_leter="x"), ("dead_leter", "is 'dead_letter' meant?")),
    Mistake("async def before a fork", lambda: new_app().before_fork(async_function), ("before_fork", "use def")),
    Mistake(
        "an async subscriber",
        lambda: new_app().events.subscribe("app.started", async_function),  # type: ignore[arg-type]
        ("app.started", "async def", "use def"),
    ),
    Mistake(
        "a start-up function with an argument",
        lambda: new_app().on_startup(handle),  # type: ignore[type-var]
        ("on_startup", "without arguments"),
    ),
    Mistake(
        "an async handler that a test calls in its event loop",
        in_event_loop(lambda app: call(app, b"")),
        ("acall",),
    ),
]
"""What people write who know another framework: see the questions about FastStream, Celery, Faust, pytest-asyncio."""


@pytest.mark.parametrize("mistake", [*MISTAKES, *HABITS, *OF_OTHERS], ids=lambda mistake: mistake.name)
def test_a_mistake_in_code_is_one_message(mistake: Mistake) -> None:
    with pytest.raises(awoke.AwokeError) as raised:
        mistake.make()
    said = str(raised.value)
    assert len(said.splitlines()) == 1, said
    assert [word for word in mistake.words if word not in said] == [], said


def test_a_topic_that_does_not_exist_is_named_with_the_way_to_make_it(cluster: Cluster) -> None:
    name = unique("missing")
    with pytest.raises(awoke.AwokeError) as raised:
        start(cluster.bootstrap_servers, name, WITHIN_S)()
    assert f"awoke topics create {name}" in str(raised.value)


def test_a_service_that_is_not_there_is_named(cluster: Cluster) -> None:
    with pytest.raises(awoke.AwokeError, match="no-such-service"):
        Caller("no-such-service", bootstrap_servers=cluster.bootstrap_servers)


class Shell(NamedTuple):
    """A mistake at the shell, and the words that its message must have."""

    name: str
    arguments: tuple[str, ...]
    words: tuple[str, ...]
    env: dict[str, str] = {}
    source: str = ""
    """A module `mistaken` that stands on the path."""


APP = "import awoke\napp = awoke.App('app', bootstrap_servers='127.0.0.1:1', startup_timeout_s=0.5)\n"
ROUTE = "@app.on('orders')\ndef handle(message): ...\n"
SHELL = [
    Shell("no such module", ("run", "nowhere:app"), ("nowhere", "no module")),
    Shell("no such app", ("run", "mistaken:other"), ("other", "mistaken"), source=APP),
    Shell("no app at all", ("run", "mistaken:awoke"), ("awoke",), source=APP),
    Shell("no colon", ("run", "mistaken"), ("module:app",), source=APP),
    Shell("a syntax error", ("run", "mistaken:app"), ("mistaken.py", "line 3"), source=APP + "def (:\n"),
    Shell(
        "an error of the module", ("run", "mistaken:app"), ("mistaken", "no_such_name"), source=APP + "no_such_name\n"
    ),
    Shell(
        "workers in words", ("run", "mistaken:app", "--workers", "eight"), ("--workers", "integer"), source=APP + ROUTE
    ),
    Shell(
        "a variable in words",
        ("run", "mistaken:app"),
        ("AWOKE_WORKERS", "eight"),
        {"AWOKE_WORKERS": "eight"},
        APP + ROUTE,
    ),
    Shell("a misspelt variable", ("run", "mistaken:app"), ("AWOKE_WROKERS",), {"AWOKE_WROKERS": "8"}, APP + ROUTE),
    Shell("brokers that are away", ("run", "mistaken:app"), (NOWHERE, "answered"), source=APP + ROUTE),
    Shell(
        "a port beyond the last",
        ("run", "mistaken:app", "--metrics-port", "70000"),
        ("--metrics-port", "65535"),
        source=APP + ROUTE,
    ),
    Shell("an unknown property", ("run", "mistaken:app", "--kafka", "no.such=1"), ("no.such",), source=APP + ROUTE),
    Shell("nothing to resume", ("resume", "mistaken:app", "orders", "0"), ("mistaken:app",), source=APP + ROUTE),
    Shell(
        "app.run() at the level of the module",
        ("run", "mistaken:app"),
        ("mistaken.py, line 5", "app.run() at the level of a module", "__main__"),
        source=APP + ROUTE + "app.run()\n",
    ),
    Shell(
        "a route that is refused, with its line",
        ("run", "mistaken:app"),
        ("mistaken.py, line 3", "retrys", "is 'retry' meant?"),
        source=APP + "@app.on('orders', retrys=3)\ndef handle(message): ...\n",
    ),
    Shell("topics of brokers that are away", ("topics", "list", "--bootstrap-servers", NOWHERE), (NOWHERE,)),
]


@pytest.mark.parametrize("mistake", SHELL, ids=lambda mistake: mistake.name)
def test_a_mistake_at_the_shell_is_one_message(mistake: Shell, tmp_path: Path) -> None:
    (tmp_path / "mistaken.py").write_text(mistake.source)
    env = {"PYTHONPATH": f"{tmp_path}", "AWOKE_STARTUP_TIMEOUT_S": "0.5", **mistake.env}
    with Process(*mistake.arguments, env=with_path(env)) as process:
        assert process.wait() != 0, process.output
        output = process.output
    assert "Traceback" not in output
    assert [word for word in mistake.words if word not in output.replace("\n", " ")] == [], output


def with_path(env: dict[str, str]) -> dict[str, str]:
    """Put a folder in front of the path that the tests have."""
    return {**env, "PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])}


def test_there_are_ninety() -> None:
    assert len(MISTAKES) + len(HABITS) + len(OF_OTHERS) + len(SHELL) >= 90


class Payload(NamedTuple):
    """A message that can't be handled, and the words that its error must have."""

    name: str
    value: object
    words: tuple[str, ...]


def no_json(_order: Order) -> object:
    """Returns what can't be written."""
    return Unencodable()


PAYLOADS = [
    Payload("no JSON", b"hello", ("[0] offset 0", "JSON")),
    Payload("another type", b'{"id": "one"}', ("[0] offset 0", "int", "id")),
    Payload("a field too few", b"{}", ("[0] offset 0", "id")),
    Payload("a tombstone", None, ("[0] offset 0",)),
    Payload("a result that can't be written", b'{"id": 1}', ("Unencodable",)),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.name)
def test_a_message_that_cannot_be_handled_is_named_in_its_dead_letter(payload: Payload) -> None:
    with EmbeddedCluster() as cluster:
        for name in ("orders", "receipts", "orders.dead"):
            cluster.create_topic(name)
        app = new_app(bootstrap_servers=cluster.bootstrap_servers)

        @app.on("orders", output="receipts", dead_letter="orders.dead", retry=awoke.Retry(attempts=1))
        def give(message: awoke.Message[Order]) -> Any:
            return no_json(message.value)

        with awoke.Producer(cluster.bootstrap_servers) as producer:
            producer.produce("orders", payload.value).wait(30)
        with running(app), awoke.Reader("orders.dead", bootstrap_servers=cluster.bootstrap_servers) as reader:
            letter = next(iter(reader))
        origin = awoke.dead_letter.origin(letter)
    assert origin is not None
    said = f"{origin.error_type}: {origin.error_text}"
    assert [word for word in payload.words if word not in said] == [], said


def test_a_handler_that_exits_is_named_with_its_message(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        app = new_app(bootstrap_servers=cluster.bootstrap_servers)

        @app.on("orders")
        def leave(message: awoke.Message[bytes]) -> None:
            sys.exit(3)

        with awoke.Producer(cluster.bootstrap_servers) as producer:
            producer.produce("orders", b"order").wait(30)
        runner = awoke.AppRunner(app, lambda error: ended.set())
        runner.start()
        assert ended.wait(WITHIN_S)
        runner.stop()
    assert "leave raised SystemExit(3) at orders[0] offset 0: the app stops, and the message comes again" in caplog.text
