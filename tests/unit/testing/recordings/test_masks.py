"""Secrets are replaced before records are written."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke import ConfigError
from awoke.declare.secret_topics import SecretPart
from awoke.payloads.secret_fields import paths_of
from awoke.payloads.secret_paths import SecretPaths
from awoke.testing.messages import MessageParts, Pairs
from awoke.testing.recordings.masks import MaskRefused, Masks
from awoke.testing.recordings.recording import Recorded


def record(value: Any = None, key: bytes | None = None, headers: Pairs | None = None, offset: int = 0) -> Recorded:
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return Recorded(0, MessageParts(offset, data, key, headers or [], 5))


def value_of(masks: Masks, value: Any) -> Any:
    return json.loads(masks.masked(record(value)).parts.value or b"")


def test_a_field_is_replaced_by_a_hash_and_the_rest_is_kept() -> None:
    masks = Masks(["card.number"])
    found = value_of(masks, {"id": 1, "card": {"number": "4111", "type": "visa"}})
    assert found["card"]["number"].startswith("masked-")
    assert found == {"id": 1, "card": {"number": found["card"]["number"], "type": "visa"}}
    masks.check_found()


def test_equal_contents_have_equal_hashes_in_one_recording_only() -> None:
    masks, other = Masks(["a"]), Masks(["a"])
    assert value_of(masks, {"a": "x"}) == value_of(masks, {"a": "x"}) != value_of(masks, {"a": "y"})
    assert value_of(masks, {"a": "x"}) != value_of(other, {"a": "x"})


def test_recordings_with_one_key_have_equal_hashes() -> None:
    one, other = (Masks(["a"], hash_key=b"key") for _ in range(2))
    assert (
        value_of(one, {"a": "x"}) == value_of(other, {"a": "x"}) != value_of(Masks(["a"], hash_key=b"no"), {"a": "x"})
    )


@pytest.mark.parametrize("style", ["hash", "stars"])
def test_a_replacement_has_the_type_of_what_it_replaces(style: Any) -> None:
    given = {"a": {"text": "x", "int": 5, "float": 1.5, "bool": True, "none": None, "list": [1, "y"]}}
    found = value_of(Masks(["a"], style=style), given)["a"]
    assert {name: type(each) for name, each in found.items()} == {name: type(each) for name, each in given["a"].items()}
    assert [type(each) for each in found["list"]] == [int, str]
    assert (found["text"], found["int"], found["float"], found["list"]) != ("x", 5, 1.5, [1, "y"])
    assert found["bool"] is False


def test_stars_tell_nothing() -> None:
    found = value_of(Masks(["a", "b"], style="stars"), {"a": "secret", "b": 77})
    assert found == {"a": "***", "b": 0}


def test_a_field_is_replaced_in_each_element_of_a_list() -> None:
    found = value_of(Masks(["lines.price"], style="stars"), {"lines": [{"price": 3}, {"price": 4, "id": 1}, {}]})
    assert found == {"lines": [{"price": 0}, {"price": 0, "id": 1}, {}]}
    assert value_of(Masks(["price"], style="stars"), [{"price": 3}]) == [{"price": 0}]


@pytest.mark.parametrize("value", [b"junk", b"\xff", b'"4111"', b"5", b"NaN"])
def test_a_value_whose_fields_cant_be_masked_is_refused(value: bytes) -> None:
    with pytest.raises(MaskRefused, match="partition 0 offset 7: the value is no JSON object") as raised:
        Masks(["card"]).masked(record(value, offset=7))
    assert value.decode(errors="replace") not in str(raised.value).replace("7", "")


def test_a_tombstone_and_a_value_without_the_field_have_nothing_to_mask() -> None:
    masks = Masks(["card"])
    assert masks.masked(record(None)) == record(None)
    assert value_of(masks, {"id": 1, "other": {"card": 1}}) == {"id": 1, "other": {"card": 1}}
    with pytest.raises(MaskRefused, match="no record has what these mask: --mask card; nothing was written"):
        masks.check_found()


def test_without_masks_a_record_stays_as_it_is() -> None:
    given = record(b"\xff", b"k", [("h", b"x")])
    assert Masks().masked(given) == given
    Masks().check_found()


def test_keys_and_headers_are_masked_whole() -> None:
    masks = Masks(headers=["token"], key=True, style="stars")
    found = masks.masked(record(b"junk", b"k", [("token", b"x"), ("token", None), ("other", b"y")])).parts
    assert found == MessageParts(0, b"junk", b"***", [("token", b"***"), ("token", None), ("other", b"y")], 5)
    masks.check_found()
    assert masks.names == ["header:token", "key"]


def test_a_key_of_digits_stays_a_number() -> None:
    found = Masks(key=True).masked(record(key=b"4711")).parts.key
    assert found is not None
    assert found.isdigit()
    assert found != b"4711"


def test_a_header_that_is_never_there_is_refused() -> None:
    masks = Masks(headers=["tokne"])
    masks.masked(record(headers=[("token", b"x")]))
    with pytest.raises(MaskRefused, match="--mask-header tokne"):
        masks.check_found()


@pytest.mark.parametrize("field", ["", "a..b", ".a"])
def test_a_path_with_an_empty_name_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match="--mask takes the path"):
        Masks([field])


PAID = [
    SecretPart("orders", "value", "json", SecretPaths(["/card"], ["/more/*/pin"])),
    SecretPart("orders", "key", "json", SecretPaths([""])),
]


@pytest.mark.parametrize(
    ("value", "found", "names"),
    [
        ({"card": "4711", "id": 1}, {"card": "***", "id": 1}, ["value:card"]),
        (
            {"card": 4711, "more": [{"pin": "4711", "id": 2}]},
            {"card": 0, "more": [{"pin": "***", "id": 2}]},
            ["value:card", "value:more.*.pin"],
        ),
        (b'{"card":"4711","card":null,"id":1}', {"card": None, "id": 1}, []),
        ({"payload": {"card": "4711"}}, {"***": {"***": "***"}}, ["value"]),
        ({"4711": {"id": 1}}, {"0": {"***": 0}}, ["value"]),
        (["4711"], ["***"], ["value"]),
        (b"not JSON: 4711", "***", ["value"]),
        (b"4711", 0, ["value"]),
    ],
)
def test_secret_fields_of_the_app_are_masked_also_in_a_value_that_has_not_its_type(
    value: Any, found: Any, names: list[str]
) -> None:
    masks = Masks(style="stars", secrets_of_app=PAID)
    data = masks.masked(record(value)).parts.value or b""
    assert b"4711" not in data
    assert data == b"***" or json.loads(data) == found
    assert masks.secrets == masks.names == names


class Pin(msgspec.Struct):
    """A value by a secret number."""

    of: dict[Annotated[str, awoke.Secret], int]
    card: Annotated[dict[str, str], awoke.Secret]


def test_names_of_members_that_are_secret_are_masked() -> None:
    masks = Masks(style="stars", secrets_of_app=[SecretPart("pins", "value", "json", paths_of(Pin))])
    found = json.loads(masks.masked(record({"of": {"4711": 1}, "card": {"number": "4711"}})).parts.value or b"")
    assert found == {"of": {"0": 0}, "card": {"number": "***"}}


def test_a_key_and_named_fields_are_masked_beside_the_secrets_of_the_app() -> None:
    masks = Masks(["id", "card"], style="stars", secrets_of_app=PAID)
    found = masks.masked(record({"card": "a", "id": "b"}, key=b'"k"')).parts
    assert (found.key, json.loads(found.value or b"")) == (b'"***"', {"card": "***", "id": "***"})
    assert masks.names == ["value:id", "value:card", "key"]
    masks.check_found()


def test_secret_fields_that_are_no_json_are_refused() -> None:
    packed = SecretPart("orders", "value", "other", SecretPaths(["/card"]))
    with pytest.raises(MaskRefused, match="--keep-secrets"):
        Masks(secrets_of_app=[packed])
