"""Bodies of values in formats: plain bytes, bytes with headers, None, and bodies that are cut off."""

from __future__ import annotations

import pytest

from awoke.payloads.formats import Payload
from awoke.rpc.envelope import MAGIC, closed, opened


@pytest.mark.parametrize(
    ("encoded", "body"),
    [
        ((b"data", ()), b"data"),
        ((b"", ()), b""),
        (None, b"\xffrpc"),
        ((b"d", (("h", b"12"),)), b"\xffrpc\0\1\0\0\0\1h\0\0\0\00212d"),
        ((b"", (("h", b""), ("i", b"\0"))), b"\xffrpc\0\2\0\0\0\1h\0\0\0\0\0\0\0\1i\0\0\0\1\0"),
        ((MAGIC, ()), b"\xffrpc\0\0\xffrpc"),
        ((MAGIC + b"more", ()), b"\xffrpc\0\0\xffrpcmore"),
    ],
)
def test_a_body_is_opened_as_it_was_closed(encoded: Payload | None, body: bytes) -> None:
    assert closed(encoded) == body
    data, headers = opened(body)
    assert (data, tuple(headers)) == ((None, ()) if encoded is None else tuple(encoded))


@pytest.mark.parametrize("end", range(len(MAGIC) + 1, 18))
def test_a_body_that_ends_within_its_headers_is_refused(end: int) -> None:
    body = closed((b"", (("name", b"va"),)))
    assert len(body) == 20
    with pytest.raises(ValueError, match="ends within its headers"):
        opened(body[:end])


def test_a_count_or_a_length_that_is_too_large_is_refused() -> None:
    for wrong in (b"\xff\xff", b"\0\1\xff\xff\xff\xffab"):
        with pytest.raises(ValueError, match="ends within its headers"):
            opened(MAGIC + wrong)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        opened(MAGIC + b"\0\1\0\0\0\1\xff\0\0\0\0")
