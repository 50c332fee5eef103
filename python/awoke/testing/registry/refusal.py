"""The refusals of the embedded schema registry: HTTP status, Confluent's error code and message of each."""

from __future__ import annotations

from awoke.errors import AwokeError


class Refusal(AwokeError):
    """A request that the registry does not fulfil."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status."""
        self.code = code
        """Confluent's error code: the status, mostly with two more digits."""
        self.message = message
        """For people."""


def bad_request(reason: str) -> Refusal:
    """Returns the refusal of a body that is no JSON object."""
    return Refusal(400, 400, f"the body of the request is not what it should be: {reason}")


def unauthorized() -> Refusal:
    """Returns the refusal of a request without the right user and password."""
    return Refusal(401, 401, "Unauthorized")


def path_not_found(path: str) -> Refusal:
    """Returns the refusal of a path that is not part of the API."""
    return Refusal(404, 404, f"HTTP 404 Not Found: {path}")


def method_not_allowed(method: str, path: str) -> Refusal:
    """Returns the refusal of a method that the path does not have."""
    return Refusal(405, 405, f"HTTP 405 Method Not Allowed: {method} {path}")


def subject_not_found(subject: str) -> Refusal:
    """Returns the refusal for a subject that has no version."""
    return Refusal(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> Refusal:
    """Returns the refusal for a version that the subject does not have."""
    return Refusal(404, 40402, f"Version {version} not found.")


def schema_not_found(schema: object = "") -> Refusal:
    """Returns the refusal for an id or GUID that has no schema, or for a schema that the subject does not have."""
    return Refusal(404, 40403, f"Schema {schema} not found" if schema else "Schema not found")


def subject_soft_deleted(subject: str) -> Refusal:
    """Returns the refusal to delete a subject a second time."""
    return Refusal(404, 40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> Refusal:
    """Returns the refusal to delete a subject permanently before it is deleted."""
    return Refusal(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> Refusal:
    """Returns the refusal to delete a version a second time."""
    where = f"Subject '{subject}' Version {version}"
    return Refusal(404, 40406, f"{where} was soft deleted. Set permanent=true to delete permanently")


def version_not_soft_deleted(subject: str, version: int) -> Refusal:
    """Returns the refusal to delete a version permanently before it is deleted."""
    where = f"Subject '{subject}' Version {version}"
    return Refusal(404, 40407, f"{where} was not deleted first before being permanently deleted")


def level_not_configured(subject: str) -> Refusal:
    """Returns the refusal for a subject without a compatibility level of its own."""
    return Refusal(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def incompatible(subject: str, messages: list[str]) -> Refusal:
    """Returns the refusal of a schema that is incompatible with earlier versions of the subject."""
    details = "; ".join(messages)
    text = (
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: [{details}]'
    )
    return Refusal(409, 409, text)


def invalid_schema(reason: str) -> Refusal:
    """Returns the refusal of a text that is no schema of its kind."""
    return Refusal(422, 42201, f"Invalid schema: {reason}")


def invalid_version(version: str) -> Refusal:
    """Returns the refusal of a version that is neither a number from 1 nor `latest`."""
    text = 'is not a valid version id. Allowed values are between [1, 2^31-1] and the string "latest"'
    return Refusal(422, 42202, f"The specified version '{version}' {text}")


def invalid_level(level: object, levels: tuple[str, ...]) -> Refusal:
    """Returns the refusal of an unknown compatibility level."""
    return Refusal(422, 42203, f"Invalid compatibility level {level!r}. Valid values are {', '.join(levels)}")


def reference_exists(subject: str, version: int) -> Refusal:
    """Returns the refusal to delete a version that other schemas reference."""
    return Refusal(422, 42206, f"One or more references exist to the schema {{subject={subject},version={version}}}")
