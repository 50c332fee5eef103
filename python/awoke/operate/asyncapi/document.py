"""Makes the AsyncAPI document of an app: its topics, what it receives and sends there, and its remote methods."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from awoke.declare.annotations import result_type_of
from awoke.declare.group_routes import GroupKey, GroupRoutes
from awoke.declare.handlers import kind_of
from awoke.declare.patterns import Pattern
from awoke.declare.routing import Route
from awoke.declare.signatures import signature_of
from awoke.payloads import dead_letter
from awoke.payloads.formats.format import Description, Format, format_of
from awoke.payloads.formats.json_schema import schema_of
from awoke.payloads.message import Outgoing, Record
from awoke.payloads.topics import Topic
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.responder.methods import Method, Rpc

VERSION = "3.0.0"
BINDING = {"bindingVersion": "0.5.0"}
TOPIC_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes", "delete.retention.ms", "max.message.bytes")
"""The settings of a topic that the binding for Kafka has a place for."""
LETTER = "dead_letter"
REPLY_TOPIC = "rpc-reply-topic"
Json = dict[str, Any]
LOCAL, SHARED = "#/$defs/", "#/components/schemas/"


class DescribedApp(Protocol):
    """An app, as its document needs it."""

    @property
    def name(self) -> str: ...
    @property
    def format(self) -> Format: ...
    @property
    def groups(self) -> Mapping[GroupKey, GroupRoutes]: ...
    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def rpc(self) -> Rpc: ...


def document_of(app: DescribedApp, version: str = "0.0.0", group: str | None = None) -> Json:
    """Returns the document of an app; `version` is the app's own, `group` its consumer group, if not its name.

    Raises:
        ConfigError: The annotations of a remote method can't be read.
    """
    return _Document(app).made(version, group or app.name)


class _Document:
    """A document that is being made. Topics and operations come in the order of the app."""

    def __init__(self, app: DescribedApp) -> None:
        self._app = app
        self._components = Components(app.format)
        self._channels: Json = {}
        self._operations: Json = {}

    def made(self, version: str, group: str) -> Json:
        app = self._app
        for key, routes in app.groups.items():
            for route in routes.routes.values():
                self._route(str(route.topic), route, key.name(group))
            for pattern, route in routes.patterns.items():
                self._route(pattern, route, key.name(group))
        for name in app.topics:
            self._channel(name)
        for method in app.rpc.methods.values():
            self._method(method)
        return {
            "asyncapi": VERSION,
            "info": {"title": app.name, "version": version},
            "channels": self._channels,
            "operations": self._operations,
            "components": {"schemas": self._components.schemas},
        }

    # Routes.

    def _route(self, topic: str | Pattern, route: Route, group: str) -> None:
        value, key = route.types
        message = self._components.message(_type_name(value, route.name), value, key)
        channel = self._channel(topic)
        self._operation(_joined("receive", channel, group), "receive", channel, [message])["bindings"] = {
            "kafka": {"groupId": {"type": "string", "enum": [group]}, **BINDING}
        }
        results = self._results(route)
        for index, output in enumerate(route.outputs):
            sent = self._typed(output) or ([] if index else results)
            self._send(output, sent or [self._components.message("Result", None)])
        if route.dead_letter is not None:
            letter = {**message, "name": f"{message['name']}_{LETTER}", "headers": LETTER_HEADERS}
            self._send(route.dead_letter, [letter])

    def _typed(self, name: str) -> list[Json]:
        """Returns the message of a topic that knows its types."""
        topic = self._app.topics.get(name)
        if topic is None or topic.value is None:
            return []
        return [self._components.message(_type_name(topic.value, name), topic.value, topic.key)]

    def _results(self, route: Route) -> list[Json]:
        """Returns the messages that a route's functions return."""
        functions = [route.function] if route.handlers is None else [each.function for each in route.handlers.cases]
        kinds: list[Any] = []
        for function in functions:
            result = result_type_of(function, None)
            if "generator" in kind_of(function):
                result = next(iter(typing.get_args(result)), None)
            kinds += [each for each in _members(result) if each not in kinds]
        return [self._components.message(_type_name(each, route.name), each) for each in kinds]

    def _send(self, topic: str, messages: Sequence[Json]) -> None:
        channel = self._channel(topic)
        self._operation(_joined("send", channel), "send", channel, messages)

    # Channels and operations.

    def _channel(self, topic: str | Pattern) -> str:
        """Returns the id of a topic's channel, which it adds if it is new."""
        if isinstance(topic, Pattern):
            name = _joined("pattern", topic.regex)
            text = f"All topics whose names match {topic.regex}"
            self._channels.setdefault(name, {"address": None, "description": text, "messages": {}})
            return name
        if topic not in self._channels:
            self._channels[topic] = {"address": str(topic), "messages": {}, **self._bindings(topic)}
        return str(topic)

    def _bindings(self, topic: str) -> Json:
        declared = self._app.topics.get(topic)
        if declared is None or declared.declaration is None:
            return {}
        found: Json = {"topic": str(topic)}
        if declared.partitions is not None:
            found["partitions"] = declared.partitions
        if declared.replication is not None:
            found["replicas"] = declared.replication
        config = declared.config or {}
        settings = {name: _setting(name, config[name]) for name in TOPIC_SETTINGS if name in config}
        if settings:
            found["topicConfiguration"] = settings
        return {"bindings": {"kafka": {**found, **BINDING}}}

    def _operation(self, name: str, action: str, channel: str, messages: Iterable[Json]) -> Json:
        """Returns the operation of this name, with these messages beside those that it has."""
        found: Json = self._operations.setdefault(name, {"action": action, "channel": _ref("channels", channel)})
        references = found.setdefault("messages", [])
        for message in messages:
            reference = self._message(channel, message)
            if reference not in references:
                references.append(reference)
        return found

    def _message(self, channel: str, message: Json) -> Json:
        """Adds a message to a channel, under its name or, if that is taken, the next one; returns a reference."""
        messages, number = self._channels[channel]["messages"], 1
        name = first = _joined(message["name"])
        while messages.get(name, message) != message:
            number += 1
            name = f"{first}_{number}"
        messages[name] = message
        return _ref("channels", channel, "messages", name)

    # Remote methods.

    def _method(self, method: Method) -> None:
        service = self._app.rpc.service
        topics, name = ServiceTopics.of(service), method.name
        method.prepare(service, is_early=True)
        calls, replies = self._channel(topics.calls), self._channel(topics.replies)
        hints = typing.get_type_hints(method.function, include_extras=True)
        result = hints.pop("return", Any)
        if method.is_stream:
            result = next(iter(typing.get_args(result)), Any)
        call = self._components.message(f"{name}.call", method.argument_form or self._arguments(method, hints))
        operation = self._operation(_joined("call", name), "receive", calls, [call])
        reply = self._components.message(f"{name}.reply", method.result_form or self._json(result))
        operation["reply"] = {
            "address": {"location": f"$message.header#/{REPLY_TOPIC}"},
            "channel": _ref("channels", replies),
            "messages": [self._message(replies, reply)],
        }

    def _json(self, kind: Any) -> Description:
        return Description("application/json", self._components.of_type(kind))

    def _arguments(self, method: Method, hints: Mapping[str, Any]) -> Description:
        """Returns the arguments of a method as a JSON object."""
        parameters = signature_of(method.function).parameters.values()
        schemas = {each.name: hints.get(each.name, Any) for each in parameters}
        return Description(
            "application/json",
            {
                "type": "object",
                "properties": {name: self._components.of_type(kind) for name, kind in schemas.items()},
                "required": [each.name for each in parameters if each.default is each.empty],
                "additionalProperties": False,
            },
        )


