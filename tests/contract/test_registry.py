"""The same calls to two schema registries, the embedded one and Apicurio: both answer alike, as Confluent's does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from awoke.payloads.registry import (
    AsyncSchemaRegistry,
    InvalidSchema,
    Reference,
    Schema,
    SchemaIncompatible,
    SchemaNotFound,
    SchemaRegistry,
)
from tests.support import avro_documents
from tests.support.avro_documents import array, enum, field, fixed, mapping
from tests.support.clusters import unique

UNKNOWN_ID = 99_999_999


@pytest.fixture
def registry(registry_url: str) -> Iterator[SchemaRegistry]:
    with SchemaRegistry(registry_url, timeout_s=30.0) as client:
        yield client


@pytest.fixture
def reader(registry_url: str) -> Iterator[SchemaRegistry]:
    """A second client, which knows nothing from its cache."""
    with SchemaRegistry(registry_url, timeout_s=30.0) as client:
        yield client


@pytest.fixture
def subject() -> str:
    """A subject that no other test has. It must be percent-encoded."""
    return unique("orders/ü value")


def avro(schema: Any, *references: Reference) -> Schema:
    return Schema(json.dumps(schema), references=references)


def json_schema(schema: Any) -> Schema:
    return Schema(json.dumps(schema), "JSON")


record = partial(avro_documents.record, name="Order")
A = field("a", "int")
NOTE = field("note", "string", default="")
FIRST, SECOND = avro(record(A)), avro(record(A, NOTE))
NEEDING = avro(record(A, field("note", "string")))
"""A schema that can't read data of the first one."""


def same(found: Schema, expected: Schema) -> bool:
    """Tells whether two schemas are equal but for blanks: a registry may keep a text in a standard form."""
    return (json.loads(found.text), *found[1:]) == (json.loads(expected.text), *expected[1:])


# Registering and finding.


def test_a_registered_schema_is_found_by_id_version_and_content(
    registry: SchemaRegistry, reader: SchemaRegistry, subject: str
) -> None:
    found = registry.register(subject, FIRST)
    assert (found.subject, found.version) == (subject, 1)
    assert same(found.schema, FIRST)
    by_id = reader.schema(found.id)
    assert by_id.id == found.id
    assert same(by_id.schema, FIRST)
    for other in (reader.version(subject, 1), reader.latest(subject), reader.look_up(subject, FIRST)):
        assert (other.id, other.subject, other.version) == (found.id, subject, 1)
        assert same(other.schema, FIRST)
    assert reader.cached(found.id) is not None


def test_a_schema_is_found_by_its_guid_where_the_registry_has_guids(
    registry: SchemaRegistry, reader: SchemaRegistry, subject: str
) -> None:
    """Apicurio 3.3 has none; Confluent's registry has them from 8.0 on, as the embedded one."""
    guid = registry.register(subject, FIRST).guid
    if guid is None:
        return
    found = reader.schema(guid)
    assert found.guid == guid
    assert same(found.schema, FIRST)
    with pytest.raises(SchemaNotFound) as raised:
        reader.schema("00000000-0000-0000-0000-000000000000")
    assert raised.value.code == 40403


def test_the_same_schema_adds_no_version(registry: SchemaRegistry, reader: SchemaRegistry, subject: str) -> None:
    first = registry.register(subject, FIRST)
    assert reader.register(subject, FIRST).id == first.id
    spaced = Schema(json.dumps(json.loads(FIRST.text), indent=2))
    assert reader.register(subject, spaced).id == first.id
    assert reader.register(subject, FIRST, normalize=True).id == first.id
    assert registry.versions(subject) == [1]


def test_the_same_schema_has_one_id_in_all_subjects(registry: SchemaRegistry, subject: str) -> None:
    first = registry.register(subject, FIRST)
    other = registry.register(unique("other"), FIRST)
    assert (other.id, other.version) == (first.id, 1)
    assert registry.register(subject, SECOND).id != first.id


