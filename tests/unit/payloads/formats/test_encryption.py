"""Encrypted values: there and back, replaced keys, changed bytes, and what is sent on as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.encryption import HEADER, VERSION, VERSION_HEADER, Encrypted
from awoke.payloads.formats.format import encoder_of
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import NO_SCHEMAS, SchemaNeeded, Schemas, loading
from awoke.payloads.topic_formats import TopicFormats
from awoke.payloads.topics import Topic
from tests.support.formats import decoder_for
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")
OLD, NEW = {"old": b"o" * 32}, {"old": b"o" * 32, "new": b"n" * 32}


class Order(msgspec.Struct):
    id: int


def there(form: awoke.Format, value: Any, schemas: Any = None) -> tuple[bytes, list[tuple[str, bytes]]]:
    data, headers = form.encoder(*VALUES, schemas or Schemas.none())(value)
    return data, list(headers)


def back(form: awoke.Format, data: bytes, headers: Any, schemas: Any = None) -> Any:
    decode: Any = form.decoder(*VALUES, schemas or Schemas.none())
    return decode(data, headers)


@pytest.mark.parametrize("form", [Order, awoke.msgpack(Order), awoke.avro(Order), awoke.avro(Order, wire="header")])
def test_a_value_of_any_format_goes_there_and_back(form: Any) -> None:
    schemas, secret = KnownSchemas(), awoke.encrypted(form, keys=NEW, current="new")
    data, headers = there(secret, Order(7), schemas)
    assert headers[-2:] == [(HEADER, b"new"), (VERSION_HEADER, VERSION)]
    assert back(secret, data, headers, schemas) == Order(7)
    assert there(secret, Order(7), schemas)[0] != data, "each time with another nonce"


def test_bytes_and_text_are_encrypted_too() -> None:
    for value in (b"secret", "secret"):
        form = awoke.encrypted(keys=OLD, current="old")
        data, headers = there(form, value)
        assert b"secret" not in data
        assert back(form, data, headers) == b"secret"


def test_a_key_is_replaced_while_both_are_in_use() -> None:
    before, after = awoke.encrypted(Order, keys=OLD, current="old"), awoke.encrypted(Order, keys=NEW, current="new")
    data, headers = there(before, Order(7))
    assert back(after, data, headers) == Order(7)
    data, headers = there(after, Order(8))
    with pytest.raises(ValueError, match="key 'new', which is not given"):
        back(before, data, headers)


@pytest.mark.parametrize(("place", "words"), [(0, "was changed"), (20, "was changed"), (None, "end within")])
def test_changed_bytes_are_refused(place: int | None, words: str) -> None:
    form = awoke.encrypted(Order, keys=OLD, current="old")
    data, headers = there(form, Order(7))
    wrong = data[:20] if place is None else data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    with pytest.raises(ValueError, match=words):
        back(form, wrong, headers)


def test_the_id_of_the_key_is_protected() -> None:
    form = awoke.encrypted(Order, keys={"old": b"o" * 32, "twin": b"o" * 32}, current="old")
    data, _ = there(form, Order(7))
    with pytest.raises(ValueError, match="another key than 'twin'"):
        back(form, data, [(HEADER, b"twin")])


def test_a_value_that_is_not_encrypted_is_read_only_where_that_is_said() -> None:
    with pytest.raises(ValueError, match="is not encrypted"):
        back(awoke.encrypted(Order, keys=OLD, current="old"), b'{"id":7}', [])
    lenient = awoke.encrypted(Order, keys=OLD, current="old", accepts_plain=True)
    assert back(lenient, b'{"id":7}', []) == Order(7)


def test_what_is_sent_is_encrypted_unless_it_is_so_already() -> None:
    encode = TopicFormats([Topic("orders", value=awoke.encrypted(keys=OLD, current="old"))], BY_TYPE, NO_SCHEMAS)
    sent = encode(awoke.Outgoing("orders", b"secret"))
    assert sent.value != b"secret"
    again = sent._replace(value=Encrypted(sent.value))
    assert encode(again) is again
    assert encode(awoke.Outgoing("orders", None)).value is None


def test_wrong_keys_are_refused_at_once_and_never_shown() -> None:
    for keys, current in (({"a": b"short"}, "a"), ({"a": "x" * 32}, "a"), (OLD, "new")):
        with pytest.raises(awoke.ConfigError) as caught:
            awoke.encrypted(Order, keys=keys, current=current)  # type: ignore[arg-type]
        assert "short" not in str(caught.value)
    with pytest.raises(awoke.ConfigError, match="keys can't be encrypted"):
        awoke.encrypted(Order, keys=OLD, current="old").encoder("orders", "key", Schemas.none())


class Shouting(awoke.Format):
    """Text in capital letters."""

    def encode(self, value: Any) -> bytes:
        return repr(value).upper().encode()

    def decode(self, data: bytes) -> Any:
        return ("read", data)


def test_a_plain_type_is_encoded_by_the_app_s_default_format() -> None:
    secret, default = awoke.encrypted(Order, keys=OLD, current="old"), Shouting()
    encode, decode = encoder_of(secret, *VALUES, default, NO_SCHEMAS), decoder_for(secret, default)
    assert encode is not None
    data, headers = encode(Order(7))
    assert decode(data, list(headers)) == ("read", b"ORDER(ID=7)")
    assert back(secret, *there(secret, Order(7))) == Order(7), "the format itself is as it was"
    both = awoke.encrypted(awoke.cloudevents(Order), keys=OLD, current="old")
    write, read = encoder_of(both, *VALUES, default, NO_SCHEMAS), decoder_for(both, default)
    assert write is not None
    data, headers = write(awoke.CloudEvent(data=Order(7), type="t", source="/s"))
    assert read(data, list(headers)).data == ("read", b"ORDER(ID=7)")


def test_the_schemas_of_the_format_inside_are_asked_for() -> None:
    asked = list[str]()

    class Asked(KnownSchemas):
        def for_writing(self, subject: str, schema: Any, imports: Any = ()) -> Any:
            asked.append(subject)
            raise SchemaNeeded("not yet", lambda: None)

    for form in (awoke.encrypted(awoke.avro(Order), keys=OLD, current="old"), awoke.cloudevents(awoke.avro(Order))):
        with pytest.raises(SchemaNeeded):
            form.check_loaded(*VALUES, Asked())
    awoke.encrypted(Order, keys=OLD, current="old").check_loaded(*VALUES, Asked())
    assert asked == ["orders-value"] * 2


def test_keys_come_from_a_function_and_the_current_one_changes_meanwhile() -> None:
    store, current, asked = dict(OLD), ["old"], list[str]()

    def find(name: str) -> bytes | None:
        asked.append(name)
        return store.get(name)

    form = awoke.encrypted(Order, keys=find, current=lambda: current[0])
    with pytest.raises(SchemaNeeded):
        form.check_loaded(*VALUES, Schemas.none())
    encode, decode = (loading(each(*VALUES, Schemas.none())) for each in (form.encoder, form.decoder))
    first, headers = encode(Order(7))
    store["new"], current[0] = NEW["new"], "new"
    second, later = encode(Order(8))
    assert [value for name, value in (*headers, *later) if name == HEADER] == [b"old", b"new"]
    assert (decode(first, list(headers)), decode(second, list(later))) == (Order(7), Order(8))
    assert asked == ["old", "new"]
    current[0] = "none"
    with pytest.raises(awoke.EncodeError, match="the current key 'none' is not there"):
        encode(Order(9))
    with pytest.raises(ValueError, match="key 'gone', which is not given"):
        decode(first, [(HEADER, b"gone")])


SCHEMAS = KnownSchemas()


def moved(form: awoke.Format, topic: str, data: bytes, headers: Any, *key: bytes) -> Any:
    decode: Any = form.decoder(topic, "value", SCHEMAS)
    return decode(data, headers, *key)


def test_a_value_is_bound_to_its_topic_and_to_the_header_of_its_schema() -> None:
    form = awoke.encrypted(awoke.avro(Order, wire="header"), keys=OLD, current="old")
    data, headers = there(form, Order(7), SCHEMAS)
    assert moved(form, "orders", data, headers) == Order(7)
    with pytest.raises(ValueError, match="encrypted for another topic"):
        moved(form, "others", data, headers)
    for other in ([], [("__value_schema_id", b"x")], [*headers[:1], ("__value_schema_id", b"x")]):
        with pytest.raises(ValueError, match="was changed"):
            moved(form, "orders", data, [*other, *headers[1:]])
    of_letters = awoke.encrypted(awoke.avro(Order, wire="header"), keys=OLD, current="old", topic="orders")
    assert moved(of_letters, "orders.letters", data, headers) == Order(7)


def test_a_value_is_bound_to_its_message_s_key_where_that_is_said() -> None:
    form = awoke.encrypted(Order, keys=OLD, current="old", binds_key=True)
    send = TopicFormats([Topic("orders", value=form, key=int)], BY_TYPE, NO_SCHEMAS)
    sent = send(awoke.Outgoing("orders", Order(7), 5))
    assert moved(form, "orders", sent.value, sent.headers, b"5") == Order(7)
    for key in ([b"6"], [b""], []):
        with pytest.raises(ValueError, match="was changed"):
            moved(form, "orders", sent.value, sent.headers, *key)
    with pytest.raises(awoke.ConfigError, match="can't be inside of another one"):
        awoke.cloudevents(form).encoder("orders", "value", NO_SCHEMAS)


def test_a_value_of_before_it_was_bound_is_read_unless_that_is_refused() -> None:
    cipher = AESGCM(OLD["old"])
    data = b"n" * 12 + cipher.encrypt(b"n" * 12, b'{"id":7}', b"old")
    form = awoke.encrypted(Order, keys=OLD, current="old")
    assert back(form, data, [(HEADER, b"old")]) == Order(7)
    strict = awoke.encrypted(Order, keys=OLD, current="old", accepts_unbound=False)
    with pytest.raises(ValueError, match="not bound to its topic"):
        back(strict, data, [(HEADER, b"old")])
    bound, headers = there(form, Order(7))
    with pytest.raises(ValueError, match="was changed"):
        back(form, bound, headers[:1])  # Without the version it passes for an old one.
    with pytest.raises(ValueError, match="does not know"):
        back(form, bound, [headers[0], (VERSION_HEADER, b"3")])


def test_a_header_does_not_tell_that_a_value_is_encrypted() -> None:
    form = awoke.encrypted(keys=OLD, current="old")
    for topic in (Topic("orders", value=form), Topic("orders", value=awoke.cloudevents(form))):
        send = TopicFormats([topic], BY_TYPE, NO_SCHEMAS)
        value: Any = b"secret" if topic.value is form else awoke.CloudEvent(data=b"secret", type="t", source="/s")
        sent = send(awoke.Outgoing("orders", value, None, [(HEADER, b"old"), (VERSION_HEADER, VERSION)]))
        assert b"secret" not in sent.value
    with pytest.raises(awoke.EncodeError):
        send(awoke.Outgoing("orders", b"secret", None, [(HEADER, b"old")]))


def test_the_id_of_a_key_is_bounded() -> None:
    """It is kept, and given to user code; the sender of the message has chosen it."""
    form = awoke.encrypted(Order, keys=lambda name: None, current=lambda: "new")
    with pytest.raises(ValueError, match="the id of the key has 257 bytes, and 256 at most are read"):
        back(form, b"x" * 100, [(HEADER, b"k" * 257)])
