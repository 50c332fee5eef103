"""Paths of secrets: which parts of a document they mask, and which documents have them."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.payloads.secret_paths import SecretPaths, escaped, shown
from awoke.text.secrets import HIDDEN


@pytest.mark.parametrize(
    ("paths", "document", "masked"),
    [
        (SecretPaths(["/card"]), {"card": 1, "item": 2}, {"card": HIDDEN, "item": 2}),
        (SecretPaths(["/card"]), {"card": None}, {"card": None}),
        (SecretPaths(["/card"]), "card", HIDDEN),
        (SecretPaths(["/card"]), 7, 7),
        (SecretPaths(["/0"]), ("card", 7), [HIDDEN, 7]),
        (SecretPaths([""]), {"card": 1}, HIDDEN),
        (SecretPaths(["/*/pin"]), [{"pin": 1}, {"pin": 2}], [{"pin": HIDDEN}, {"pin": HIDDEN}]),
        (SecretPaths(["/*/pin"]), {"a": {"pin": 1}}, {"a": {"pin": HIDDEN}}),
        (SecretPaths(["/1"]), ["a", "b", "c"], ["a", HIDDEN, "c"]),
        (SecretPaths(["/a~1b~0"]), {"a/b~": 1, "a": 2}, {"a/b~": HIDDEN, "a": 2}),
        (SecretPaths(["/~2"]), {"*": 1, "a": 2}, {"*": HIDDEN, "a": 2}),
        (
            SecretPaths(["/pin"], same=[("/next/*", "")]),
            {"pin": 1, "next": [{"pin": 2, "next": [{"pin": 3, "a": 4}]}]},
            {"pin": HIDDEN, "next": [{"pin": HIDDEN, "next": [{"pin": HIDDEN, "a": 4}]}]},
        ),
        (SecretPaths(), {"card": 1}, {"card": 1}),
    ],
)
def test_the_parts_that_paths_name_are_masked(paths: SecretPaths, document: Any, masked: Any) -> None:
    assert paths.masked(document) == masked


def test_links_that_lead_to_each_other_end() -> None:
    paths = SecretPaths(["/pin"], same=[("", "/a"), ("/a", ""), ("/a", "/a")])
    assert paths.masked({"a": {"a": {"pin": 1}}}) == {"a": {"a": {"pin": HIDDEN}}}


def test_a_replacement_gets_the_secret_and_its_path() -> None:
    paths = SecretPaths(["/cards/*/pin"])
    assert paths.masked({"cards": [{"pin": 7}]}, lambda value, path: f"{path}={value}") == {
        "cards": [{"pin": "/cards/*/pin=7"}]
    }


@pytest.mark.parametrize(
    ("paths", "document", "fits"),
    [
        (SecretPaths(["/card"]), {"card": None}, True),
        (SecretPaths(["/card"]), {"payload": {"card": 1}}, False),
        (SecretPaths(["/card"]), [], False),
        (SecretPaths(["/card"]), 4711, False),
        (SecretPaths([], ["/card"]), {}, True),
        (SecretPaths([], ["/card"]), "4711", False),
        (SecretPaths([], ["/card"]), ["4711"], False),
        (SecretPaths([], ["/*/card"]), ["4711"], True),
        (SecretPaths([], ["/1"]), ["4711"], True),
        (SecretPaths([], ["/card"]), None, True),
        (SecretPaths([""]), 4711, True),
        (SecretPaths(["/*/pin"]), [], True),
        (SecretPaths(["/*/pin"]), {"a": {"pin": 1}, "b": {}}, False),
        (SecretPaths(["/*/pin"]), {}, True),
        (SecretPaths(["/1"]), ["a"], False),
        (SecretPaths(["/1"]), ["a", "b"], True),
    ],
)
def test_a_document_fits_if_it_has_all_that_each_one_has(paths: SecretPaths, document: Any, fits: bool) -> None:
    assert paths.fits(document) is fits


@pytest.mark.parametrize(
    ("paths", "other", "is_covered"),
    [
        (SecretPaths(["/card"]), SecretPaths([], ["/card"]), True),
        (SecretPaths([], ["/card", "/pin"]), SecretPaths(["/card"]), True),
        (SecretPaths(["/card"]), SecretPaths(["/card"], ["/pin"]), False),
        (SecretPaths(["/card"]), SecretPaths(["/card"], same=[("/next", "")]), False),
        (SecretPaths(["/card"]), SecretPaths(["/card"], keyed=["/card"]), False),
        (SecretPaths(["/card"]), SecretPaths(), True),
        (SecretPaths(), SecretPaths(["/card"]), False),
    ],
)
def test_paths_cover_others_if_they_mask_all_of_these(paths: SecretPaths, other: SecretPaths, is_covered: bool) -> None:
    assert paths.covers(other) is is_covered


def test_paths_are_shown_as_people_write_them() -> None:
    assert [shown(each) for each in ("/cards/*/pin", "", f"/{escaped('*')}/a~1b")] == ["cards.*.pin", "", "*.a/b"]


def test_paths_without_any_are_none() -> None:
    assert not SecretPaths()
    assert SecretPaths(["/a"]) == SecretPaths(["/a", "/a"]) != SecretPaths([], ["/a"])
    assert len({SecretPaths(["/a"]), SecretPaths(["/a"])}) == 1
