"""CloudEvents in both modes, with the headers and documents of the specification."""

from __future__ import annotations

import datetime
import json
from typing import Any

import msgspec
import pytest

import awoke
from awoke import CloudEvent
from awoke.payloads.formats.format import encoder_of
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import NO_SCHEMAS, Schemas
from tests.support.formats import decoder_for
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Line

VALUES: tuple[str, Part] = ("orders", "value")
TIME = datetime.datetime(2026, 11, 23, 9, 30, tzinfo=datetime.UTC)


class Order(msgspec.Struct):
    id: int


def event(data: Any = None, **more: Any) -> awoke.CloudEvent[Any]:
    named = {"type": "order.placed", "source": "/shop", "id": "1", "time": TIME, **more}
    return awoke.CloudEvent(data=Order(7) if data is None else data, **named)


def there(form: awoke.Format, value: Any, schemas: Any = None) -> tuple[bytes, dict[str, bytes]]:
    data, headers = form.encoder(*VALUES, schemas or Schemas.none())(value)
    return data, dict(headers)


def back(form: awoke.Format, data: bytes, headers: dict[str, Any], schemas: Any = None) -> awoke.CloudEvent[Any]:
    decode: Any = form.decoder(*VALUES, schemas or Schemas.none())
    found: awoke.CloudEvent[Any] = decode(data, list(headers.items()))
    return found


def test_in_binary_mode_attributes_are_headers_and_the_value_is_the_data() -> None:
    form = awoke.cloudevents(Order)
    data, headers = there(form, event(subject="7", extensions={"tenant": "a"}))
    assert data == b'{"id":7}'
    assert headers == {
        "ce_specversion": b"1.0",
        "ce_id": b"1",
        "ce_source": b"/shop",
        "ce_type": b"order.placed",
        "ce_subject": b"7",
        "ce_time": b"2026-11-23T09:30:00+00:00",
        "ce_tenant": b"a",
        "content-type": b"application/json",
    }
    assert back(form, data, headers) == event(subject="7", extensions={"tenant": "a"})


def test_in_structured_mode_the_value_is_a_document_with_all_of_it() -> None:
    form = awoke.cloudevents(Order, mode="structured")
    data, headers = there(form, event(extensions={"tenant": "a"}))
    assert headers == {"content-type": b"application/cloudevents+json; charset=UTF-8"}
    assert json.loads(data) == {
        "specversion": "1.0",
        "id": "1",
        "source": "/shop",
        "type": "order.placed",
        "time": "2026-11-23T09:30:00+00:00",
        "datacontenttype": "application/json",
        "tenant": "a",
        "data": {"id": 7},
    }
    assert back(form, data, headers) == event(extensions={"tenant": "a"})


def test_both_modes_are_read_whatever_is_written() -> None:
    for mode in ("binary", "structured"):
        form = awoke.cloudevents(Order, mode=mode)
        for reader in (awoke.cloudevents(Order), awoke.cloudevents(Order, mode="structured")):
            assert back(reader, *there(form, event())) == event()


def test_bytes_are_written_as_base64_in_a_document() -> None:
    form = awoke.cloudevents(bytes, mode="structured")
    image = event(b"\0\xff", datacontenttype="image/png")
    data, headers = there(form, image)
    assert json.loads(data)["data_base64"] == "AP8="
    assert back(form, data, headers) == image


def test_data_may_be_of_a_format_with_a_registry() -> None:
    schemas, form = KnownSchemas(), awoke.cloudevents(awoke.avro(Order, wire="header"))
    data, headers = there(form, event(datacontenttype="application/avro"), schemas)
    assert (data, "__value_schema_id" in headers) == (b"\x0e", True)
    assert back(form, data, headers, schemas) == event(datacontenttype="application/avro")


def test_an_example_of_the_specification_is_read() -> None:
    document = b"""{"specversion" : "1.0", "type" : "com.github.pull_request.opened",
        "source" : "https://github.com/cloudevents/spec/pull", "subject" : "123", "id" : "A234-1234-1234",
        "time" : "2018-04-05T17:31:00Z", "comexampleextension1" : "value", "comexampleothervalue" : 5,
        "datacontenttype" : "text/xml", "data" : "<much wow=\\"xml\\"/>"}"""
    found = back(awoke.cloudevents(Any), document, {"Content-Type": b"application/cloudevents+json"})
    assert (found.data, found.subject, found.id) == ('<much wow="xml"/>', "123", "A234-1234-1234")
    assert found.extensions == {"comexampleextension1": "value", "comexampleothervalue": "5"}
    assert found.time == datetime.datetime(2018, 4, 5, 17, 31, tzinfo=datetime.UTC)


