"""The state of the embedded schema registry: subjects with their versions, schemas by id and GUID, levels."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from awoke.payloads.registry.schema import Reference, Schema
from awoke.testing.registry import refusal
from awoke.testing.registry.compatibility import Earlier, Levels, compared, reasons
from awoke.testing.registry.kinds import Parsed, canonical, parse

LATEST = -1
"""The number that stands for the latest version of a subject."""
VERSION_MAX = 2**31 - 1


class Stored(NamedTuple):
    """A schema with its id and GUID."""

    id: int
    guid: str
    schema: Schema


@dataclass
class Version:
    """A version of a subject."""

    subject: str
    number: int
    stored: Stored
    is_deleted: bool = False
    """True if it is soft-deleted: it is hidden, but its id and its number stay in use."""


class Subjects:
    """Subjects and schemas. For one thread at a time. Nothing here blocks."""

    def __init__(self, level: str) -> None:
        self.levels = Levels(level)
        self._subjects: dict[str, list[Version]] = {}
        """The versions of each subject, deleted ones too, in the order of their numbers; never empty."""
        self._schemas: dict[tuple[object, ...], Stored] = {}
        """The schemas that have a version, by their canonical form."""
        self._ids = itertools.count(1)

    # Reading.

    def names(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Returns the subjects with this prefix, sorted; with `deleted`, also those without a version left."""
        return sorted(each for each in self._subjects if each.startswith(prefix) and self._of(each, deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Returns the versions of a subject in the order of their numbers; with `deleted`, soft-deleted ones too.

        Raises:
            Refusal: The subject has none (40401).
        """
        found = self._of(subject, deleted)
        if not found:
            raise refusal.subject_not_found(subject)
        return found

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version:
        """Returns a version of a subject; the latest one for -1.

        Raises:
            Refusal: There is no such subject (40401) or version (40402).
        """
        versions = self.versions(subject, deleted=deleted)
        if number == LATEST:
            return versions[-1]
        found = next((each for each in versions if each.number == number), None)
        if found is None:
            raise refusal.version_not_found(number)
        return found

    def by_id(self, schema_id: int) -> Stored:
        """Returns the schema with an id, also if all of its versions are soft-deleted.

        Raises:
            Refusal: There is none (40403).
        """
        found = next((each for each in self._schemas.values() if each.id == schema_id), None)
        if found is None:
            raise refusal.schema_not_found(schema_id)
        return found

    def by_guid(self, guid: str) -> Stored:
        """Returns the schema with a GUID, also if all of its versions are soft-deleted.

        Raises:
            Refusal: There is none (40403).
        """
        found = next((each for each in self._schemas.values() if each.guid == guid.lower()), None)
        if found is None:
            raise refusal.schema_not_found(guid)
        return found

    def uses(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """Returns the versions that have a schema, by subject and number.

        Raises:
            Refusal: There is no such schema (40403).
        """
        self.by_id(schema_id)
        return [
            each
            for name in self.names(deleted=deleted)
            for each in self._of(name, deleted)
            if each.stored.id == schema_id
        ]

    def referrers(self, version: Version) -> list[int]:
        """Returns the ids of the schemas that reference a version, in ascending order."""
        return sorted({each.stored.id for each in self._live() if is_referrer(each, version)})

    def look_up(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version:
        """Returns the version of a subject that has a schema; of several, the latest.

        Raises:
            Refusal: There is no such subject (40401), or it has no such schema (40403).
        """
        versions, wanted = self.versions(subject, deleted=deleted), canonical(schema)
        found = [each for each in versions if canonical(each.stored.schema) == wanted]
        if not found:
            raise refusal.schema_not_found()
        return found[-1]

    # Changing.

    def register(self, subject: str, schema: Schema) -> Version:
        """Adds a schema as a version of a subject and returns it. A schema that the subject has adds no version.

        Raises:
            Refusal: The schema is invalid (42201), or incompatible with the versions before it (409).
        """
        parsed, wanted = self._parse(schema), canonical(schema)
        for version in self._of(subject, deleted=False):
            if canonical(version.stored.schema) == wanted:
                return version
        if messages := self._reasons(subject, parsed):
            raise refusal.incompatible(subject, messages)
        versions = self._subjects.setdefault(subject, [])
        number = versions[-1].number + 1 if versions else 1
        versions.append(Version(subject, number, self._store(wanted, schema)))
        return versions[-1]

    def check(self, subject: str, schema: Schema, number: int | None = None) -> list[str]:
        """Returns the reasons why a schema is incompatible with a version, or at None with those of its level.

        Empty if it is compatible. A subject without versions is compatible with any schema.

        Raises:
            Refusal: The schema is invalid (42201), or there is no such version (40402), which is not the latest.
        """
        parsed = self._parse(schema)
        if number is None or (number == LATEST and not self._of(subject, deleted=False)):
            return self._reasons(subject, parsed)
        if not self._of(subject, deleted=False):
            raise refusal.version_not_found(number)
        found = self.version(subject, number)
        return reasons(self.levels.applied_to(subject), parsed, [self._earlier(found)])

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Deletes a subject, and its level; returns the numbers of its versions. `permanent` needs it to be deleted.

        Raises:
            Refusal: There is no such subject (40401), it is deleted (40404) or not yet (40405), or referenced (42206).
        """
        every, live = self.versions(subject, deleted=True), self._of(subject, deleted=False)
        if permanent and live:
            raise refusal.subject_not_soft_deleted(subject)
        if not permanent and not live:
            raise refusal.subject_soft_deleted(subject)
        for each in live:
            self._check_unreferenced(each)
        self.levels.forget(subject)
        return [self._delete(each) for each in live or every]

    def delete_version(self, subject: str, number: int, *, permanent: bool = False) -> int:
        """Deletes a version of a subject, and returns its number. `permanent` needs it to be deleted.

        Raises:
            Refusal: There is no such subject (40401) or version (40402), it is deleted (40406) or not yet (40407),
                or a schema references it (42206).
        """
        version = self.version(subject, number, deleted=permanent or number != LATEST)
        if permanent and not version.is_deleted:
            raise refusal.version_not_soft_deleted(subject, version.number)
        if not permanent and version.is_deleted:
            raise refusal.version_soft_deleted(subject, version.number)
        self._check_unreferenced(version)
        return self._delete(version)

    # Internals.

    def _of(self, subject: str, deleted: bool) -> list[Version]:
        """Returns the versions of a subject, with `deleted` the soft-deleted ones too; none for an unknown subject."""
        return [each for each in self._subjects.get(subject, ()) if deleted or not each.is_deleted]

    def _live(self) -> Iterator[Version]:
        """Returns all versions that are not deleted."""
        return (each for versions in self._subjects.values() for each in versions if not each.is_deleted)

    def _store(self, wanted: tuple[object, ...], schema: Schema) -> Stored:
        """Returns the schema with its id: that of an equal one, else the next."""
        found = self._schemas.get(wanted)
        if found is None:
            # By its content, as in Confluent's registry: equal schemas have the same GUID in all registries.
            guid = str(uuid.uuid5(uuid.NAMESPACE_URL, repr(wanted)))
            found = self._schemas[wanted] = Stored(next(self._ids), guid, schema)
        return found

    def _check_unreferenced(self, version: Version) -> None:
        """Raises a refusal if a version is about to be deleted softly while a schema references it."""
        if not version.is_deleted and self.referrers(version):
            raise refusal.reference_exists(version.subject, version.number)

    def _delete(self, version: Version) -> int:
        """Deletes a version: at first softly, then for good."""
        if not version.is_deleted:
            version.is_deleted = True
            return version.number
        versions = self._subjects[version.subject]
        versions.remove(version)
        if not versions:
            del self._subjects[version.subject]
        if not any(each.stored.id == version.stored.id for every in self._subjects.values() for each in every):
            del self._schemas[canonical(version.stored.schema)]
        return version.number

    def _parse(self, schema: Schema) -> Parsed:
        """Returns a schema, parsed with its references."""
        return parse(schema, self._referenced(schema.references))

    def _referenced(self, references: tuple[Reference, ...]) -> dict[str, Schema]:
        """Returns the schemas behind references, by name, each after those that it refers to itself."""
        found: dict[str, Schema] = {}
        for each in references:
            try:
                schema = self.version(each.subject, each.version).stored.schema
            except refusal.Refusal as error:
                raise refusal.invalid_schema(f"the reference `{each.name}` leads nowhere: {error.message}") from None
            found.update(self._referenced(schema.references))
            found[each.name] = schema
        return found

    def _earlier(self, version: Version) -> Earlier:
        """Returns a version for a comparison with a new schema."""
        return Earlier(version.number, self._parse(version.stored.schema))

    def _reasons(self, subject: str, new: Parsed) -> list[str]:
        """Returns the reasons why a schema must not become the next version of a subject."""
        level = self.levels.applied_to(subject)
        versions = [self._earlier(each) for each in self._of(subject, deleted=False)]
        return reasons(level, new, compared(level, versions))


def is_referrer(version: Version, other: Version) -> bool:
    """Tells whether the schema of a version references another version."""
    references = version.stored.schema.references
    return any(each.subject == other.subject and each.version == other.number for each in references)
