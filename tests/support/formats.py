"""Decoders of formats, as routes and topics call them, for tests."""

from __future__ import annotations

from typing import Any

from awoke.declare.routing import Route
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format, decoder_of, format_of
from awoke.payloads.registry.schemas import NO_SCHEMAS


def decoder_for(said: Any, default: Format = BY_TYPE) -> Any:
    """Returns the decoder of values of this type or format, in an app with this default."""
    return decoder_of(format_of(said, default), "orders", "value", NO_SCHEMAS)


def value_decoder(route: Route) -> Any:
    """Returns the decoder of a route's values."""
    return decoder_of(route.value_format, route.topic, "value", route.schemas)
