"""The messages and schemas of a document, each once, by the name of its type."""

from __future__ import annotations

from typing import Any

from awoke.payloads.formats.format import Description, Format, format_of
from awoke.payloads.formats.json_schema import schema_of

Json = dict[str, Any]
LOCAL, SHARED = "#/$defs/", "#/components/schemas/"


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
