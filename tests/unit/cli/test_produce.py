"""Lines of `awoke produce` become messages, or say what is wrong with them."""

from __future__ import annotations

import pytest

import awoke
from awoke.cli.produce import Shape

ENVELOPE = Shape(is_envelope=True)


def test_an_envelope_says_everything_about_its_message() -> None:
    line = b'{"value": {"a": 1}, "key": "k", "headers": {"h": "v"}, "partition": 0, "timestamp_ms": 1}'
    assert ENVELOPE.record(line) == awoke.Record(b'{"a": 1}', "k", {"h": "v"}, 0, 1)


def test_an_envelope_without_a_timestamp_is_sent_with_the_present_time() -> None:
    assert ENVELOPE.record(b'{"value": "a", "timestamp_ms": null}').timestamp_ms is None
    assert ENVELOPE.record(b'{"value": "a"}').timestamp_ms is None


@pytest.mark.parametrize("timestamp_ms", [0, -1])
def test_a_timestamp_that_kafka_does_not_have_is_refused(timestamp_ms: int) -> None:
    with pytest.raises(ValueError, match="timestamp_ms"):
        ENVELOPE.record(b'{"value": "a", "timestamp_ms": %d}' % timestamp_ms)