def test_versions_are_listed_in_order(registry: SchemaRegistry, subject: str) -> None:
    second = [registry.register(subject, each) for each in (FIRST, SECOND)][-1]
    assert registry.versions(subject) == [1, 2]
    assert registry.latest(subject).id == registry.version(subject, "latest").id == second.id
    assert registry.version(subject, 1).id != second.id


def test_subjects_are_found_by_prefix(registry: SchemaRegistry, subject: str) -> None:
    names = [f"{subject}{end}" for end in ("-value", "-key")]
    for each in names:
        registry.register(each, FIRST)
    assert registry.subjects(subject) == sorted(names)
    assert set(names) <= set(registry.subjects())


@pytest.mark.parametrize(
    "schema",
    [
        json_schema({"type": "object", "properties": {"a": {"type": "integer"}}}),
        Schema('syntax = "proto3";\nmessage Order { string a = 1; }', "PROTOBUF"),
    ],
    ids=["JSON", "PROTOBUF"],
)
def test_a_schema_keeps_its_kind(
    registry: SchemaRegistry, reader: SchemaRegistry, subject: str, schema: Schema
) -> None:
    id = registry.register(subject, schema).id
    assert reader.schema(id).schema.kind == schema.kind
    assert reader.latest(subject).schema.kind == schema.kind
    assert reader.look_up(subject, schema).schema.kind == schema.kind
    assert registry.check(subject, schema) == []


# What is not there, and what is wrong.


def test_an_unknown_id_is_not_found(registry: SchemaRegistry) -> None:
    with pytest.raises(SchemaNotFound) as raised:
        registry.schema(UNKNOWN_ID)
    assert (raised.value.status, raised.value.code) == (404, 40403)


def test_an_unknown_subject_is_not_found(registry: SchemaRegistry, subject: str) -> None:
    for ask in (
        lambda: registry.versions(subject),
        lambda: registry.latest(subject),
        lambda: registry.version(subject, 1),
        lambda: registry.look_up(subject, FIRST),
        lambda: registry.delete_subject(subject),
    ):
        with pytest.raises(SchemaNotFound) as raised:
            ask()
        assert raised.value.code == 40401


