"""Bytes in JSON come back as they were."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.text.json_bytes import bytes_of_json, json_of_bytes


@pytest.mark.parametrize(
    ("data", "text"),
    [(None, None), (b"", ""), ("ü".encode(), "ü"), (b"\xff\x00", {"base64": "/wA="}), (b"a\0", {"base64": "YQA="})],
)
def test_bytes_come_back_from_a_file(data: bytes | None, text: Any) -> None:
    assert json_of_bytes(data) == text
    assert bytes_of_json(text) == data


@pytest.mark.parametrize("text", [5, ["a"], {"base64": 5}, {"base64": "!"}, {"base65": "/wA="}])
def test_what_is_no_bytes_is_refused(text: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the caller adds the line.
        bytes_of_json(text)
