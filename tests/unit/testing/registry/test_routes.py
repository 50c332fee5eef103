"""The REST API: paths, parameters of the query, and the JSON of requests and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from awoke.testing.registry.routes import RegistryRequest, Routes
from awoke.testing.registry.subjects import Subjects

INT, LONG = ({"schema": f'"{name}"'} for name in ("int", "long"))


class Api:
    """Requests without a network."""

    def __init__(self) -> None:
        self._routes = Routes(Subjects("BACKWARD"))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the JSON of an answer with the status 200; of another one the status and the error code."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self._routes.answer(RegistryRequest(method, path, b"" if body is None else content))
        found = json.loads(answer.text)
        return found if answer.status == 200 else (answer.status, found["error_code"])


@pytest.fixture
def api() -> Api:
    return Api()


def test_a_new_version_is_found_on_every_path(api: Api) -> None:
    found = api.ask("POST", "/subjects/order/versions", INT)
    guid = found["guid"]
    assert found == {"id": 1, "version": 1, "guid": guid, "schema": '"int"'}
    whole = {"subject": "order", **found}
    assert api.ask("GET", "/subjects/order/versions/1") == whole
    assert api.ask("GET", "/subjects/order/versions/latest") == whole
    assert api.ask("GET", "/subjects/order/versions/-1") == whole
    assert api.ask("GET", "/subjects/order/versions/1/schema") == "int"
    assert api.ask("POST", "/subjects/order", INT) == whole
    assert api.ask("GET", "/schemas/ids/1?subject=order") == {"guid": guid, "schema": '"int"'}
    assert api.ask("GET", "/schemas/ids/1/schema") == "int"
    assert api.ask("GET", "/schemas/ids/1/subjects") == ["order"]
    assert api.ask("GET", "/schemas/ids/1/versions") == [{"subject": "order", "version": 1}]
    assert api.ask("GET", f"/schemas/guids/{guid}") == {"guid": guid, "schema": '"int"'}
    assert api.ask("GET", "/subjects") == ["order"]
    assert api.ask("GET", "/subjects/order/versions") == [1]


def test_the_kind_and_the_references_are_in_the_answer(api: Api) -> None:
    inner = {"schema": '{"type": "null"}', "schemaType": "JSON", "references": []}
    api.ask("POST", "/subjects/inner/versions", inner)
    references = [{"name": "inner.json", "subject": "inner", "version": 1}]
    outer = {"schema": '{"$ref": "inner.json"}', "schemaType": "JSON", "references": references}
    assert api.ask("POST", "/subjects/outer/versions", outer)["references"] == references
    assert api.ask("GET", "/subjects/inner/versions/1/referencedby") == [2]
    found = api.ask("GET", "/schemas/ids/2")
    assert (found["schemaType"], found["references"]) == ("JSON", references)
    assert "references" not in api.ask("GET", "/schemas/ids/1")


def test_subjects_may_have_any_characters(api: Api) -> None:
    api.ask("POST", "/subjects/a%2Fb%20%C3%A4/versions", INT)
    assert api.ask("GET", "/subjects?subjectPrefix=a%2F") == ["a/b ä"]
    assert api.ask("GET", "/subjects?subjectPrefix=b") == []
    assert api.ask("GET", "/subjects/a%2Fb%20%C3%A4/versions") == [1]


def test_deleted_versions_are_shown_on_demand(api: Api) -> None:
    api.ask("POST", "/subjects/order/versions", INT)
    api.ask("POST", "/subjects/order/versions", LONG)
    assert api.ask("DELETE", "/subjects/order/versions/latest") == 2
    assert api.ask("GET", "/subjects/order/versions/2") == (404, 40402)
    assert api.ask("GET", "/subjects/order/versions/2?deleted=true")["id"] == 2
    assert api.ask("POST", "/subjects/order", LONG) == (404, 40403)
    assert api.ask("POST", "/subjects/order?deleted=TRUE", LONG)["id"] == 2
    assert api.ask("DELETE", "/subjects/order/versions/2?permanent=true") == 2
    assert api.ask("DELETE", "/subjects/order") == [1]
    assert api.ask("GET", "/subjects") == []
    assert api.ask("GET", "/subjects?deleted=true") == ["order"]
    assert api.ask("GET", "/subjects/order/versions?deleted=true") == [1]
    assert api.ask("DELETE", "/subjects/order?permanent=true") == [1]


def test_compatibility_is_checked_without_adding_a_version(api: Api) -> None:
    api.ask("POST", "/subjects/order/versions", LONG)
    for path in ("/compatibility/subjects/order/versions", "/compatibility/subjects/order/versions/1"):
        assert api.ask("POST", path, INT) == {"is_compatible": False}
        assert api.ask("POST", f"{path}?verbose=true", LONG) == {"is_compatible": True, "messages": []}
        assert len(api.ask("POST", f"{path}?verbose=true", INT)["messages"]) == 1
    assert api.ask("POST", "/subjects/order/versions", INT) == (409, 409)
    assert api.ask("GET", "/subjects/order/versions") == [1]
    assert api.ask("POST", "/compatibility/subjects/order/versions/2", INT) == (404, 40402)


def test_levels_are_read_set_and_removed(api: Api) -> None:
    assert api.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert api.ask("PUT", "/config", {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert api.ask("GET", "/config/order") == (404, 40408)
    assert api.ask("GET", "/config/order?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert api.ask("PUT", "/config/order", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert api.ask("GET", "/config/order") == {"compatibilityLevel": "NONE"}
    assert api.ask("DELETE", "/config/order") == {"compatibilityLevel": "NONE"}
    assert api.ask("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert api.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert api.ask("PUT", "/config", {"compatibility": "WRONG"}) == (422, 42203)
    assert api.ask("PUT", "/config", {}) == (422, 42203)


def test_the_registry_tells_of_itself(api: Api) -> None:
    assert api.ask("GET", "/") == {}
    assert api.ask("GET", "/mode") == {"mode": "READWRITE"}
    assert api.ask("GET", "/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/nowhere", None, (404, 404)),
        ("GET", "/schemas/ids/x", None, (404, 404)),
        ("GET", "/schemas/ids/1", None, (404, 40403)),
        ("PUT", "/subjects", {}, (405, 405)),
        ("GET", "/subjects/order", None, (405, 405)),
        ("GET", "/subjects/order/versions", None, (404, 40401)),
        ("GET", "/subjects/order/versions/0", None, (422, 42202)),
        ("GET", "/subjects/order/versions/x", None, (422, 42202)),
        ("GET", "/subjects/order/versions/2147483648", None, (422, 42202)),
        ("POST", "/subjects/order/versions", b"{", (400, 400)),
        ("POST", "/subjects/order/versions", b"\xff", (400, 400)),
        ("POST", "/subjects/order/versions", [], (400, 400)),
        ("POST", "/subjects/order/versions", {}, (422, 42201)),
        ("POST", "/subjects/order/versions", {"schema": 5}, (422, 42201)),
        ("POST", "/subjects/order/versions", {"schema": "{"}, (422, 42201)),
        ("POST", "/subjects/order/versions", {"schema": '"int"', "schemaType": "XML"}, (422, 42201)),
        ("POST", "/subjects/order/versions", {"schema": '"int"', "references": [{"name": "a"}]}, (422, 42201)),
    ],
)
def test_a_faulty_request_is_refused(api: Api, method: str, path: str, body: Any, expected: tuple[int, int]) -> None:
    assert api.ask(method, path, body) == expected
