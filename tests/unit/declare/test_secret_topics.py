"""The topics with secrets, as an app declares them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

import awoke
from awoke.declare.secret_topics import REGEX_MAX, SecretPart, SecretTopics, declared_by, secrets_of
from awoke.payloads.registry.schema import Part
from awoke.payloads.secret_paths import SecretPaths

PARTS: tuple[Part, ...] = ("key", "value")
CARD = SecretPaths(["/card"])


class Payment(msgspec.Struct):
    card: Annotated[str, awoke.Secret]


class Own(awoke.Format):
    """A format whose bytes are its own."""

    def encode(self, value: Any) -> bytes:
        return b""


def app_of(**options: Any) -> awoke.App:
    app = awoke.App("shop", **options)
    app.on("pay", value=Payment, key=Payment, dead_letter="pay.dead", output=awoke.Topic("paid", value=Payment))(print)
    app.on(awoke.pattern(r"pay\..*"), value=Payment, group="other", dead_letter="other.dead")(print)
    app.on("clicks")(print)
    app.topic("sent", value=Payment)
    return app


def test_all_topics_that_an_app_names_tell_their_secrets() -> None:
    found = declared_by(app_of())
    assert set(found.parts) == {
        *(SecretPart(name, part, "json", CARD) for name in ("pay", "pay.dead") for part in PARTS),
        *(SecretPart(name, "value", "json", CARD) for name in ("paid", "sent", "other.dead")),
        SecretPart(r"pay\..*", "value", "json", CARD, is_pattern=True),
    }
    assert [each.is_pattern for each in found.of("pay.dead", "value")] == [False, True]
    assert [found.hides("pay", "key"), found.hides("pay.eu", "key"), found.has("pay.eu")] == [True, False, True]
    assert not found.has("clicks")


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (Payment, "json"),
        (Annotated[bytes, awoke.Secret], "json"),
        (awoke.json_schema(Payment), "registry"),
        (awoke.msgpack(Payment), "other"),
        (awoke.cloudevents(Payment), "other"),
    ],
)
def test_the_form_says_whether_the_bytes_can_be_read_without_the_type(kind: Any, form: str) -> None:
    assert [each.form for each in secrets_of("pay", kind)] == [form]


def test_bytes_of_a_format_of_its_own_can_not_be_read_without_it() -> None:
    assert {each.form for each in declared_by(app_of(format=Own())).parts} == {"other"}


def test_while_the_secrets_are_not_known_each_topic_may_have_some() -> None:
    unknown = SecretTopics(unknown_because="nobody has told")
    assert (unknown.has("any"), unknown.of("any", "value")) == (True, [])
    assert unknown.with_others(secrets_of("pay", Payment)).unknown_because == "nobody has told"


@pytest.mark.parametrize("regex", ["(", "", "a" * (REGEX_MAX + 1)])
def test_a_pattern_that_can_not_be_read_counts_as_one_of_all_topics(regex: str) -> None:
    part = SecretPart(regex, "value", "json", CARD, is_pattern=True)
    assert SecretTopics([part]).of("any", "value") == [part]
