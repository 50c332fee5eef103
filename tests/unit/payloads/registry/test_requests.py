"""The requests: method, path and body of each, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.payloads.registry import Reference, RegisteredSchema, RegistryRefused, Schema, SchemaNotFound
from awoke.payloads.registry.requests import Requests
from awoke.waiting.drive import drive

AVRO = Schema('"int"')
PROTOBUF = Schema("syntax", "PROTOBUF", (Reference("b.proto", "b", 2),))
GUID = "3f1c0000-0000-0000-0000-00000000beef"
WHOLE = {"subject": "s", "version": 3, "id": 7, "guid": GUID, "schema": '"int"'}
FOUND = RegisteredSchema(AVRO, 7, GUID, "s", 3)


class Script:
    """A transport with one answer after the other; keeps the requests."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[str, str, Any]] = []

    async def send(self, method: str, path: str, body: object | None = None) -> Any:
        self.sent.append((method, path, body))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def url_of(self, path: str) -> str:
        return f"http://host{path}"


Call = Callable[[Requests], Coroutine[Any, Any, Any]]


@pytest.mark.parametrize(
    ("call", "answer", "sent", "result"),
    [
        (lambda r: r.schema(7), {"schema": '"int"'}, "GET /schemas/ids/7", RegisteredSchema(AVRO, 7)),
        (
            lambda r: r.schema(7, subject=":.a:s/t"),
            {"schema": '"int"', "schemaType": None, "references": None, "guid": GUID, "more": 1},
            "GET /schemas/ids/7?subject=%3A.a%3As%2Ft",
            RegisteredSchema(AVRO, 7, GUID),
        ),
        (lambda r: r.schema(GUID), {"schema": '"int"'}, f"GET /schemas/guids/{GUID}", RegisteredSchema(AVRO, -1, GUID)),
        (lambda r: r.subjects(), ["b", "a"], "GET /subjects", ["a", "b"]),
        (
            lambda r: r.subjects("o-", deleted=True),
            ["b", "o-1"],
            "GET /subjects?subjectPrefix=o-&deleted=true",
            ["o-1"],
        ),
        (lambda r: r.versions("s"), [3, 1], "GET /subjects/s/versions", [1, 3]),
        (lambda r: r.version("a/b c?#%", 3), WHOLE, "GET /subjects/a%2Fb%20c%3F%23%25/versions/3", FOUND),
        (lambda r: r.version("s", "latest"), WHOLE, "GET /subjects/s/versions/latest", FOUND),
        (lambda r: r.look_up("s", AVRO), WHOLE, "POST /subjects/s", FOUND),
        (lambda r: r.register("s", AVRO), WHOLE, "POST /subjects/s/versions", FOUND),
        (lambda r: r.register("s", AVRO, normalize=True), WHOLE, "POST /subjects/s/versions?normalize=true", FOUND),
        (
            lambda r: r.check("s", AVRO),
            {"is_compatible": True},
            "POST /compatibility/subjects/s/versions/latest?verbose=true",
            [],
        ),
        (
            lambda r: r.check("s", AVRO, 2),
            {"is_compatible": False, "messages": ["a", "b"]},
            "POST /compatibility/subjects/s/versions/2?verbose=true",
            ["a", "b"],
        ),
        (
            lambda r: r.check("s", AVRO, "all"),
            {"is_compatible": False},
            "POST /compatibility/subjects/s/versions?verbose=true",
            ["the registry gives no reason"],
        ),
        (lambda r: r.compatibility(), {"compatibilityLevel": "FULL"}, "GET /config", "FULL"),
        (
            lambda r: r.compatibility("s"),
            {"compatibilityLevel": "BACKWARD"},
            "GET /config/s?defaultToGlobal=true",
            "BACKWARD",
        ),
        (lambda r: r.set_compatibility("FULL"), {"compatibility": "FULL"}, "PUT /config", "FULL"),
        (lambda r: r.set_compatibility("FULL", "s"), {"compatibility": "FULL"}, "PUT /config/s", "FULL"),
        (lambda r: r.delete_subject("s"), [2, 1], "DELETE /subjects/s", [1, 2]),
        (lambda r: r.delete_subject("s", permanent=True), [1], "DELETE /subjects/s?permanent=true", [1]),
        (lambda r: r.delete_version("s", 2), 2, "DELETE /subjects/s/versions/2", 2),
        (
            lambda r: r.delete_version("s", "latest", permanent=True),
            2,
            "DELETE /subjects/s/versions/latest?permanent=true",
            2,
        ),
    ],
)
def test_each_request_has_its_path_and_its_result(call: Call, answer: Any, sent: str, result: Any) -> None:
    script = Script(answer)
    assert drive(call(Requests(script))) == result
    assert [f"{method} {path}" for method, path, _ in script.sent] == [sent]


