"""Refusals: the status and the code of each are Confluent's."""

from __future__ import annotations

import pytest

from awoke.testing.registry import refusal
from awoke.testing.registry.refusal import Refusal


@pytest.mark.parametrize(
    ("error", "status", "code", "text"),
    [
        (refusal.bad_request("no JSON"), 400, 400, "no JSON"),
        (refusal.unauthorized(), 401, 401, "Unauthorized"),
        (refusal.path_not_found("/x"), 404, 404, "/x"),
        (refusal.subject_not_found("s"), 404, 40401, "Subject 's' not found."),
        (refusal.version_not_found(3), 404, 40402, "Version 3 not found."),
        (refusal.schema_not_found(7), 404, 40403, "Schema 7 not found"),
        (refusal.schema_not_found(), 404, 40403, "Schema not found"),
        (refusal.subject_soft_deleted("s"), 404, 40404, "was soft deleted"),
        (refusal.subject_not_soft_deleted("s"), 404, 40405, "was not deleted first"),
        (refusal.version_soft_deleted("s", 1), 404, 40406, "Subject 's' Version 1 was soft deleted"),
        (refusal.version_not_soft_deleted("s", 1), 404, 40407, "Subject 's' Version 1 was not deleted first"),
        (refusal.level_not_configured("s"), 404, 40408, "subject-level compatibility"),
        (refusal.method_not_allowed("PUT", "/x"), 405, 405, "PUT /x"),
        (refusal.incompatible("s", ["first", "second"]), 409, 409, "details: [first; second]"),
        (refusal.invalid_schema("no text"), 422, 42201, "Invalid schema: no text"),
        (refusal.invalid_version("x"), 422, 42202, "'x' is not a valid version id"),
        (refusal.invalid_level("X", ("NONE", "FULL")), 422, 42203, "'X'. Valid values are NONE, FULL"),
        (refusal.reference_exists("s", 1), 422, 42206, "{subject=s,version=1}"),
    ],
)
def test_a_refusal_has_its_status_code_and_message(error: Refusal, status: int, code: int, text: str) -> None:
    assert (error.status, error.code) == (status, code)
    assert text in error.message
    assert str(error) == error.message