LETTER_HEADERS = {"type": "object", "properties": {name: {"type": "string"} for name in dead_letter.HEADERS}}


def _setting(name: str, value: str) -> Any:
    return value.split(",") if name == "cleanup.policy" else int(value)


def _ref(*path: str) -> Json:
    return {"$ref": "#/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in path)}


def _joined(*parts: str) -> str:
    """Returns an id of these parts: letters, digits, dot, hyphen and underscore only."""
    return "_".join("".join(each if each.isalnum() or each in ".-" else "_" for each in part) for part in parts)


def _type_name(form: Any, otherwise: str) -> str:
    kind = getattr(form, "value_type", form)
    return otherwise if kind in (None, bytes, str) else str(getattr(kind, "__name__", kind))


def _members(kind: Any) -> list[Any]:
    """Returns the types of single results in the annotation of a handler, without records, which may have any value."""
    if typing.get_origin(kind) is list:
        kind = next(iter(typing.get_args(kind)), None)
    members = typing.get_args(kind) if typing.get_origin(kind) in UNIONS else (kind,)
    return [each for each in members if each not in (None, type(None), Record, Outgoing)]


UNIONS = (typing.Union, type(int | None))


class Components:
    """The schemas that messages of one document share."""

    def __init__(self, default: Format) -> None:
        self._default = default
        self.schemas: Json = {}

    def message(self, name: str, value: Any, key: Any = None) -> Json:
        """Returns a message whose value and key have these types, formats or descriptions."""
        described = value if isinstance(value, Description) else format_of(value, self._default).description()
        found: Json = {"name": name}
        if described.content_type:
            found["contentType"] = described.content_type
        payload = self.payload(described)
        if payload is not None:
            found["payload"] = payload
        if key not in (None, bytes):
            found["bindings"] = {"kafka": {"key": self._key(key), "bindingVersion": "0.5.0"}}
        return found

    def payload(self, described: Description) -> Json | None:
        """Returns the schema of a description, None if it has none; one of a type stands among `schemas`."""
        schema = described.schema
        if schema is None:
            return None
        if described.schema_format is not None:
            return {"schemaFormat": described.schema_format, "schema": schema}
        return self.shared(schema) if isinstance(schema, dict) else self.of_type(schema)

    def of_type(self, value_type: Any) -> Json:
        """Returns the JSON Schema of a type."""
        try:
            schema = schema_of(value_type)
        except TypeError:  # A type of the user's own format.
            return {"title": getattr(value_type, "__qualname__", str(value_type))}
        if schema.get("type") != "object":
            schema.pop("title", None)  # `int`, `list`
        return self.shared(schema)

    def shared(self, schema: Json) -> Json:
        """Returns a JSON Schema that refers to its definitions among `schemas`."""
        schema = {name: value for name, value in schema.items() if name != "$schema"}
        definitions = schema.pop("$defs", {})
        if "$ref" in schema:
            schema.pop("title", None)  # That of what it refers to.
        names = {name: self._free_name(name, definition) for name, definition in definitions.items()}
        for name, definition in definitions.items():
            self.schemas[names[name]] = _renamed(definition, names)
        if "title" in schema and schema.get("type") == "object":
            name = self._free_name(schema["title"], _renamed(schema, names))
            self.schemas[name] = _renamed(schema, names)
            return {"$ref": SHARED + name}
        return dict(_renamed(schema, names))

    def _free_name(self, name: str, definition: Any) -> str:
        """Returns the name, or another one if a different schema has it."""
        name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
        found, number = name, 1
        while self.schemas.get(found, definition) != definition and not _is_same(self.schemas[found], definition):
            number += 1
            found = f"{name}_{number}"
        return found

    def _key(self, key: Any) -> Json:
        described = format_of(key, self._default).description()
        # The binding takes JSON Schema and Avro, but no media type beside it.
        payload = None if described.schema_format is not None else self.payload(described)
        return payload or {"description": described.content_type}


def _renamed(schema: Any, names: dict[str, str]) -> Any:
    """Returns a schema that refers to its definitions by these names among the shared schemas."""
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(LOCAL):
        name = reference.removeprefix(LOCAL)
        schema = {**schema, "$ref": SHARED + names.get(name, name)}
    return {name: _renamed(value, names) for name, value in schema.items()}


def _is_same(shared: Any, definition: Any) -> bool:
    """Tells whether a shared schema is this definition, whose references are still local."""
    return bool(shared == _renamed(definition, {}))
