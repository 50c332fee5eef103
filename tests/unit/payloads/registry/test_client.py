"""The two clients: the same methods, the cache, closing, forks and repr."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import awoke.payloads.registry
from awoke.errors import ClosedError, ConfigError
from awoke.payloads.registry import (
    AsyncSchemaRegistry,
    BasicAuth,
    Reference,
    RegisteredSchema,
    RegistryUnavailable,
    Schema,
    SchemaNotFound,
    SchemaRegistry,
)
from tests.support.processes import in_child
from tests.support.registry_stub import Received, RegistryStub, Reply, unused_port

AVRO = Schema('"int"')
GUID = "3f1c0000-0000-0000-0000-00000000beef"
WHOLE = {"subject": "s", "version": 3, "id": 7, "guid": GUID, "schema": '"int"'}
FOUND = RegisteredSchema(AVRO, 7, GUID, "s", 3)
REFERRING = Schema('"int"', references=(Reference("a", "s", 3),))

CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "schema": (lambda client: client.schema(7), RegisteredSchema(AVRO, 7, GUID)),
    "subjects": (lambda client: client.subjects("s"), ["s"]),
    "versions": (lambda client: client.versions("s"), [3]),
    "version": (lambda client: client.version("s", 3), FOUND),
    "latest": (lambda client: client.latest("s"), FOUND),
    "look_up": (lambda client: client.look_up("s", AVRO), FOUND),
    "register": (lambda client: client.register("s", AVRO), FOUND),
    "check": (lambda client: client.check("s", AVRO), []),
    "compatibility": (lambda client: client.compatibility(), "FULL"),
    "set_compatibility": (lambda client: client.set_compatibility("FULL"), "FULL"),
    "delete_subject": (lambda client: client.delete_subject("s"), [3]),
    "delete_version": (lambda client: client.delete_version("s", 3), 3),
    "references": (lambda client: client.references(REFERRING), {"a": AVRO}),
}
"""Each method, with its result from the server below."""


@pytest.fixture
def registry(stub: RegistryStub) -> RegistryStub:
    """A server that has version 3 of the subject `s`, with the id 7."""
    stub.answer("GET", "/schemas/ids/7", Reply(document={"schema": '"int"', "guid": GUID}))
    stub.answer("GET", "/schemas/ids/8", Reply(404, {"error_code": 40403, "message": "Schema 8 not found"}))
    stub.answer("GET", "/subjects?subjectPrefix=s", Reply(document=["s", "other"]))
    stub.answer("GET", "/subjects/s/versions", Reply(document=[3]))
    for version in ("3", "latest"):
        stub.answer("GET", f"/subjects/s/versions/{version}", Reply(document=WHOLE))
    stub.answer("POST", "/subjects/s", Reply(document=WHOLE))
    stub.answer("POST", "/subjects/s/versions", Reply(document={"id": 7}))
    path = "/compatibility/subjects/s/versions/latest?verbose=true"
    stub.answer("POST", path, Reply(document={"is_compatible": True}))
    stub.answer("GET", "/config", Reply(document={"compatibilityLevel": "FULL"}))
    stub.answer("PUT", "/config", Reply(document={"compatibility": "FULL"}))
    stub.answer("DELETE", "/subjects/s", Reply(document=[3]))
    stub.answer("DELETE", "/subjects/s/versions/3", Reply(document=3))
    return stub


@pytest.mark.parametrize("name", CALLS)
def test_each_method_of_the_blocking_client_returns_its_result(name: str, registry: RegistryStub) -> None:
    call, result = CALLS[name]
    with SchemaRegistry(registry.url) as client:
        assert call(client) == result


@pytest.mark.parametrize("name", CALLS)
def test_each_method_of_the_client_for_loops_returns_its_result(name: str, registry: RegistryStub) -> None:
    call, result = CALLS[name]

    async def run() -> None:
        async with AsyncSchemaRegistry(registry.url) as client:
            assert await call(client) == result

    asyncio.run(run())


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type[Any]) -> dict[str, Any]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: inspect.signature(method) for name, method in found if name[0] != "_"}

    assert methods(SchemaRegistry) == methods(AsyncSchemaRegistry)
    assert methods(SchemaRegistry).keys() == CALLS.keys() | {"cached", "close", "counters"}


def test_a_schema_that_was_asked_for_is_cached(registry: RegistryStub) -> None:
    with SchemaRegistry(registry.url) as client:
        assert client.cached(7) is None
        schema = client.schema(7)
        assert client.cached(7) is schema
        assert client.cached(GUID.upper()) == schema
        assert client.schema(7) is schema
        assert (client.cache.hits, client.cache.misses) == (3, 1)
    assert registry.asked() == ["GET /schemas/ids/7"]


def test_threads_that_ask_for_one_id_send_one_request(registry: RegistryStub) -> None:
    with SchemaRegistry(registry.url) as client, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(client.schema, [7] * 64)) == {RegisteredSchema(AVRO, 7, GUID)}
    assert registry.asked() == ["GET /schemas/ids/7"]


def test_tasks_that_ask_for_one_id_send_one_request(registry: RegistryStub) -> None:
    async def run() -> None:
        async with AsyncSchemaRegistry(registry.url) as client:
            found = await asyncio.gather(*(client.schema(7) for _ in range(64)))
            assert set(found) == {RegisteredSchema(AVRO, 7, GUID)}
            for _ in range(2):
                with pytest.raises(SchemaNotFound):
                    await client.schema(8)

    asyncio.run(run())
    assert registry.asked() == ["GET /schemas/ids/7", "GET /schemas/ids/8"]


def test_the_cache_is_bounded(stub: RegistryStub) -> None:
    for number in range(3):
        stub.answer("GET", f"/schemas/ids/{number}", Reply(document={"schema": '"int"'}))
    with SchemaRegistry(stub.url, cache_max=2) as client:
        for number in (0, 1, 2, 0):
            client.schema(number)
    assert [path[-1] for path in stub.asked()] == ["0", "1", "2", "0"]


def test_the_blocking_client_works_on_the_thread_of_a_loop(registry: RegistryStub) -> None:
    async def run() -> None:
        with SchemaRegistry(registry.url) as client:
            assert client.latest("s") == FOUND

    asyncio.run(run())


def test_a_closed_client_says_so_also_about_a_schema_that_it_has(registry: RegistryStub) -> None:
    client = SchemaRegistry(registry.url)
    schema = client.schema(7)
    client.close()
    client.close()
    for call, _ in CALLS.values():
        with pytest.raises(ClosedError, match="is closed; make a new one"):
            call(client)
    assert client.cached(7) is schema

    async def run() -> None:
        later = AsyncSchemaRegistry(registry.url)
        await later.schema(7)
        await later.close()
        for call, _ in CALLS.values():
            with pytest.raises(ClosedError):
                await call(later)

    asyncio.run(run())


def test_no_user_and_no_password_is_shown(registry: RegistryStub) -> None:
    url = "http://ada:canary@127.0.0.1:1,http://ada:canary@127.0.0.2:1"
    with SchemaRegistry(url) as client:
        assert repr(client) == "SchemaRegistry('http://127.0.0.1:1,http://127.0.0.2:1')"
        assert client.url == "http://127.0.0.1:1,http://127.0.0.2:1"
    with SchemaRegistry(registry.url, auth=BasicAuth("ada", "canary")) as client:
        assert "canary" not in repr(client)
    assert repr(AsyncSchemaRegistry("http://h")) == "AsyncSchemaRegistry('http://h')"


def test_wrong_arguments_are_refused_where_they_are_given() -> None:
    wrong: Any = {"timeout": 1}
    for kind in (SchemaRegistry, AsyncSchemaRegistry):
        with pytest.raises(TypeError, match="no option 'timeout'"):
            kind("http://h", **wrong)
        with pytest.raises(ConfigError, match="timeout_s must be a number, more than 0"):
            kind("http://h", timeout_s=-1)
        with pytest.raises(ConfigError, match="url has an address that is not understood"):
            kind("h")


def test_requests_are_counted_with_their_errors(stub: RegistryStub) -> None:
    stub.answer("GET", "/subjects", Reply(document=[]), Reply(500, {"error_code": 50001, "message": "broken"}))
    stub.answer("GET", "/schemas/ids/9", Reply(404, {"error_code": 40403, "message": "Schema 9 not found"}))
    with SchemaRegistry(stub.url) as client:
        client.subjects()
        with pytest.raises(RegistryUnavailable):
            client.subjects()
        for _ in range(2):
            with pytest.raises(SchemaNotFound):
                client.schema(9)
        counts = client.counters()
    assert (counts["requests"], counts["errors"]) == (3, 1)
    assert counts["wait_s"] > 0


def test_a_client_of_the_parent_works_in_a_forked_child(stub: RegistryStub) -> None:
    """The connection of the parent stays its own, although it is open at the fork."""

    def schema(received: Received) -> Reply:
        return Reply(document={"schema": f'"{received.path[-1]}"'})

    for number in range(4):
        stub.answer("GET", f"/schemas/ids/{number}", schema)
    client, later = SchemaRegistry(stub.url), AsyncSchemaRegistry(stub.url)
    client.schema(0)

    def check() -> None:
        assert client.schema(0).schema == Schema('"0"')
        assert client.schema(1).schema == Schema('"1"')
        assert asyncio.run(later.schema(2)).schema == Schema('"2"')
        client.close()

    assert in_child(check) == 0
    assert client.schema(3).schema == Schema('"3"')
    assert stub.asked() == [f"GET /schemas/ids/{number}" for number in range(4)], (
        "the child has the cache of the parent"
    )
    client.close()


def test_a_lock_that_another_thread_held_at_the_fork_blocks_no_child(registry: RegistryStub) -> None:
    client = SchemaRegistry(registry.url)
    locks = [client.cache._lock, client._requests._flights._lock, client._own._lock, client._own._login._flights._lock]

    def check() -> None:
        client.schema(7)
        client.close()

    with locks[0], locks[1], locks[2], locks[3]:
        assert in_child(check) == 0
    client.close()


def test_a_client_that_never_connected_can_be_closed() -> None:
    SchemaRegistry(f"http://127.0.0.1:{unused_port()}").close()


def test_the_exported_names_exist_once() -> None:
    names = awoke.registry.__all__
    assert sorted(names, key=lambda name: (name[0].islower(), name)) == names
    assert all(hasattr(awoke.registry, name) for name in names)
