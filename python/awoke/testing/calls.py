"""Calls one handler, or one method, without brokers: decodes, makes its arguments, runs it, returns its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from awoke._native import Batch, HookJob, Job, Message
from awoke.app.app import APPS, App
from awoke.declare.consumer import Consumer, current_job
from awoke.declare.handlers import check_ran
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.payloads.formats import json
from awoke.payloads.registry.schemas import SchemaNeeded, load_here
from awoke.produce.producer import Producer
from awoke.rpc.responder.methods import Method
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.instances import Instances, finished
from awoke.runtime.jobs.outputs import Yielded
from awoke.runtime.process.assigned import owner_of
from awoke.testing.memory.encoding import parts_for
from awoke.testing.memory.job import MemoryHook, MemoryJob
from awoke.testing.memory.partition import MemoryPartition
from awoke.testing.memory.process import MemoryProcess, route_of
from awoke.testing.memory.producing import MemoryProducer
from awoke.testing.messages import TOPIC
from awoke.testing.route_runs import on_own_loop

Target = App | Callable[..., Any]
"""An app, whose route of the message's topic is called; or a handler: a function, a consumer class, a method."""


def call(target: Target, received: Any = None, /, *, app: App | None = None, **arguments: Any) -> Any:
    """Calls a handler with a message, a batch or a value, as in a process; returns its result, or raises its error.

    `target` is a function or a consumer class of a route, an RPC method, or an app, which has a route of the message's
    topic. A message is encoded and decoded as the route says. Its handler gets its arguments, within its middleware.
    It is called once: retries, outputs and dead letters are for `run_route`. A class is assigned before, and revoked
    after. A method gets `arguments`, checked as those of a caller. `app` tells which app is meant where several have
    the handler; one that no app has runs in an app of its own. Blocks as long as the handler does.

    Raises:
        DecodeError: the value does not decode; EncodeError: it can't be encoded; InvalidArgument: an argument of a
        method is wrong; ConfigError: there is no route, or an async handler is called on a thread whose event loop
        runs: there await `acall`. Else what the handler raises.
    """
    found = _found(target, received, app)
    return on_own_loop(_call(found, received, arguments), "acall", is_async=found[1].is_async)


async def acall(target: Target, received: Any = None, /, *, app: App | None = None, **arguments: Any) -> Any:
    """As `call`, on the running event loop."""
    return await _call(_found(target, received, app), received, arguments)


def _found(target: Target, received: Any, app: App | None) -> tuple[App, Route | Method]:
    """Returns the route, or the method, of a target, and its app."""
    topic = received.topic if isinstance(received, Message | Batch) else TOPIC
    if isinstance(target, App):
        (only,) = target.read_topics if topic == TOPIC and len(target.read_topics) == 1 else [topic]
        return target, route_of(target, only)
    known = [(each, found) for each in ([app] if app else list(APPS)) for found in _targets(each) if _is(target, found)]
    of_topic = [each for each in known if isinstance(each[1], Method) or str(each[1].topic) == topic]
    found = of_topic or known
    if len({id(each) for each, _ in found}) > 1:
        names = ", ".join(sorted(repr(each.name) for each, _ in found))
        raise ConfigError(f"{target.__qualname__} belongs to the apps {names}: say app=…", "app")
    if found:
        return found[0]
    if app is not None:
        raise ConfigError(f"app {app.name!r} has no handler {target.__qualname__}", "app")
    return _on_its_own(target, topic)


def _targets(app: App) -> Iterable[Route | Method]:
    return [*app.all_routes, *app.rpc.methods.values()]


def _is(target: Any, found: Route | Method) -> bool:
    if isinstance(found, Method):
        return found.function is target
    cases = () if found.handlers is None else found.handlers.cases
    return target in (found.function, found.consumer) or any(each.function is target for each in cases)


