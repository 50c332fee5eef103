"""What a reader's Avro schema can't read of a writer's, by the section "Schema Resolution" of the Avro specification.

As in Confluent's registry, logical types are ignored, and two named types match if their names without namespace are
equal, or by an alias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

NAMED_KINDS = ("record", "error", "enum", "fixed")
UNNAMED_KINDS = ("null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map")

PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""The other primitive types that can read a writer's type."""


class AvroSchema(NamedTuple):
    """A schema with the types that it names."""

    root: Any
    """All names in it are full names, as those of a schema that fastavro has parsed."""
    names: dict[str, Any]
    """The named types of the schema, and of those that it refers to, by their full names."""

    @classmethod
    def of(cls, document: Any) -> AvroSchema:
        """Returns a schema as its document has it, which refers to no other documents."""
        names: dict[str, Any] = {}
        return cls(qualified(document, "", names), names)


def incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[str]:
    """Returns the reasons why the reader can't read all data of the writer, each with its path in the reader's schema.

    Empty if it can. Does not block.
    """
    found = AvroResolution(reader.names, writer.names).compare(reader.root, writer.root, "")
    return list(dict.fromkeys(found))


class AvroResolution:
    """One comparison of a reader's schema with a writer's."""

    def __init__(self, reader_names: dict[str, Any], writer_names: dict[str, Any]) -> None:
        self._readers, self._writers = reader_names, writer_names
        self._known: dict[tuple[str, str], list[str]] = {}
        """The result for each pair of named types; empty while it is compared, so that recursive types end."""
        self._rules: dict[str, Callable[[Any, Any, str], list[str]]] = {
            "record": self._compare_records,
            "enum": compare_enums,
            "fixed": compare_fixed,
            "array": lambda reader, writer, path: self.compare(reader["items"], writer["items"], f"{path}/items"),
            "map": lambda reader, writer, path: self.compare(reader["values"], writer["values"], f"{path}/values"),
        }

    def compare(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Returns the incompatibilities of two types. The path is a JSON pointer into the reader's schema."""
        reader, writer = resolved(reader, self._readers), resolved(writer, self._writers)
        if isinstance(writer, list):
            return [each for branch in writer for each in self.compare(reader, branch, path)]
        if isinstance(reader, list):
            return self._compare_branches(reader, writer, path)
        reader_kind, writer_kind = kind_of(reader), kind_of(writer)
        if reader_kind != writer_kind:
            is_promoted = reader_kind in PROMOTIONS.get(writer_kind, ())
            return [] if is_promoted else [mismatch(reader, writer, path)]
        if reader_kind in NAMED_KINDS:
            return self._compare_named(reader, writer, path)
        rule = self._rules.get(reader_kind)
        return [] if rule is None else rule(reader, writer, path)

    def _compare_branches(self, union: list[Any], writer: Any, path: str) -> list[str]:
        """Compares a reader's union with a writer's type that is no union: one branch must read it."""
        branches = [resolved(each, self._readers) for each in union]
        results = [self.compare(each, writer, f"{path}/{index}") for index, each in enumerate(branches)]
        if not all(results):
            return []
        # The branch that is meant is that of the same kind and name: its reasons say more than "no branch".
        for branch, reasons in zip(branches, results, strict=True):
            if kind_of(branch) == kind_of(writer) and has_same_name(branch, writer):
                return reasons
        names = ", ".join(f"`{title(each)}`" for each in branches)
        return [f"{path or '/'}: the writer may send `{title(writer)}`, and the reader's union has only {names}"]

    def _compare_named(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Compares two named types of the same kind, each pair once."""
        if not has_same_name(reader, writer):
            return [f"{mismatch(reader, writer, path)}; give it the alias `{writer['name']}`"]
        pair = (reader["name"], writer["name"])
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._rules[kind_of(reader)](reader, writer, path)
        return self._known[pair]

    def _compare_records(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Compares two records: the writer has each field of the reader, by name or alias, or it has a default."""
        written = {field["name"]: field for field in writer["fields"]}
        found = []
        for index, field in enumerate(reader["fields"]):
            place = f"{path}/fields/{index}"
            names = [name for name in (field["name"], *field.get("aliases", ())) if name in written]
            if names:
                found += self.compare(field["type"], written[names[0]]["type"], f"{place}/type")
            elif "default" not in field:
                text = f"the reader needs the field `{field['name']}`, which the writer does not have"
                found.append(f"{place}: {text}; give it a default")
        return found


def compare_enums(reader: Any, writer: Any, path: str) -> list[str]:
    """Returns the incompatibilities of two enums: a reader without a default needs all symbols of the writer."""
    missing = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
    if not missing or "default" in reader:
        return []
    names = ", ".join(f"`{symbol}`" for symbol in missing)
    text = f"the reader's enum `{reader['name']}` lacks {names}, which the writer may send"
    return [f"{path}/symbols: {text}; keep the symbols, or give the enum a default"]


def compare_fixed(reader: Any, writer: Any, path: str) -> list[str]:
    """Returns the incompatibilities of two fixed types: their sizes must be equal."""
    if reader["size"] == writer["size"]:
        return []
    return [f"{path}/size: the reader expects {reader['size']} bytes, the writer sends {writer['size']}"]


def resolved(schema: Any, names: dict[str, Any]) -> Any:
    """Returns a type without what is around it: what a name stands for, and what `type` nests."""
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
        return resolved(schema["type"], names)
    return schema


def qualified(schema: Any, namespace: str, names: dict[str, Any]) -> Any:
    """Returns a schema in which all names are full names, and adds the named types that it defines to `names`."""
    if isinstance(schema, list):
        return [qualified(branch, namespace, names) for branch in schema]
    if isinstance(schema, str):
        return full_name(schema, namespace)
    found = dict(schema)
    if schema.get("type") in NAMED_KINDS:
        found["name"] = full_name(str(schema["name"]), schema.get("namespace", namespace))
        namespace = found["name"].rpartition(".")[0]
        names[found["name"]] = found
    else:
        found["type"] = qualified(schema["type"], namespace, names)
    if "fields" in schema:
        found["fields"] = [{**each, "type": qualified(each["type"], namespace, names)} for each in schema["fields"]]
    for part in ("items", "values"):
        if part in schema:
            found[part] = qualified(schema[part], namespace, names)
    return found


def full_name(name: str, namespace: str) -> str:
    """Returns a name with its namespace; the names of Avro's own types have none."""
    return name if "." in name or not namespace or name in UNNAMED_KINDS else f"{namespace}.{name}"


def kind_of(schema: Any) -> str:
    """Returns the kind of a resolved schema: `record`, `union`, `int`. An error is a record."""
    if isinstance(schema, list):
        return "union"
    kind = str(schema["type"] if isinstance(schema, dict) else schema)
    return "record" if kind == "error" else kind


def has_same_name(reader: Any, writer: Any) -> bool:
    """Tells whether two resolved types of one kind have the same name, or no name."""
    if kind_of(reader) not in NAMED_KINDS:
        return True
    if bare(reader["name"]) == bare(writer["name"]):
        return True
    namespace = reader["name"].rpartition(".")[0]
    aliases = [
        alias if "." in alias or not namespace else f"{namespace}.{alias}" for alias in reader.get("aliases", ())
    ]
    return writer["name"] in aliases


def bare(name: str) -> str:
    """Returns a name without its namespace."""
    return name.rpartition(".")[2]


def title(schema: Any) -> str:
    """Returns a resolved type for a message: `int`, `record shop.Order`, `array`."""
    kind = kind_of(schema)
    return f"{kind} {schema['name']}" if kind in NAMED_KINDS else kind


def mismatch(reader: Any, writer: Any, path: str) -> str:
    """Returns the message for two types that do not match."""
    return f"{path or '/'}: the reader expects `{title(reader)}`, the writer may send `{title(writer)}`"
