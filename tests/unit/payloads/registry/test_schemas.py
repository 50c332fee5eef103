"""Schemas for encoders and decoders: nothing waits, what is missing is asked for, and what is to be written."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

import awoke
from awoke.payloads.registry import (
    Reference,
    RegisteredSchema,
    RegistryRefused,
    RegistryUnavailable,
    Schema,
    SchemaCache,
    SchemaNotFound,
    SchemaRegistry,
)
from awoke.payloads.registry import schemas as module
from awoke.payloads.registry.schemas import Imported, SchemaNeeded, Schemas, is_on_this_machine, load_here, loading
from tests.support.processes import in_child

OWN, OTHER = Schema("own"), Schema("other")


class FakeRegistry:
    """A registry whose subjects a test has filled."""

    def __init__(self, url: str = "http://registry:8081") -> None:
        self.url, self.cache = url, SchemaCache()
        self.subjects: dict[str, list[Schema]] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.is_away = self.is_closed = False
        self.has_references = True

    def cached(self, number: int) -> RegisteredSchema | None:
        return self.cache.get(number)

    def schema(self, number: int) -> RegisteredSchema:
        self._ask("schema", number)
        if number != 1:
            error = SchemaNotFound("no such schema")
            self.cache.put_unknown(number, error)
            raise error
        self.cache.put(number, RegisteredSchema(OWN, number))
        return RegisteredSchema(OWN, number)

    def latest(self, subject: str) -> RegisteredSchema:
        self._ask("latest", subject)
        return self._version(subject, len(self._versions(subject)))

    def look_up(self, subject: str, schema: Schema) -> RegisteredSchema:
        self._ask("look_up", subject)
        if schema not in self._versions(subject):
            raise SchemaNotFound("no such schema")
        return self._version(subject, self._versions(subject).index(schema) + 1)

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        self._ask("register", subject)
        self.subjects.setdefault(subject, []).append(schema)
        return self._version(subject, len(self.subjects[subject]))

    def references(self, schema: Schema) -> dict[str, Schema]:
        self._ask("references")
        if not self.has_references:
            raise SchemaNotFound("no such version")
        return {"line": OTHER}

    def close(self) -> None:
        self.is_closed = True

    def counters(self) -> dict[str, float]:
        return {"requests": float(len(self.asked)), "errors": 0.0, "wait_s": 0.5}

    def _ask(self, *request: Any) -> None:
        self.asked.append(request)
        if self.is_away:
            raise RegistryUnavailable("away")

    def _versions(self, subject: str) -> list[Schema]:
        if subject not in self.subjects:
            raise SchemaNotFound("no such subject")
        return self.subjects[subject]

    def _version(self, subject: str, version: int) -> RegisteredSchema:
        return RegisteredSchema(self.subjects[subject][version - 1], version, None, subject, version)


@pytest.fixture
def registry() -> FakeRegistry:
    return FakeRegistry()


def schemas_of(registry: FakeRegistry, register: Any = "never") -> Schemas:
    return Schemas(lambda: cast("SchemaRegistry", registry), lambda: register)


def loaded(schemas: Schemas, subject: str, schema: Schema | None, imports: Any = ()) -> Schema:
    found: RegisteredSchema = loading(schemas.for_writing)(subject, schema, imports)
    return found.schema


def test_a_schema_is_asked_for_once(registry: FakeRegistry) -> None:
    schemas = schemas_of(registry)
    with pytest.raises(SchemaNeeded, match="schema 1 is not loaded") as caught:
        schemas.by_id(1)
    assert registry.asked == []
    caught.value.load()
    assert [schemas.by_id(1).schema for _ in range(3)] == [OWN] * 3
    assert registry.asked == [("schema", 1)]


def test_whether_a_subject_has_a_schema_is_asked_once_and_after_10_s_again_if_not(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic_s", lambda: now[0])
    schemas = schemas_of(registry)
    registry.subjects["orders-value"] = [OWN]
    with pytest.raises(SchemaNeeded, match="the schemas of 'orders-value' are not loaded"):
        schemas.has("orders-value", OWN)
    has: Any = loading(schemas.has)
    assert [has("orders-value", OWN), has("orders-value", OWN), has("orders-value", OTHER), has("x", OWN)] == [
        True,
        True,
        False,
        False,
    ]
    assert len(registry.asked) == 3
    registry.subjects["x"] = [OWN]
    assert not has("x", OWN)
    now[0] += 11
    assert has("x", OWN)


def test_a_schema_that_the_registry_does_not_have_is_no_longer_needed(registry: FakeRegistry) -> None:
    schemas = schemas_of(registry)
    with pytest.raises(SchemaNotFound):
        loading(schemas.by_id)(2)
    with pytest.raises(SchemaNotFound):
        schemas.by_id(2)
    assert registry.asked == [("schema", 2)]


def test_the_own_schema_is_written_where_it_is_registered_and_else_the_latest(registry: FakeRegistry) -> None:
    registry.subjects = {"a": [OWN, OTHER], "b": [OTHER]}
    schemas = schemas_of(registry)
    assert [loaded(schemas, subject, OWN) for subject in "aba"] == [OWN, OTHER, OWN]
    assert loaded(schemas, "a", None) == OTHER
    assert "register" not in [each[0] for each in registry.asked]


def test_a_subject_without_a_schema_is_not_the_message_s_fault(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryRefused, match="no schema of 'a': register one with awoke schema register"):
        loaded(schemas_of(registry), "a", OWN)


@pytest.mark.parametrize(
    ("register", "url", "is_registered"),
    [
        ("always", "http://registry:8081", True),
        ("dev", "http://registry:8081", False),
        ("dev", "http://127.0.0.1:8081", True),
        ("dev", "http://localhost:8081,http://127.0.0.1:1", True),
        ("dev", "http://localhost:8081,http://registry", False),
        ("never", "http://localhost:8081", False),
    ],
)
def test_a_schema_is_registered_only_where_that_is_said(register: str, url: str, is_registered: bool) -> None:
    registry = FakeRegistry(url)
    registry.subjects = {"a": [OTHER]}
    assert loaded(schemas_of(registry, register), "a", OWN) == (OWN if is_registered else OTHER)


def test_imported_schemas_are_registered_before_and_referred_to(registry: FakeRegistry) -> None:
    imports = (Imported("money.proto", OTHER),)
    found = loaded(schemas_of(registry, "always"), "a", OWN, imports)
    assert found.references == (Reference("money.proto", "money.proto", 1),)
    assert registry.asked == [("register", "money.proto"), ("register", "a")]


def test_references_are_loaded_when_a_schema_has_some(registry: FakeRegistry) -> None:
    schemas = schemas_of(registry)
    assert schemas.references(OWN) == {}
    order = Schema("order", "AVRO", (Reference("line", "line", 1),))
    assert loading(schemas.references)(order) == {"line": OTHER}
    assert schemas.references(order) == {"line": OTHER}
    assert registry.asked == [("references",)]


def test_a_reference_that_is_missing_is_not_asked_for_again_at_once(registry: FakeRegistry) -> None:
    registry.has_references = False
    schemas, order = schemas_of(registry), Schema("order", "AVRO", (Reference("line", "line", 1),))
    with pytest.raises(SchemaNotFound):
        loading(schemas.references)(order)
    with pytest.raises(SchemaNotFound):
        schemas.references(order)
    assert registry.asked == [("references",)]


def test_what_is_expected_is_loaded_ahead_and_what_can_not_be_is_left(registry: FakeRegistry) -> None:
    registry.subjects = {"b": [OTHER]}
    schemas = schemas_of(registry)
    for subject in "aabb":
        schemas.expect(subject)
    schemas.start()
    schemas.close(10)
    schemas = schemas_of(registry)
    schemas.expect("a")
    schemas.expect("b", OWN)
    schemas.prefetch()
    assert schemas.for_writing("b", OWN).schema == OTHER
    registry.is_away = True
    with pytest.raises(RegistryUnavailable):
        loaded(schemas, "a", None)


def test_without_a_registry_the_error_says_what_to_set() -> None:
    schemas = Schemas.none()
    schemas.check()
    schemas.is_required = True
    for ask in (schemas.check, lambda: schemas.by_id(1)):
        with pytest.raises(awoke.ConfigError, match="registry_url="):
            ask()


def test_the_client_is_closed_and_made_anew(registry: FakeRegistry) -> None:
    schemas = schemas_of(registry)
    schemas.close()
    assert not registry.is_closed
    assert schemas.registry is registry  # type: ignore[comparison-overlap]
    schemas.close()
    assert registry.is_closed


def test_what_was_made_of_schemas_is_forgotten_with_the_client(registry: FakeRegistry) -> None:
    registry.subjects = {"a": [OWN]}
    schemas = schemas_of(registry)
    made = schemas.kept()
    made[1] = "a reader"
    assert loaded(schemas, "a", None) == OWN
    made[1] = "a reader"
    schemas.close()
    registry.subjects = {"a": [OTHER]}
    assert loaded(schemas, "a", None) == OWN, "an encoder may still run"
    schemas.check()
    schemas.registry  # noqa: B018 - another one is opened.
    assert made == {}
    assert loaded(schemas, "a", None) == OTHER


def test_a_load_that_never_ends_is_given_up() -> None:
    def decode() -> None:
        raise SchemaNeeded("a schema", lambda: None)

    with pytest.raises(SchemaNeeded):
        loading(decode)()
    with pytest.raises(SchemaNeeded):
        load_here(decode, SchemaNeeded("a schema", lambda: None))


@pytest.mark.parametrize(
    ("url", "is_here"),
    [("http://[::1]:80", True), ("https://u:p@127.0.0.2", True), ("http://10.0.0.1", False), ("nonsense", False)],
)
def test_only_loopback_is_this_machine(url: str, is_here: bool) -> None:
    assert is_on_this_machine(url) == is_here


def test_what_is_kept_is_bounded_as_the_client_s_cache(registry: FakeRegistry) -> None:
    registry.cache = SchemaCache(2)
    registry.subjects = {"a": [OWN], "b": [OWN], "c": [OWN]}
    schemas = schemas_of(registry)
    before = schemas.kept()
    assert [loaded(schemas, subject, None) for subject in "abca"] == [OWN] * 4
    assert registry.asked == [("latest", subject) for subject in "abca"], "the first one was dropped for the third"
    after = schemas.kept()
    for kept in (before, after):
        kept.update(dict.fromkeys("xy"))
        kept["z"] = None
        assert len(kept) == 2


def test_what_a_format_has_made_ends_with_the_format(registry: FakeRegistry) -> None:
    schemas = schemas_of(registry)
    own = len(schemas._kept)
    kept = [schemas.kept() for _ in range(100)]
    assert len(schemas._kept) == own + 100
    kept.clear()
    assert len(schemas._kept) == own


def test_counters_are_those_of_the_cache_the_formats_and_the_requests(registry: FakeRegistry) -> None:
    registry.subjects = {"a": [OWN]}
    schemas = schemas_of(registry)
    assert schemas.counters() == {}, "there is no client yet"
    loaded(schemas, "a", None)
    loading(schemas.by_id)(1)
    schemas.counts.hits += 3
    counts = {
        "hits": 3 + registry.cache.hits,
        "misses": 0,
        "evictions": 0,
        "entries": 1,
        "requests": 2.0,
        "errors": 0.0,
    }
    assert schemas.counters() == {**counts, "wait_s": 0.5}
    assert schemas.loads == 2


class SlowRegistry(FakeRegistry):
    """Answers a look-up when a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.go_on = threading.Event(), threading.Event()

    def look_up(self, subject: str, schema: Schema) -> RegisteredSchema:
        self.is_asked.set()
        assert self.go_on.wait(30)
        return super().look_up(subject, schema)


