"""Checks whether a schema is compatible with the versions of a subject, and says the verdict in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry
    from awoke.payloads.registry.schema import Schema

CONFLUENT = re.compile(r"\{errorType:['\"](\w+)['\"], description:['\"](.*?)['\"](?:, additionalInfo:.*)?\}", re.DOTALL)
"""A reason as Confluent's registry writes it."""
CIRCUMSTANCES = ("{oldSchema", "{validateFields", "{compatibility")
"""The begin of messages of Confluent's registry that say what was compared, and not why it is incompatible."""

Compared = int | Literal["latest", "all"] | None
"""The version to compare with. None: as registering does, with the latest, or with all at a transitive level."""


class Incompatibility(NamedTuple):
    """A reason for which a schema is not compatible with a version."""

    version: int
    text: str


class Verdict(NamedTuple):
    """The result of a check."""

    subject: str
    level: str
    """The subject's compatibility level, or the registry's."""
    versions: tuple[int, ...]
    """The versions that the schema was compared with; empty for a subject without versions."""
    latest: int | None
    reasons: tuple[Incompatibility, ...]

    @property
    def is_compatible(self) -> bool:
        """True if there is no reason against it."""
        return not self.reasons

    def lines(self, name: str) -> Iterator[str]:
        """Yields the verdict about the schema of this name, the rule, and the reasons."""
        if not self.versions:
            yield f"compatible: {self.subject} has no version yet, and {name} would be the first"
            return
        if self.is_compatible:
            yield f"compatible: {name} with {self._named(self.versions)} of {self.subject}"
        else:
            refusing = tuple(dict.fromkeys(each.version for each in self.reasons))
            yield f"not compatible: {name} with {self._named(refusing)} of {self.subject}"
        yield f"rule {self.level}: {self._rule()}"
        for version, text in self.reasons:
            yield f"- version {version}: {text}" if len(self.versions) > 1 else f"- {text}"

    def document(self) -> str:
        """Returns the verdict as JSON."""
        reasons = [each._asdict() for each in self.reasons]
        parts = {"subject": self.subject, "is_compatible": self.is_compatible, "level": self.level}
        return msgspec.json.encode({**parts, "versions": self.versions, "reasons": reasons}).decode()

    def _rule(self) -> str:
        from awoke.payloads.registry.compatibility import level_of  # Here, because it loads HTTP.

        several = len(self.versions) > 1
        return level_of(self.level).rule.format("each of them" if several else f"version {self.versions[0]}")

    def _named(self, versions: Sequence[int]) -> str:
        if versions == (self.latest,):
            return f"version {self.latest} (the latest)"
        if len(versions) == 1:
            return f"version {versions[0]}"
        has_gaps = versions[-1] - versions[0] >= len(versions)
        return f"versions {', '.join(map(str, versions)) if has_gaps else f'{versions[0]} to {versions[-1]}'}"


def check(registry: SchemaRegistry, subject: str, schema: Schema, version: Compared = None) -> Verdict:
    """Asks the registry whether a schema is compatible with a version of a subject, or with all. Blocks.

    Raises:
        RegistryError: It gives no answer. SchemaNotFound: There is no such version. InvalidSchema: It is no schema.
    """
    level, known = registry.compatibility(subject), versions_of(registry, subject)
    compared = chosen(version, level, known)
    if not compared:
        registry.check(subject, schema)  # It is compatible, but may be no schema.
    found = ((each, plain(registry.check(subject, schema, each))) for each in compared)
    reasons = tuple(Incompatibility(each, text) for each, texts in found for text in texts)
    return Verdict(subject, level, compared, known[-1] if known else None, reasons)


def versions_of(registry: SchemaRegistry, subject: str) -> tuple[int, ...]:
    """Returns the versions of a subject; none if it does not exist."""
    from awoke.payloads.registry.errors import SchemaNotFound  # Here, because it loads HTTP, and `--help` needs none.

    try:
        return tuple(registry.versions(subject))
    except SchemaNotFound:
        return ()


def chosen(version: Compared, level: str, known: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the versions to compare with."""
    from awoke.payloads.registry.compatibility import level_of  # Here, because it loads HTTP.

    if isinstance(version, int):
        return (version,)
    return known if version == "all" or (version is None and level_of(level).is_transitive) else known[-1:]


def plain(messages: Sequence[str]) -> list[str]:
    """Returns the reasons in the messages of a registry, without what wraps them."""
    if not messages:
        return []
    reasons = [each for each in messages if not each.startswith(CIRCUMSTANCES)]
    return [unwrapped(each) for each in reasons] or ["the registry gives no reason"]


def unwrapped(message: str) -> str:
    """Returns the description in a message of Confluent's registry, and any other message as it is."""
    found = CONFLUENT.fullmatch(message)
    return message if found is None else found[2] or found[1]
