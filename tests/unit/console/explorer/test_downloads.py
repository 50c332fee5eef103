"""Files of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke.console.explorer.downloads import download
from awoke.console.explorer.parts import Parts
from awoke.masking import Masks
from awoke.settings import load
from tests.support.messages import StoredMessage

MESSAGE: Any = StoredMessage(b"k", b"\xff<script>", [("trace", b"a"), ("raw", b"\xff"), ("none", None)], 'a"/b', 2, 7)


@pytest.fixture
def parts() -> Iterator[Parts]:
    with Parts(load({}).values, reveals=True) as found:
        yield found


def test_a_part_is_a_file_of_bytes_that_no_browser_shows(parts: Parts) -> None:
    found = download(MESSAGE, "value", parts)
    assert (found.name, found.media_type, found.content) == (
        "a__b-2-7.value.bin",
        "application/octet-stream",
        b"\xff<script>",
    )


def test_a_message_is_a_json_document_with_all_parts(parts: Parts) -> None:
    document = json.loads(download(MESSAGE, "message", parts).content)
    assert (document["key"], document["value_base64"], document["offset"]) == ("k", "/zxzY3JpcHQ+", 7)
    assert document["headers"] == [
        {"name": "trace", "value": "a"},
        {"name": "raw", "value_base64": "/w=="},
        {"name": "none", "value": None},
    ]


def test_a_part_that_is_not_there_is_an_error(parts: Parts) -> None:
    with pytest.raises(awoke.AwokeError, match="has no key"):
        download(MESSAGE._replace(key=None), "key", parts)


def test_a_file_has_no_secret() -> None:
    message = MESSAGE._replace(value=b'{"card":"4111","item":"tea"}')
    with Parts(load({}).values, reveals=True, masks=lambda topic: Masks(value=(("card",),))) as shown:
        document = json.loads(download(message, "message", shown).content)
        assert json.loads(document["value"]) == {"card": "[secret]", "item": "tea"}
        with pytest.raises(awoke.AwokeError, match="has secret fields"):
            download(message, "value", shown)
        assert json.loads(download(MESSAGE, "message", shown).content)["value"] == "[secret]"
        assert download(message, "key", shown).content == b"k"
