"""Requests with a cache: what is asked once, what again, and the order of references."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from awoke.payloads.registry import (
    Reference,
    RegisteredSchema,
    RegistryUnavailable,
    Schema,
    SchemaNotFound,
)
from awoke.payloads.registry import cached_requests as module
from awoke.payloads.registry.cache import UNKNOWN_FOR_S, SchemaCache
from awoke.payloads.registry.cached_requests import CachedRequests, key_of
from awoke.waiting.drive import drive
from tests.support.waiting import WITHIN_S, Collected

AVRO = Schema('"int"')
GUID = "3f1c0000-0000-0000-0000-00000000beef"
WHOLE = {"subject": "s", "version": 3, "id": 7, "guid": GUID, "schema": '"int"'}
ALONE = RegisteredSchema(AVRO, 7, GUID)
FOUND = RegisteredSchema(AVRO, 7, GUID, "s", 3)


class Answers:
    """A transport with an answer for each request; counts them."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.arrived = Collected[str]()
        self.go = threading.Event()
        self.go.set()

    async def send(self, method: str, path: str, body: object | None = None) -> Any:
        self.arrived.add(f"{method} {path}")
        assert self.go.wait(WITHIN_S)
        answer = self.answers[f"{method} {path}"]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def sent(self) -> list[str]:
        """Method and path of all requests."""
        return self.arrived.items

    def url_of(self, path: str) -> str:
        return path


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def client(transport: Answers, clock: Callable[[], float] | None = None) -> CachedRequests:
    return CachedRequests(transport, SchemaCache(clock=clock) if clock is not None else SchemaCache())


def test_a_schema_is_asked_for_once() -> None:
    transport = Answers({"GET /schemas/ids/7": {"schema": '"int"', "guid": GUID}})
    requests = client(transport)
    assert drive(requests.schema(7)) == drive(requests.schema(7)) == drive(requests.schema(GUID.upper())) == ALONE
    assert transport.sent == ["GET /schemas/ids/7"]
    assert (requests.cache.hits, requests.cache.misses) == (2, 1)


def test_threads_that_ask_for_one_id_at_the_same_time_send_one_request() -> None:
    transport = Answers({"GET /schemas/ids/7": {"schema": '"int"'}})
    transport.go.clear()
    requests, entered = client(transport), Collected[int]()

    def ask() -> RegisteredSchema:
        entered.add(1)
        return drive(requests.schema(7))

    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(ask) for _ in range(16)]
        entered.wait_for(16)
        transport.arrived.wait_for(1)
        transport.go.set()
        assert {each.result(WITHIN_S) for each in asked} == {RegisteredSchema(AVRO, 7)}
    assert transport.sent == ["GET /schemas/ids/7"]


def test_an_id_that_the_registry_does_not_have_is_asked_for_again_after_ten_seconds() -> None:
    clock = Clock()
    transport = Answers({"GET /schemas/ids/7": SchemaNotFound("gone", "http://host", 404, 40403)})
    requests = client(transport, clock)
    for _ in range(3):
        with pytest.raises(SchemaNotFound, match="gone") as refused:
            drive(requests.schema(7))
        assert (refused.value.status, refused.value.code) == (404, 40403)
    assert len(transport.sent) == 1
    clock.now_s += UNKNOWN_FOR_S
    transport.answers["GET /schemas/ids/7"] = {"schema": '"int"'}
    assert drive(requests.schema(7)).schema == AVRO
    assert len(transport.sent) == 2


def test_an_error_that_may_pass_is_not_kept() -> None:
    transport = Answers({"GET /schemas/ids/7": RegistryUnavailable("away")})
    requests = client(transport)
    with pytest.raises(RegistryUnavailable):
        drive(requests.schema(7))
    transport.answers["GET /schemas/ids/7"] = {"schema": '"int"'}
    assert drive(requests.schema(7)).schema == AVRO


def test_an_id_is_kept_apart_for_each_context() -> None:
    transport = Answers(
        {
            "GET /schemas/ids/7": {"schema": '"int"'},
            "GET /schemas/ids/7?subject=%3A.a%3As": {"schema": '"long"'},
            "GET /schemas/ids/7?subject=s": {"schema": '"int"'},
        }
    )
    requests = client(transport)
    for _ in range(2):
        assert drive(requests.schema(7)).schema == AVRO
        assert drive(requests.schema(7, subject=":.a:s")).schema == Schema('"long"')
        assert drive(requests.schema(7, subject="s")).schema == AVRO
    assert len(transport.sent) == 2


@pytest.mark.parametrize(
    ("id", "subject", "key"),
    [
        (7, None, 7),
        (7, "orders-value", 7),
        (7, ":.team:orders", (":.team:", 7)),
        ("ABC", ":.team:orders", "abc"),
    ],
)
def test_the_key_of_a_schema_has_its_context(id: int | str, subject: str | None, key: Any) -> None:
    assert key_of(id, subject) == key