def test_a_prefetch_beside_close_opens_no_other_client_and_keeps_nothing() -> None:
    registry = SlowRegistry()
    registry.subjects = {"a": [OWN], "m": [OTHER], "n": [OTHER]}
    opened: list[SlowRegistry] = []

    def open_registry() -> SchemaRegistry:
        opened.append(registry)
        return cast("SchemaRegistry", registry)

    schemas = Schemas(open_registry, lambda: "never")
    schemas.expect("a", OWN, (Imported("m", OTHER), Imported("n", OTHER)))
    schemas.expect("n", OTHER)
    schemas.start()
    thread = schemas._prefetching
    assert thread is not None
    assert registry.is_asked.wait(30)
    schemas.close(0.0)
    registry.go_on.set()
    thread.join(30)
    assert registry.is_closed
    assert opened == [registry]
    assert ("look_up", "n") in registry.asked, "what had begun went on"
    assert schemas._written == {}
    assert registry.asked.count(("look_up", "n")) == 1, "what had not begun did not begin"


def test_a_load_that_is_late_does_not_open_the_client_again(registry: FakeRegistry) -> None:
    registry.subjects = {"a": [OWN]}
    opened = [0]

    def open_registry() -> SchemaRegistry:
        opened[0] += 1
        return cast("SchemaRegistry", registry)

    schemas = Schemas(open_registry)
    with pytest.raises(SchemaNeeded) as caught:
        schemas.for_writing("a", None)
    schemas.close()
    caught.value.load()
    assert opened == [1]


def test_a_lock_that_another_thread_held_at_the_fork_blocks_no_child(registry: FakeRegistry) -> None:
    registry.subjects = {"a": [OWN]}
    schemas = schemas_of(registry)
    schemas.expect("a")
    schemas.start()

    def check() -> None:
        assert schemas._prefetching is None
        assert loaded(schemas, "a", None) == OWN
        schemas.close()

    with schemas._lock:
        assert in_child(check) == 0
    schemas.close(30)