def _on_its_own(target: Callable[..., Any], topic: str) -> tuple[App, Route]:
    app = App("test")
    if isinstance(target, type) and issubclass(target, Consumer):
        app.consumer(topic)(target)
    else:
        app.on(topic)(target)
    return app, route_of(app, topic)


async def _call(found: tuple[App, Route | Method], received: Any, arguments: dict[str, Any]) -> Any:
    app, called = found
    if isinstance(called, Method):
        with app.sending_by(cast("Producer", MemoryProducer(app, lambda sent: None))):
            return await _call_method(app, called, arguments)
    if arguments:
        raise ConfigError(f"{called.name} is a handler of a route: it takes a message, not {sorted(arguments)}", "call")
    process = MemoryProcess(app, called, lambda sent: None)
    with process.running():
        try:
            await process.dependencies.open_here()
            return await _call_route(process, _job_of(process, received))
        finally:
            await process.dependencies.close_here()


def _job_of(process: MemoryProcess, received: Any) -> MemoryJob:
    """Returns a job with the messages that were given."""
    route = process.route
    messages = list(received) if isinstance(received, Batch) else [received]
    if route.consumer is None and len(messages) > 1:
        raise ConfigError(f"{route.name} takes one message; run_route takes several", "call")
    ((number, parts),) = parts_for(process.app, route, messages).items()
    partition = MemoryPartition(str(route.topic), number, parts)
    partition.split(None)
    unit, entries = partition.take(len(parts))
    entries[0].failed = messages[0].attempt - 1 if isinstance(messages[0], Message) else 0
    return MemoryJob(partition, unit, entries, lambda: 0.0, route.number)


async def _call_route(process: MemoryProcess, made: MemoryJob) -> Any:
    route, job = process.route, cast("Job", made)
    calls = HandlerCalls(route, process)
    if calls.is_late:
        calls.bind()
    hook = cast("HookJob", MemoryHook("revoked", made.assignment(), route.number))
    with process.ledger.acting_for(owner_of(job), job.generation, job):
        try:
            if route.consumer is None:
                return await _call_function(calls, route, job)
            return await _call_consumer(calls, Instances(route, process), route, job, hook)
        finally:
            await calls.close_assignment(hook)


async def _call_function(calls: HandlerCalls, route: Route, job: Job) -> Any:
    message = job.batch(route.loading_decoders)[0]
    if calls.is_typed:
        message.value  # noqa: B018 - a value that does not decode is the message's error, not the handler's
    result = calls.function(message)
    if route.is_async:
        result = await result
    if result is not None:
        check_ran(result, route.name)
    return list(result) if type(result) is Yielded else result


async def _call_consumer(calls: HandlerCalls, instances: Instances, route: Route, job: Job, hook: HookJob) -> Any:
    instance = instances.of(job)
    token = current_job.set(job)
    try:
        await finished(instance.assigned(), f"{route.name}.assigned", route.is_async)
        batch = job.batch(route.loading_decoders)
        result = instance.consume(batch) if calls.consume is None else calls.consume(instance, batch)
        if route.is_async:
            result = await result
        await finished(instance.revoked(), f"{route.name}.revoked", route.is_async)
        return result
    finally:
        current_job.reset(token)
        await instances.close_scope(hook)
        instances.forget(hook)


async def _call_method(app: App, method: Method, arguments: dict[str, Any]) -> Any:
    """Calls a method with arguments that are checked as those of a request, and checks that its results can be sent."""
    app.rpc.prepare(app.schemas)
    if method.argument_form is None:
        arguments = method.arguments(json.encode(arguments))
    result = method.function(**arguments)
    if method.is_stream:
        results = [each async for each in result] if method.is_async else list(result)
    else:
        results = [await result if method.is_async else result]
    for each in results:
        _check_result(method, each)
    return results if method.is_stream else results[0]


def _check_result(method: Method, result: Any) -> None:
    try:
        method.written(result)
    except SchemaNeeded as needed:
        load_here(method.written, needed, result)