def test_an_unknown_version_is_not_found(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    for ask in (
        lambda: registry.version(subject, 7),
        lambda: registry.delete_version(subject, 7),
        lambda: registry.check(subject, FIRST, 7),
    ):
        with pytest.raises(SchemaNotFound) as raised:
            ask()
        assert raised.value.code == 40402


def test_a_schema_that_the_subject_does_not_have_is_not_found(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    with pytest.raises(SchemaNotFound) as raised:
        registry.look_up(subject, SECOND)
    assert raised.value.code == 40403


@pytest.mark.parametrize(
    "schema",
    [Schema("no schema"), Schema("{"), avro({"type": "recordx"}), avro({"type": "record", "name": "R"}), avro("Order")],
    ids=["text", "JSON", "type", "fields", "name"],
)
def test_an_invalid_schema_is_refused(registry: SchemaRegistry, subject: str, schema: Schema) -> None:
    with pytest.raises(InvalidSchema) as raised:
        registry.register(subject, schema)
    assert (raised.value.status, raised.value.code) == (422, 42201)
    with pytest.raises(SchemaNotFound):
        registry.versions(subject)


def test_an_invalid_json_schema_is_refused(registry: SchemaRegistry, subject: str) -> None:
    with pytest.raises(InvalidSchema):
        registry.register(subject, json_schema({"type": "objectx"}))


# Compatibility.


def test_an_incompatible_schema_is_not_registered(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    with pytest.raises(SchemaIncompatible) as raised:
        registry.register(subject, NEEDING)
    assert raised.value.status == 409
    assert raised.value.messages  # Apicurio names the place, the embedded registry the reason, too.
    assert registry.versions(subject) == [1]


def test_a_check_adds_no_version(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    assert registry.check(subject, NEEDING) != []  # Apicurio gives no reasons.
    assert registry.check(subject, SECOND) == []
    assert registry.check(subject, NEEDING, 1) != []
    assert registry.check(subject, NEEDING, "all") != []
    assert registry.check(subject, SECOND, "all") == []
    assert registry.versions(subject) == [1]


def test_any_schema_is_compatible_with_an_unknown_subject(registry: SchemaRegistry, subject: str) -> None:
    assert registry.check(subject, FIRST) == registry.check(subject, FIRST, "all") == []


def test_the_level_of_a_subject_decides(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, SECOND)
    assert registry.compatibility(subject) == "BACKWARD"
    assert registry.set_compatibility("FORWARD", subject) == "FORWARD"
    assert registry.compatibility(subject) == "FORWARD"
    wider = avro(record(field("a", "long"), NOTE))
    assert registry.check(subject, wider) != []
    registry.set_compatibility("NONE", subject)
    assert registry.check(subject, wider) == []
    assert registry.register(subject, wider).version == 2


def test_a_transitive_level_counts_every_version(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, avro(record(A)))
    registry.register(subject, avro(record(A, NOTE)))
    # It reads the second version, and not the first.
    needing = avro(record(A, field("note", "string")))
    # Asked about "all", Apicurio compares every version at each level; Confluent's registry only those of the level.
    assert registry.check(subject, needing, 2) == []
    registry.set_compatibility("BACKWARD_TRANSITIVE", subject)
    assert registry.check(subject, needing, "all") != []
    with pytest.raises(SchemaIncompatible):
        registry.register(subject, needing)


def test_the_level_of_the_registry_is_set(registry: SchemaRegistry) -> None:
    assert registry.compatibility() == "BACKWARD"
    try:
        assert registry.set_compatibility("FULL") == "FULL"
        assert registry.compatibility() == "FULL"
    finally:
        registry.set_compatibility("BACKWARD")


def test_an_unknown_level_is_refused(registry: SchemaRegistry, subject: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        registry.set_compatibility("SIDEWARD", subject)
    assert raised.value.code == 42203


def tree(*more: Any) -> dict[str, Any]:
    return record(field("next", ["null", "Tree"]), *more, name="Tree")


INT, NUM, STR, NULL = ({"type": each} for each in ("integer", "number", "string", "null"))


def one(schema: Any, **more: Any) -> dict[str, Any]:
    """Returns the JSON schema of an object with one property."""
    return {"type": "object", "properties": {"a": schema}, **more}


def closed(schema: Any) -> dict[str, Any]:
    return {**schema, "additionalProperties": False}


def two(a: Any, b: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": a, "b": b}}


AVRO_PAIRS = [
    ("a field with a default", record(A), record(A, NOTE), True),
    ("a field without a default", record(A), record(A, field("note", "string")), False),
    ("an optional field without a default", record(A), record(A, field("note", ["null", "string"])), False),
    ("a field less", record(A, NOTE), record(A), True),
    ("another order", record(A, NOTE), record(NOTE, A), True),
    ("int to long", record(A), record(field("a", "long")), True),
    ("long to int", record(field("a", "long")), record(A), False),
    ("float to double", "float", "double", True),
    ("string to bytes", record(field("a", "string")), record(field("a", "bytes")), True),
    ("int to string", record(A), record(field("a", "string")), False),
    ("string to a union with it", record(field("a", "string")), record(field("a", ["null", "string"])), True),
    ("a union to one of its types", record(field("a", ["null", "string"])), record(field("a", "string")), False),
    ("a promotion in a union", record(field("a", ["null", "int"])), record(field("a", ["null", "long"])), True),
    ("a symbol more", enum("X"), enum("X", "Y"), True),
    ("a symbol less", enum("X", "Y"), enum("X"), False),
    ("a symbol less, with a default", enum("X", "Y"), enum("X", default="X"), True),
    ("another size", fixed(4), fixed(8), False),
    ("items promoted", array("int"), array("long"), True),
    ("items of another type", array("string"), array("long"), False),
    ("values of another type", mapping("string"), mapping("int"), False),
    ("a renamed field with an alias", record(field("old", "int")), record(field("new", "int", aliases=["old"])), True),
    ("a renamed field", record(field("old", "int")), record(field("new", "int")), False),
    ("a renamed record with an alias", record(A), record(A, name="Sale", aliases=["Order"]), True),
    ("a renamed record", record(A), record(A, name="Sale"), False),
    ("another namespace", record(A, namespace="x"), record(A, namespace="y"), True),
    ("a recursive record", tree(), tree(field("value", "int", default=0)), True),
    ("a recursive record without a default", tree(), tree(field("value", "int")), False),
    ("an inner record", record(field("i", record(A, name="I"))), record(field("i", record(A, NOTE, name="I"))), True),
]
JSON_PAIRS = [
    ("a wider type", one(INT), one(NUM), True),
    ("a narrower type", one(NUM), one(INT), False),
    ("null allowed", one(STR), one({"type": ["string", "null"]}), True),
    ("null refused", one({"type": ["string", "null"]}), one(STR), False),
    ("another type", one(INT), one(STR), False),
    ("a required property", one(INT), one(INT, required=["a"]), False),
    ("a property that is no longer required", one(INT, required=["a"]), one(INT), True),
    ("a property more in an open object", one(INT), two(INT, STR), False),
    ("a property more in a closed object", closed(one(INT)), closed(two(INT, STR)), True),
    ("a property less in a closed object", closed(two(INT, STR)), closed(one(INT)), False),
    ("a closed object", one(INT), closed(one(INT)), False),
    ("a value less", one({"enum": ["x", "y"]}), one({"enum": ["x"]}), False),
    ("a value more", one({"enum": ["x"]}), one({"enum": ["x", "y"]}), True),
    ("a higher minimum", one({**INT, "minimum": 0}), one({**INT, "minimum": 5}), False),
    ("a greater length", one({**STR, "maxLength": 5}), one({**STR, "maxLength": 9}), True),
    ("an inner object", one(one(INT)), one(one(STR)), False),
    ("an alternative more", one({"anyOf": [STR]}), one({"anyOf": [STR, NULL]}), True),
    ("an alternative less", one({"oneOf": [STR, NULL]}), one({"oneOf": [STR]}), False),
]


@pytest.mark.parametrize(
    ("old", "new", "is_compatible"), [each[1:] for each in AVRO_PAIRS], ids=[e[0] for e in AVRO_PAIRS]
)
def test_both_registries_judge_avro_alike(
    registry: SchemaRegistry, subject: str, old: Any, new: Any, is_compatible: bool
) -> None:
    registry.register(subject, avro(old))
    assert (registry.check(subject, avro(new)) == []) == is_compatible


@pytest.mark.parametrize(
    ("old", "new", "is_compatible"), [each[1:] for each in JSON_PAIRS], ids=[e[0] for e in JSON_PAIRS]
)
def test_both_registries_judge_json_alike(
    registry: SchemaRegistry, subject: str, old: Any, new: Any, is_compatible: bool
) -> None:
    registry.register(subject, json_schema(old))
    assert (registry.check(subject, json_schema(new)) == []) == is_compatible


# References.


@pytest.fixture
def customer(registry: SchemaRegistry, subject: str) -> Schema:
    """A record that references the first version of the subject."""
    registry.register(subject, FIRST)
    return avro(record(field("order", "Order"), name="Customer"), Reference("Order", subject, 1))


def test_a_schema_may_reference_a_version_of_another_subject(
    registry: SchemaRegistry, reader: SchemaRegistry, customer: Schema
) -> None:
    customers = unique("customer")
    id = registry.register(customers, customer).id
    for found in (reader.schema(id), reader.latest(customers), reader.look_up(customers, customer)):
        assert same(found.schema, customer)
    references = reader.references(reader.latest(customers))
    assert list(references) == ["Order"]
    assert same(references["Order"], FIRST)


def test_references_of_references_come_first(registry: SchemaRegistry, customer: Schema) -> None:
    customers, shops = unique("customer"), unique("shop")
    registry.register(customers, customer)
    # All types are named: Apicurio does not look for references of references itself.
    both = (Reference("Customer", customers, 1), *customer.references)
    shop = avro(record(field("customer", "Customer"), name="Shop"), *both)
    registry.register(shops, shop)
    assert list(registry.references(registry.latest(shops))) == ["Order", "Customer"]


def test_a_reference_to_nothing_is_refused(registry: SchemaRegistry, subject: str) -> None:
    schema = avro(record(field("order", "Order"), name="Customer"), Reference("Order", subject, 1))
    with pytest.raises(InvalidSchema) as raised:
        registry.register(unique("customer"), schema)
    assert raised.value.code == 42201
    with pytest.raises(SchemaNotFound):
        registry.references(schema)


def test_a_referenced_version_is_not_deleted(registry: SchemaRegistry, subject: str, customer: Schema) -> None:
    registry.register(unique("customer"), customer)
    for delete in (lambda: registry.delete_version(subject, 1), lambda: registry.delete_subject(subject)):
        with pytest.raises(InvalidSchema) as raised:
            delete()
        assert raised.value.code == 42206
    assert registry.versions(subject) == [1]


# Deleting.


def test_a_deleted_version_is_hidden(registry: SchemaRegistry, reader: SchemaRegistry, subject: str) -> None:
    ids = [registry.register(subject, each).id for each in (FIRST, SECOND)]
    assert registry.delete_version(subject, "latest") == 2
    assert registry.versions(subject) == [1]
    assert registry.latest(subject).id == ids[0]
    with pytest.raises(SchemaNotFound) as raised:
        registry.version(subject, 2)
    assert raised.value.code == 40402
    # Messages with its id are still read.
    assert same(reader.schema(ids[1]).schema, SECOND)
    again = registry.register(subject, SECOND)
    assert (again.id, again.version) == (ids[1], 3)


def test_a_version_is_deleted_permanently(registry: SchemaRegistry, subject: str) -> None:
    for each in (FIRST, SECOND):
        registry.register(subject, each)
    assert registry.delete_version(subject, 2) == 2
    assert registry.delete_version(subject, 2, permanent=True) == 2
    assert registry.versions(subject) == [1]


def test_a_deleted_subject_is_hidden_until_it_is_registered_again(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    assert registry.delete_subject(subject) == [1]
    assert registry.subjects(subject) == []
    assert registry.subjects(subject, deleted=True) == [subject]
    with pytest.raises(SchemaNotFound):
        registry.latest(subject)
    assert registry.register(subject, FIRST).version == 2


def test_a_subject_is_deleted_permanently(registry: SchemaRegistry, subject: str) -> None:
    registry.register(subject, FIRST)
    registry.delete_subject(subject)
    assert registry.delete_subject(subject, permanent=True) == [1]
    assert registry.subjects(subject, deleted=True) == []
    assert registry.register(subject, FIRST).version == 1


# On an event loop.


async def test_the_same_calls_are_awaited(registry_url: str, subject: str) -> None:
    async with AsyncSchemaRegistry(registry_url, timeout_s=30.0) as registry:
        found = await registry.register(subject, FIRST)
        assert await registry.versions(subject) == [1]
        assert (await registry.latest(subject)).id == found.id
        assert await registry.check(subject, NEEDING) != []
        with pytest.raises(SchemaIncompatible):
            await registry.register(subject, NEEDING)
        assert await registry.delete_subject(subject) == [1]