def test_an_event_may_be_without_data_where_the_type_takes_none() -> None:
    document = b'{"specversion": "1.0", "type": "t", "source": "s", "id": "1"}'
    headers = {"content-type": b"application/cloudevents+json"}
    assert back(awoke.cloudevents(Order | None), document, headers).data is None
    with pytest.raises(ValueError, match="has no data"):
        back(awoke.cloudevents(Order), document, headers)


@pytest.mark.parametrize(("form", "data"), [(str, 'a "word"'), (bytes, b"\0\1"), (bytes, b'"quoted"'), (int, 5)])
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_data_of_any_type_goes_there_and_back(form: Any, data: Any, mode: Any) -> None:
    written = awoke.cloudevents(form, mode=mode)
    assert back(written, *there(written, event(data))).data == data


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "is no CloudEvent"),
        ({"ce_specversion": b"0.3", "ce_id": b"1"}, "version '0.3'"),
        ({"ce_specversion": b"1.0", "ce_id": b"1", "ce_type": b"t"}, "no attribute 'source'"),
        ({"ce_specversion": b"1.0", "ce_id": b"1", "ce_type": b"t", "ce_source": b"s", "ce_time": b"x"}, "RFC3339"),
    ],
)
def test_what_is_no_event_is_refused(headers: dict[str, bytes], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        back(awoke.cloudevents(Order), b'{"id":7}', headers)


def test_what_can_not_be_an_event_is_not_sent() -> None:
    form = awoke.cloudevents(Order)
    for wrong in (
        event(extensions={"Tenant": "a"}),
        event(extensions={"data": "a"}),
        event(time=TIME.replace(tzinfo=None)),
    ):
        with pytest.raises(ValueError, match=r"extension|time zone"):
            there(form, wrong)
    with pytest.raises(TypeError, match=r"awoke\.CloudEvent"):
        there(form, Order(7))
    with pytest.raises(awoke.ConfigError, match="source must not be empty"):
        event(source="")
    with pytest.raises(awoke.ConfigError, match="mode"):
        awoke.cloudevents(Order, mode="batch")  # type: ignore[arg-type]
    with pytest.raises(awoke.ConfigError, match="mode='binary'"):
        awoke.cloudevents(awoke.msgpack(Order), mode="structured")
    with pytest.raises(awoke.ConfigError, match="a key is no event"):
        form.encoder("orders", "key", Schemas.none())


def test_a_new_event_has_an_id_and_a_time() -> None:
    one, other = (awoke.CloudEvent(data=1, type="t", source="s") for _ in range(2))
    assert one.id != other.id
    assert one.time is not None
    assert one.time.tzinfo is not None


def test_a_route_takes_events() -> None:
    app = awoke.App("app")

    @app.on("orders", value=awoke.cloudevents(Order))
    def handle(message: awoke.Message[awoke.CloudEvent[Order]]) -> None: ...

    with pytest.raises(awoke.ConfigError, match="contradicts"):

        @app.on("others", value=awoke.cloudevents(Order))
        def contradicts(message: awoke.Message[Order]) -> None: ...


class Shouting(awoke.Format):
    """Text in capital letters."""

    def encode(self, value: Any) -> bytes:
        return repr(value).upper().encode()

    def decode(self, data: bytes) -> Any:
        return ("read", data)


def test_data_of_a_plain_type_is_encoded_by_the_app_s_default_format_and_is_json_in_a_document() -> None:
    event, default = CloudEvent(data=Order(7), type="t", source="/s"), Shouting()
    for mode, found in (("binary", ("read", b"ORDER(ID=7)")), ("structured", Order(7))):
        form = awoke.cloudevents(Order, mode=mode)  # type: ignore[arg-type]
        encode, decode = encoder_of(form, *VALUES, default, NO_SCHEMAS), decoder_for(form, default)
        assert encode is not None
        data, headers = encode(event)
        assert decode(data, list(headers)).data == found


def test_a_message_of_protobuf_is_base64_in_a_document() -> None:
    form = awoke.cloudevents(Line, mode="structured")
    data, headers = form.encoder(*VALUES, Schemas.none())(CloudEvent(data=Line(sku="a"), type="t", source="/s"))
    assert msgspec.json.decode(data)["data_base64"] == "CgFh"
    decode: Any = form.decoder(*VALUES, Schemas.none())
    assert decode(data, list(headers)).data == Line(sku="a")