@pytest.mark.parametrize(
    "call",
    [lambda r: r.look_up("s", PROTOBUF), lambda r: r.register("s", PROTOBUF), lambda r: r.check("s", PROTOBUF)],
)
def test_a_body_has_the_schema_with_its_kind_and_references(call: Call) -> None:
    script = Script({**WHOLE, "is_compatible": True})
    drive(call(Requests(script)))
    references = [{"name": "b.proto", "subject": "b", "version": 2}]
    assert script.sent[0][2] == {"schema": "syntax", "schemaType": "PROTOBUF", "references": references}


def test_the_body_of_an_avro_schema_has_no_kind() -> None:
    script = Script(WHOLE)
    drive(Requests(script).look_up("s", AVRO))
    assert script.sent[0][2] == {"schema": '"int"'}


def test_an_answer_has_kind_and_references() -> None:
    references = [{"name": "b.proto", "subject": "b", "version": 2}]
    script = Script({**WHOLE, "schema": "syntax", "schemaType": "PROTOBUF", "references": references})
    assert drive(Requests(script).version("s", 3)).schema == PROTOBUF


def test_a_registry_that_tells_the_id_only_is_asked_for_the_version() -> None:
    script = Script({"id": 7}, {"subject": "s", "version": 3, "id": 7})
    registered = drive(Requests(script).register("s", PROTOBUF, normalize=True))
    assert registered == RegisteredSchema(PROTOBUF, 7, None, "s", 3)
    assert [path for _, path, _ in script.sent] == ["/subjects/s/versions?normalize=true", "/subjects/s?normalize=true"]


@pytest.mark.parametrize("version", ["latest", "all"])
@pytest.mark.parametrize("code", [40401, 40402])
def test_a_subject_without_versions_is_compatible_with_any_schema(version: Any, code: int) -> None:
    script = Script(SchemaNotFound("gone", code=code))
    assert drive(Requests(script).check("s", AVRO, version)) == []


@pytest.mark.parametrize(("version", "code"), [(9, 40401), (9, 40402), ("latest", 40403)])
def test_a_check_against_a_missing_version_is_an_error(version: Any, code: int) -> None:
    with pytest.raises(SchemaNotFound):
        drive(Requests(Script(SchemaNotFound("gone", code=code))).check("s", AVRO, version))


@pytest.mark.parametrize("subject", ["", ".", ".."])
@pytest.mark.parametrize(
    "call",
    [lambda r, s: r.versions(s), lambda r, s: r.check(s, AVRO), lambda r, s: r.compatibility(s)],
)
def test_a_subject_that_would_change_the_path_is_refused(call: Any, subject: str) -> None:
    script = Script()
    with pytest.raises(ConfigError, match="can't have the name"):
        drive(call(Requests(script), subject))
    assert script.sent == []


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda r: r.subjects(), {"a": 1}),
        (lambda r: r.versions("s"), ["1"]),
        (lambda r: r.schema(7), {"id": 7}),
        (lambda r: r.version("s", 1), {"schema": 7}),
        (lambda r: r.check("s", AVRO), None),
        (lambda r: r.delete_version("s", 1), [1]),
    ],
)
def test_an_answer_of_another_form_is_refused_with_the_place(call: Call, answer: Any) -> None:
    with pytest.raises(
        RegistryRefused, match=r"not the answer of a schema registry: \w+ http://host/\S+: (Expected|Object)"
    ) as refused:
        drive(call(Requests(Script(answer))))
    assert refused.value.url.startswith("http://host/")
