"""The options of encoded keys and values, and the encoders that are made of them."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from awoke.cli.encoding.documents import WrittenSubject
from awoke.cli.produce import PartOptions, encoded_parts, encoders, open_encoding
from awoke.errors import ConfigError

VALUE, KEY = PartOptions("value", True), PartOptions("key", True)


def test_only_the_parts_that_are_encoded_are_returned() -> None:
    assert encoded_parts(VALUE, KEY) == [VALUE, KEY]
    assert encoded_parts(VALUE, KEY._replace(is_encoded=False)) == [VALUE]


@pytest.mark.parametrize(
    ("options", "hint", "why"),
    [
        (PartOptions("value", False, "a"), "--value-subject", "needs --encode"),
        (PartOptions("value", False, None, "a"), "--value-message", "needs --encode"),
        (PartOptions("key", False, "a"), "--key-subject", "needs --encode-key"),
        (PartOptions("key", False, None, "a"), "--key-message", "needs --encode-key"),
    ],
)
def test_an_option_of_a_part_that_is_not_encoded_is_refused(options: PartOptions, hint: str, why: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        encoded_parts(options)
    assert (refused.value.param_hint, refused.value.message) == (hint, why)


def test_a_subject_is_named_after_the_topic_unless_an_option_names_it() -> None:
    class FakeWriters:
        """Returns the subject itself as its writer."""

        def writer(self, subject: WrittenSubject) -> Any:
            return subject

    encoding: Any = FakeWriters()
    parts = [VALUE._replace(subject="shop.Order", message="Order"), KEY]
    wanted = {"value": WrittenSubject("value", "shop.Order", "Order"), "key": WrittenSubject("key", "orders-key")}
    found: Any = encoders(encoding, "orders", parts)
    assert found == wanted


def test_a_registry_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWOKE_REGISTRY_URL", raising=False)
    with pytest.raises(ConfigError, match="no schema registry is set"):
        open_encoding(None)
