"""The view models of messages."""

from __future__ import annotations

import msgspec

from awoke.console.explorer.views import Content, Where


def test_a_place_and_a_content_are_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Where(topic="orders", at="earliest")), type=Where).at == "earliest"
    assert msgspec.json.decode(msgspec.json.encode(Content(form="hidden", size_bytes=3)))["text"] is None
