"""The state of the embedded registry: versions, ids, references, and both ways to delete."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from awoke.payloads.registry.schema import Reference, Schema
from awoke.testing.registry.refusal import Refusal
from awoke.testing.registry.subjects import LATEST, Subjects, Version


def order(*fields: str, name: str = "Order") -> Schema:
    """Returns a record of fields with defaults: each is compatible with all others."""
    listed = [{"name": each, "type": "int", "default": 0} for each in fields]
    return Schema(json.dumps({"type": "record", "name": name, "fields": listed}))


def customer(subject: str = "order", version: int = 1) -> Schema:
    """Returns a record that references an order."""
    record = {"type": "record", "name": "Customer", "fields": [{"name": "order", "type": "Order"}]}
    return Schema(json.dumps(record), references=(Reference("Order", subject, version),))


@pytest.fixture
def subjects() -> Subjects:
    return Subjects("BACKWARD")


def numbers(versions: list[Version]) -> list[int]:
    return [each.number for each in versions]


def code(action: Callable[[], object]) -> int:
    """Returns the code of the refusal that an action ends with."""
    with pytest.raises(Refusal) as raised:
        action()
    return raised.value.code


def test_versions_are_numbered_from_1(subjects: Subjects) -> None:
    for fields in ("a", "ab", "abc"):
        subjects.register("order", order(*fields))
    assert numbers(subjects.versions("order")) == [1, 2, 3]
    assert subjects.version("order", 2).stored.schema == order(*"ab")
    assert subjects.version("order", LATEST).number == 3


def test_the_same_schema_adds_no_version_and_keeps_its_id(subjects: Subjects) -> None:
    first = subjects.register("order", order("a"))
    subjects.register("order", order("a", "b"))
    again = subjects.register("order", Schema(json.dumps(json.loads(order("a").text), indent=2)))
    assert again is first
    other = subjects.register("other", order("a"))
    assert (other.number, other.stored) == (1, first.stored)
    assert [(each.subject, each.number) for each in subjects.uses(first.stored.id)] == [("order", 1), ("other", 1)]


def test_a_guid_is_that_of_the_content(subjects: Subjects) -> None:
    first = subjects.register("order", order("a")).stored
    assert Subjects("NONE").register("else", order("a")).stored.guid == first.guid
    assert subjects.by_guid(first.guid.upper()) == subjects.by_id(first.id) == first
    assert subjects.register("order", order("a", "b")).stored.guid != first.guid


def test_what_is_not_there_is_refused_with_its_code(subjects: Subjects) -> None:
    subjects.register("order", order("a"))
    assert code(lambda: subjects.versions("none")) == 40401
    assert code(lambda: subjects.version("none", 1)) == 40401
    assert code(lambda: subjects.version("order", 2)) == 40402
    assert code(lambda: subjects.by_id(7)) == 40403
    assert code(lambda: subjects.by_guid("7")) == 40403
    assert code(lambda: subjects.uses(7)) == 40403
    assert code(lambda: subjects.look_up("none", order("a"))) == 40401
    assert code(lambda: subjects.look_up("order", order("b"))) == 40403
    assert code(lambda: subjects.delete_subject("none")) == 40401
    assert code(lambda: subjects.delete_version("order", 2)) == 40402


def test_subjects_are_sorted_and_found_by_prefix(subjects: Subjects) -> None:
    for name in ("b-value", "a-value", "b-key"):
        subjects.register(name, order("a"))
    assert subjects.names() == ["a-value", "b-key", "b-value"]
    assert subjects.names("b-") == ["b-key", "b-value"]


def test_an_incompatible_schema_is_no_version(subjects: Subjects) -> None:
    subjects.register("order", order("a"))
    needing = Schema(order("a", "b").text.replace(', "default": 0', ""))
    assert code(lambda: subjects.register("order", needing)) == 409
    assert numbers(subjects.versions("order")) == [1]
    assert subjects.check("order", needing) == subjects.check("order", needing, LATEST)
    assert subjects.check("order", needing, 1)[0].startswith("/fields/1: the reader needs the field `b`")
    subjects.levels.set("NONE", "order")
    assert subjects.register("order", needing).number == 2


def test_a_transitive_level_counts_every_version(subjects: Subjects) -> None:
    subjects.levels.set("NONE")
    subjects.register("order", Schema('"long"'))
    subjects.register("order", Schema('"int"'))
    new = Schema('{"type": "int", "doc": "new"}')
    subjects.levels.set("BACKWARD")
    assert subjects.check("order", new) == []
    subjects.levels.set("BACKWARD_TRANSITIVE")
    assert [each.rpartition("(")[2] for each in subjects.check("order", new)] == [
        "reader: the new schema, writer: version 1)"
    ]
    assert subjects.check("order", new, 2) == []


def test_any_schema_is_compatible_with_a_subject_without_versions(subjects: Subjects) -> None:
    assert subjects.check("none", order("a")) == subjects.check("none", order("a"), LATEST) == []
    assert code(lambda: subjects.check("none", order("a"), 1)) == 40402
    assert code(lambda: subjects.check("none", Schema("{"))) == 42201


def test_a_reference_leads_to_the_types_of_another_subject(subjects: Subjects) -> None:
    version = subjects.register("order", order("a"))
    assert code(lambda: subjects.register("customer", customer(version=2))) == 42201
    assert code(lambda: subjects.register("customer", customer("none"))) == 42201
    found = subjects.register("customer", customer())
    assert subjects.look_up("customer", customer()) is found
    assert code(lambda: subjects.look_up("customer", Schema(customer().text))) == 40403
    assert subjects.referrers(version) == [found.stored.id]


def test_references_of_references_are_found(subjects: Subjects) -> None:
    subjects.register("order", order("a"))
    subjects.register("customer", customer())
    record = {"type": "record", "name": "Shop", "fields": [{"name": "c", "type": "Customer"}]}
    shop = Schema(json.dumps(record), references=(Reference("Customer", "customer", 1),))
    assert subjects.register("shop", shop).number == 1


def test_a_version_that_is_referenced_is_not_deleted(subjects: Subjects) -> None:
    subjects.register("order", order("a"))
    subjects.register("order", order("a", "b"))
    subjects.register("customer", customer(version=2))
    assert code(lambda: subjects.delete_version("order", 2)) == 42206
    assert code(lambda: subjects.delete_subject("order")) == 42206
    assert numbers(subjects.versions("order")) == [1, 2]
    subjects.delete_subject("customer")
    assert subjects.delete_subject("order") == [1, 2]


def test_a_deleted_version_is_hidden_and_its_number_stays_in_use(subjects: Subjects) -> None:
    for fields in ("a", "ab"):
        subjects.register("order", order(*fields))
    stored = subjects.version("order", 2).stored
    assert subjects.delete_version("order", LATEST) == 2
    assert numbers(subjects.versions("order")) == [1]
    assert numbers(subjects.versions("order", deleted=True)) == [1, 2]
    assert code(lambda: subjects.version("order", 2)) == 40402
    assert subjects.version("order", 2, deleted=True).is_deleted
    assert code(lambda: subjects.look_up("order", order("a", "b"))) == 40403
    assert subjects.look_up("order", order("a", "b"), deleted=True).number == 2
    assert subjects.by_id(stored.id) == stored
    again = subjects.register("order", order("a", "b"))
    assert (again.number, again.stored.id) == (3, stored.id)


def test_a_version_is_deleted_softly_before_it_is_deleted_permanently(subjects: Subjects) -> None:
    stored = subjects.register("order", order("a")).stored
    assert code(lambda: subjects.delete_version("order", 1, permanent=True)) == 40407
    assert subjects.delete_version("order", 1) == 1
    assert code(lambda: subjects.delete_version("order", 1)) == 40406
    assert subjects.delete_version("order", 1, permanent=True) == 1
    assert code(lambda: subjects.versions("order", deleted=True)) == 40401
    assert code(lambda: subjects.by_id(stored.id)) == 40403


def test_a_subject_is_deleted_softly_before_it_is_deleted_permanently(subjects: Subjects) -> None:
    subjects.register("order", order("a"))
    subjects.levels.set("FULL", "order")
    assert code(lambda: subjects.delete_subject("order", permanent=True)) == 40405
    assert subjects.delete_subject("order") == [1]
    assert code(lambda: subjects.delete_subject("order")) == 40404
    assert subjects.levels.own("order") is None
    assert (subjects.names(), subjects.names(deleted=True)) == ([], ["order"])
    assert subjects.delete_subject("order", permanent=True) == [1]
    assert subjects.names(deleted=True) == []
    assert subjects.register("order", order("b")).number == 1


def test_a_schema_stays_while_another_subject_has_it(subjects: Subjects) -> None:
    stored = subjects.register("order", order("a")).stored
    subjects.register("other", order("a"))
    subjects.delete_subject("order")
    subjects.delete_subject("order", permanent=True)
    assert [each.subject for each in subjects.uses(stored.id)] == ["other"]
    subjects.delete_subject("other")
    assert subjects.uses(stored.id) == []
    assert [each.subject for each in subjects.uses(stored.id, deleted=True)] == ["other"]
