"""Errors: the class for each answer, their texts, and the tree."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from typing import Any

import pytest

from awoke.errors import AwokeError
from awoke.payloads.registry import errors
from awoke.payloads.registry.errors import (
    InvalidSchema,
    RegistryError,
    RegistryRefused,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaNotFound,
    clean,
    error_of_answer,
    parsed,
)

URL = "http://host:8081/schemas/ids/7"


def error_for(status: int, document: Any, secrets: list[str] | None = None) -> RegistryError:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return error_of_answer("GET", URL, status, content, secrets or [])


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, 40101, RegistryUnauthorized),
        (403, 40301, RegistryUnauthorized),
        (404, 40401, SchemaNotFound),
        (404, 40402, SchemaNotFound),
        (404, 40403, SchemaNotFound),
        (404, 40405, SchemaNotFound),
        (404, 404, RegistryRefused),
        (405, 405, RegistryRefused),
        (409, 409, SchemaIncompatible),
        (422, 42201, InvalidSchema),
        (422, 42203, InvalidSchema),
        (429, 42901, RegistryUnavailable),
        (500, 50001, RegistryUnavailable),
        (503, 503, RegistryUnavailable),
        (302, 302, RegistryRefused),
        (418, 418, RegistryRefused),
    ],
)
def test_each_status_has_its_error(status: int, code: int, kind: type[RegistryError]) -> None:
    error = error_for(status, {"error_code": code, "message": "as it is"})
    assert type(error) is kind
    assert (error.url, error.status, error.code) == (URL, status, code)
    assert f"GET {URL} answered {status} ({code}): as it is; " in str(error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, RegistryRefused),
        (401, RegistryUnauthorized),
        (404, RegistryRefused),
        (409, RegistryRefused),
        (422, RegistryRefused),
        (502, RegistryUnavailable),
    ],
)
@pytest.mark.parametrize("content", [b"<html>", b"", b"\xff", b'"text"', b"[" * 100_000, b'{"error_code": "7"}'])
def test_an_answer_that_no_registry_gives_has_an_error_too(
    status: int, kind: type[RegistryError], content: bytes
) -> None:
    error = error_for(status, content)
    assert type(error) is kind
    assert (error.status, error.code) == (status, None)


def test_a_wrong_address_is_not_taken_for_an_unknown_schema() -> None:
    error = error_for(404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert "not the answer of a schema registry" in str(error)
    assert "check its address" in str(error)


def test_a_refused_request_is_not_taken_for_a_wrong_address() -> None:
    assert str(error_for(400, {"error_code": 40001, "message": "m"})).startswith("the schema registry refuses")


@pytest.mark.parametrize(
    ("document", "messages"),
    [
        ({"error_code": 409, "message": "field gone"}, ["field gone"]),
        ({"error_code": 409, "message": "m", "messages": ["a", "b"]}, ["a", "b"]),
        ({"error_code": 409}, []),
    ],
)
def test_an_incompatible_schema_has_the_reasons(document: Any, messages: list[str]) -> None:
    error = error_for(409, document)
    assert isinstance(error, SchemaIncompatible)
    assert error.messages == messages


def test_the_registrys_words_control_no_terminal_and_repeat_no_secret() -> None:
    error = error_for(409, {"error_code": 409, "message": "\x1b[2J canary-token\n" + "x" * 10_000}, ["canary-token"])
    assert isinstance(error, SchemaIncompatible)
    assert "canary" not in str(error) + str(error.messages)
    assert str(error).isprintable()
    assert "\\x1b[2J [secret]" in str(error)
    assert len(str(error)) < 1_500


def test_an_empty_secret_hides_nothing() -> None:
    assert clean("as it is", [""]) == "as it is"


def test_an_error_shows_no_user_and_no_password() -> None:
    error = RegistryUnavailable("GET http://ada:canary@host:1/x", "http://ada:canary@host:1/x")
    assert "canary" not in str(error) + repr(error) + error.url


def test_an_error_can_be_copied_and_pickled() -> None:
    error = error_for(409, {"error_code": 409, "message": "m"})
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is SchemaIncompatible
        assert (str(other), vars(other)) == (str(error), vars(error))


def test_every_error_stands_in_the_tree() -> None:
    assert errors.__doc__ is not None
    kinds = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    assert len(kinds) == 7
    for kind in kinds:
        assert kind.__name__ in errors.__doc__
        assert issubclass(kind, RegistryError)
        assert issubclass(kind, AwokeError)


def test_json_is_told_from_other_content() -> None:
    assert parsed(b"[1]") == [1]
    with pytest.raises(ValueError, match="no JSON"):
        parsed(b"[" * 100_000)
