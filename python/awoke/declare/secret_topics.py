"""The topics whose keys or values have secret fields, as the routes, outputs and topics of an app declare them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from awoke.declare.patterns import Pattern
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.payloads.formats import protobuf_classes
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import Format, type_of
from awoke.payloads.formats.registry_formats import RegistryFormat
from awoke.payloads.registry.schema import Part
from awoke.payloads.secret_fields import paths_of
from awoke.payloads.secret_paths import SecretPaths
from awoke.payloads.topics import DeclaredTopics, Topic

Form = Literal["json", "registry", "other"]
"""The form of the bytes: JSON, or by a schema of the registry; both can be read without the type. `other` can't."""
REGEX_MAX = 1_000
"""A longer pattern is taken for one of all topics: it may come from another program."""


class SecretPart(NamedTuple):
    """The secrets in the keys, or in the values, of a topic by one of its routes."""

    topic: str
    """A name, or the regular expression of a pattern."""
    part: Part
    form: Form
    paths: SecretPaths
    is_pattern: bool = False


class OfGroup(Protocol):
    """The routes of a consumer group."""

    @property
    def routes(self) -> Mapping[str, Route]: ...
    @property
    def patterns(self) -> Mapping[Pattern, Route]: ...


class Declaring(Protocol):
    """An app, as its secrets are looked for; `awoke.App` is one."""

    @property
    def format(self) -> Format: ...
    @property
    def groups(self) -> Mapping[Any, OfGroup]: ...
    @property
    def topics(self) -> DeclaredTopics: ...


class SecretTopics:
    """The secrets of topics. It never changes."""

    def __init__(self, parts: Iterable[SecretPart] = (), unknown_because: str | None = None) -> None:
        self.parts = tuple(dict.fromkeys(parts))
        self.unknown_because = unknown_because
        """The reason why any topic may have further secrets, so that no content may be shown; None: none may."""
        self._patterns = [(_pattern(each.topic), each) for each in self.parts if each.is_pattern]

    def of(self, topic: str, part: Part) -> list[SecretPart]:
        """Returns the known secrets in the keys or the values of a topic. A document has those of all of them."""
        found = [each for each in self.parts if each.topic == topic and not each.is_pattern]
        found += [each for pattern, each in self._patterns if pattern is None or pattern.matches(topic)]
        return [each for each in found if each.part == part]

    def hides(self, topic: str, part: Part) -> bool:
        """Tells whether keys or values of a topic have secrets, or may have some: their bytes are never shown."""
        return self.unknown_because is not None or bool(self.of(topic, part))

    def has(self, topic: str) -> bool:
        """Tells whether messages of a topic have secrets, or may have some."""
        return self.hides(topic, "value") or self.hides(topic, "key")

    def with_others(self, others: Iterable[SecretPart]) -> SecretTopics:
        """Returns these secrets and further ones."""
        return SecretTopics((*self.parts, *others), self.unknown_because)


NO_SECRETS = SecretTopics()


def declared_by(app: Declaring) -> SecretTopics:
    """Returns the secrets of all topics that an app names: those that it reads, and those that it may only write."""
    return SecretTopics(_declared(app))


def masked(document: Any, secrets: Iterable[SecretPart]) -> Any:
    """Returns a JSON document without these secrets."""
    for each in secrets:
        document = each.paths.masked(document)
    return document


def fits(document: Any, secrets: Collection[SecretPart]) -> bool:
    """Tells whether a JSON document has what one of the types of these secrets always has, or there are none."""
    return not secrets or any(each.paths.fits(document) for each in secrets)


def masked_json(data: bytes, secrets: Collection[SecretPart]) -> str | None:
    """Returns a JSON document without these secrets; None if it has not what one of their types always has.

    Raises:
        msgspec.DecodeError: It is no JSON.
    """
    document = msgspec.json.decode(data)
    return msgspec.json.encode(masked(document, secrets)).decode() if fits(document, secrets) else None


def secrets_of(topic: str, value: Any, key: Any = None, default: Format = BY_TYPE) -> Iterator[SecretPart]:
    """Yields the secrets of a topic with values and keys of these types or formats."""
    forms: tuple[tuple[Part, Any], ...] = (("value", value), ("key", key))
    for part, form in forms:
        paths = paths_of(type_of(form))
        if paths:
            yield SecretPart(str(topic), part, _form(form, default), paths)


def _declared(app: Declaring) -> Iterator[SecretPart]:
    for group in app.groups.values():
        for topic, route in group.routes.items():
            yield from _of_route(app, topic, route)
        for pattern, route in group.patterns.items():
            for each in _of_route(app, pattern.regex, route):
                yield each._replace(is_pattern=each.topic == pattern.regex)
    for topic in app.topics.typed:
        yield from secrets_of(topic, topic.value, topic.key, app.format)


def _of_route(app: Declaring, topic: str, route: Route) -> Iterator[SecretPart]:
    for name in (topic, route.dead_letter):
        if name:
            yield from secrets_of(name, *route.types, app.format)
    for table in route.tables:
        yield from secrets_of(table.changelog, table.changelog.value, table.changelog.key, app.format)
    for each in route.outputs:
        if isinstance(each, Topic):
            yield from secrets_of(each, each.value, each.key, app.format)


def _form(form: Any, default: Format) -> Form:
    if isinstance(form, Format):
        return "registry" if isinstance(form, RegistryFormat) and not form.has_indexes else "other"
    return "json" if default is BY_TYPE and protobuf_classes.class_in(form) is None else "other"


def _pattern(regex: str) -> Pattern | None:
    """Returns a pattern; None for one that can't be read, which counts as one of all topics."""
    try:
        return Pattern(regex) if len(regex) <= REGEX_MAX else None
    except ConfigError:
        return None
