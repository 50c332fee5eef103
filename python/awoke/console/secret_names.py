"""The names of secret fields in reports: made of what an app declares, and read by consoles without its code."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from awoke.console.views import Report, SecretFields
from awoke.declare.secret_topics import Declaring, Form, SecretPart, SecretTopics, declared_by
from awoke.payloads.registry.schema import Part
from awoke.payloads.secret_paths import SecretPaths

logger = logging.getLogger(__name__)

BYTES_MAX = 100_000
"""The most bytes of a report that names of secret fields take; with more, it does not tell them."""
ADVICE = "open the console as MODULE:APP, or run the app with console=True"


def names_of(app: Declaring) -> list[SecretFields] | None:
    """Returns the names of the secret fields of an app; None if they can't be told: its contents are hidden then."""
    try:
        found = [_view(each) for each in declared_by(app).parts]
    except Exception as error:  # The types are user code, whose annotations are evaluated.
        logger.warning("consoles hide all messages: the secret fields of the app are not known: %r", error)
        return None
    size_bytes = len(msgspec.json.encode(found))
    if size_bytes > BYTES_MAX:
        logger.warning("consoles hide all messages: the names of the secret fields have %d bytes", size_bytes)
        return None
    return found


def topics_of(reports: Iterable[Report], *, gone: Sequence[SecretFields] | None, problem: str | None) -> SecretTopics:
    """Returns the secrets that reports tell.

    `gone` are those of processes that have stopped, for when none is left. `problem` is a reason why reports may be
    missing.
    """
    told: list[Sequence[SecretFields]] = [each.secrets for each in reports if each.secrets is not None]
    if not told and gone is not None:
        told = [gone]
    if problem is None and not told:
        problem = "no process of the app has told them"
    because = None if problem is None else f"the secret fields of the app are not known: {problem}; {ADVICE}"
    names = dict.fromkeys(each for found in told for each in found)  # Most processes tell the same.
    return SecretTopics((part for each in names for part in _parts(each)), because)


def _view(part: SecretPart) -> SecretFields:
    paths = part.paths
    return SecretFields(
        topic=part.topic,
        is_pattern=part.is_pattern,
        part=part.part,
        form=part.form,
        fields=paths.fields,
        optional=paths.optional,
        same=paths.same,
    )


def _parts(names: SecretFields) -> Iterator[SecretPart]:
    """Yields the secrets that names tell. Words of a later version count as what hides most."""
    paths = SecretPaths(names.fields, names.optional, names.same)
    form: Form = "json" if names.form == "json" else "registry" if names.form == "registry" else "other"
    both: tuple[Part, ...] = ("value", "key")
    for part in [each for each in both if each == names.part] or both:
        yield SecretPart(names.topic, part, form, paths, names.is_pattern)