def test_the_latest_version_is_asked_for_each_time_and_fills_the_cache() -> None:
    transport = Answers({"GET /subjects/s/versions/latest": WHOLE})
    requests = client(transport)
    assert drive(requests.version("s", "latest")) == drive(requests.version("s", "latest")) == FOUND
    assert len(transport.sent) == 2
    assert drive(requests.schema(7)) == drive(requests.schema(GUID)) == ALONE, "a schema may be in several subjects"
    assert len(transport.sent) == 2


def test_a_schema_that_is_registered_is_neither_registered_nor_looked_up_again() -> None:
    transport = Answers({"POST /subjects/s/versions": {"id": 7}, "POST /subjects/s": WHOLE})
    requests = client(transport)
    assert drive(requests.register("s", AVRO)) == FOUND
    assert drive(requests.register("s", AVRO)) == drive(requests.look_up("s", AVRO)) == FOUND
    assert drive(requests.schema(7)) == ALONE
    assert transport.sent == ["POST /subjects/s/versions", "POST /subjects/s"]


def test_a_registration_does_not_take_the_answer_to_an_earlier_look_up() -> None:
    transport = Answers({"POST /subjects/s/versions": {"id": 7}, "POST /subjects/s": SchemaNotFound("gone")})
    transport.go.clear()
    requests = client(transport)
    with ThreadPoolExecutor(2) as pool:
        looked_up = pool.submit(drive, requests.look_up("s", AVRO))
        transport.arrived.wait_for(1)
        registered = pool.submit(drive, requests.register("s", AVRO))
        transport.arrived.wait_for(2)
        transport.go.set()
        with pytest.raises(SchemaNotFound):
            looked_up.result(WITHIN_S)
        with pytest.raises(SchemaNotFound):
            registered.result(WITHIN_S)
    assert transport.sent.count("POST /subjects/s") == 2


@pytest.mark.parametrize("answer", [[3], RegistryUnavailable("no answer")])
def test_a_subject_that_is_deleted_is_forgotten(answer: Any) -> None:
    transport = Answers({"POST /subjects/s/versions": WHOLE, "DELETE /subjects/s": answer})
    requests = client(transport)
    drive(requests.register("s", AVRO))
    if isinstance(answer, list):
        assert drive(requests.delete_subject("s")) == [3]
    else:
        with pytest.raises(RegistryUnavailable):
            drive(requests.delete_subject("s"))
    drive(requests.register("s", AVRO))
    assert transport.sent.count("POST /subjects/s/versions") == 2


def test_a_version_that_is_deleted_is_forgotten() -> None:
    transport = Answers({"POST /subjects/s": WHOLE, "DELETE /subjects/s/versions/3": 3})
    requests = client(transport)
    drive(requests.look_up("s", AVRO))
    assert drive(requests.delete_version("s", 3)) == 3
    drive(requests.look_up("s", AVRO))
    assert transport.sent.count("POST /subjects/s") == 2


def referring(*names: str) -> dict[str, Any]:
    """Returns the answer for a schema that refers to these."""
    references = [{"name": name, "subject": name, "version": 1} for name in names]
    return {"schema": "{}", "references": references}


def test_references_come_with_those_behind_them_first() -> None:
    graph = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}
    transport = Answers({f"GET /subjects/{name}/versions/1": referring(*its) for name, its in graph.items()})
    schema = Schema("{}", references=(Reference("a", "a", 1), Reference("b", "b", 1)))
    for given in (schema, RegisteredSchema(schema, 7)):
        found = list(drive(client(transport).references(given)))
        assert sorted(found) == ["a", "b", "c", "d"]
        assert found[0] == "d"
        assert found[3] == "a"
    assert len(transport.sent) == 8, "each once"


def test_a_schema_without_references_needs_no_request() -> None:
    assert drive(client(Answers({})).references(AVRO)) == {}


def test_of_two_versions_under_one_name_the_nearer_counts() -> None:
    far = {"schema": "a", "references": [{"name": "b", "subject": "b", "version": 9}]}
    transport = Answers({"GET /subjects/a/versions/1": far, "GET /subjects/b/versions/1": {"schema": "b1"}})
    schema = Schema("{}", references=(Reference("a", "a", 1), Reference("b", "b", 1)))
    assert drive(client(transport).references(schema))["b"] == Schema("b1")


def test_references_in_a_circle_are_refused() -> None:
    transport = Answers({"GET /subjects/a/versions/1": referring("b"), "GET /subjects/b/versions/1": referring("a")})
    with pytest.raises(SchemaNotFound, match="in a circle: "):
        drive(client(transport).references(Schema("{}", references=(Reference("a", "a", 1),))))


def test_references_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFERENCES_MAX", 5)
    transport = Answers({f"GET /subjects/{n}/versions/1": referring(str(n + 1)) for n in range(10)})
    with pytest.raises(SchemaNotFound, match="more than 5 others"):
        drive(client(transport).references(Schema("{}", references=(Reference("0", "0", 1),))))
    assert len(transport.sent) == 5


def test_too_many_references_of_one_schema_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Answers({"GET /subjects/0/versions/1": referring(*map(str, range(1, 1_000)))})
    with pytest.raises(SchemaNotFound, match="more than 256 others"):
        drive(client(transport).references(Schema("{}", references=(Reference("0", "0", 1),))))
    assert len(transport.sent) == 1
