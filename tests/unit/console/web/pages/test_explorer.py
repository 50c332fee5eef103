"""Files of messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

import awoke
from awoke.console.web.pages.explorer import download
from tests.support.messages import changed, stored_message

MESSAGE: Any = stored_message(b"k", b"\xff<script>", [("trace", b"a"), ("raw", b"\xff"), ("none", None)], 'a"/b', 2, 7)


def test_a_part_is_a_file_of_bytes_that_no_browser_shows() -> None:
    found = download(MESSAGE, "value")
    assert (found.name, found.media_type, found.content) == (
        "a__b-2-7.value.bin",
        "application/octet-stream",
        b"\xff<script>",
    )


def test_a_message_is_a_json_document_with_all_parts() -> None:
    document = json.loads(download(MESSAGE, "message").content)
    assert (document["key"], document["value_base64"], document["offset"]) == ("k", "/zxzY3JpcHQ+", 7)
    assert document["headers"] == [
        {"name": "trace", "value": "a"},
        {"name": "raw", "value_base64": "/w=="},
        {"name": "none", "value": None},
    ]


def test_a_part_that_is_not_there_is_an_error() -> None:
    with pytest.raises(awoke.AwokeError, match="has no key"):
        download(changed(MESSAGE, key=None), "key")
