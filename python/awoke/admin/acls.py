"""The flows for ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from awoke.admin.connection import Connection, Entries, Refusal, check, refused
from awoke.admin.results import Acl, AclFilter, Operation
from awoke.errors import ConfigError

ANY = 1
"""The number that stands for any kind, operation, permission or pattern in a filter."""
UNKNOWN = "unknown"
KINDS = {2: "topic", 3: "group", 4: "cluster", 5: "transactional_id"}
PATTERNS = {2: "match", 3: "literal", 4: "prefixed"}
PERMISSIONS = {2: "deny", 3: "allow"}
OPERATIONS = dict(enumerate([word for word in get_args(Operation) if word != UNKNOWN], 2))
"""Words by their numbers in Kafka's protocol."""

Native = tuple[int, str | None, int, str | None, str | None, int, int]
"""Kind of resource, name, pattern, principal, host, operation, permission."""
Answer = list[tuple[Refusal | None, list[Native]]]


class Acls:
    """The requests about ACLs of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(self, acls: Iterable[Acl], timeout_s: float) -> None:
        wanted = list(acls)
        if not wanted:
            return
        natives = [_native_of(each) for each in wanted]
        created: Entries = await self._connection.request("create_acls", natives, timeout_s, "create ACLs")
        for acl, (_, refusal) in zip(wanted, created, strict=True):
            check([("", refusal)], f"create {acl}")

    async def describe(self, selected: AclFilter, timeout_s: float) -> list[Acl]:
        arguments = _native_of(selected)
        found: Answer = await self._connection.request("describe_acls", arguments, timeout_s, "describe ACLs")
        return _acls_of(found, "describe ACLs")

    async def delete(self, selected: Iterable[Acl | AclFilter], timeout_s: float) -> list[Acl]:
        arguments = [_native_of(each) for each in selected]
        if not arguments:
            return []
        found: Answer = await self._connection.request("delete_acls", arguments, timeout_s, "delete ACLs")
        return _acls_of(found, "delete ACLs")


def _native_of(acl: Acl | AclFilter) -> Native:
    is_filter = isinstance(acl, AclFilter)
    patterns = PATTERNS if is_filter else {number: word for number, word in PATTERNS.items() if word != "match"}
    return (
        _number("resource", KINDS, acl.resource, is_filter),
        acl.name,
        _number("pattern", patterns, acl.pattern, is_filter),
        acl.principal,
        acl.host,
        _number("operation", OPERATIONS, acl.operation, is_filter),
        _number("permission", PERMISSIONS, acl.permission, is_filter),
    )


def _number(field: str, words: Mapping[int, str], word: str | None, is_filter: bool) -> int:
    if word is None and is_filter:
        return ANY
    for number, known in words.items():
        if known == word:
            return number
    raise ConfigError(f"{field} of an ACL is one of {', '.join(words.values())}, not {word!r}", field)


def _acls_of(answer: Answer, what: str) -> list[Acl]:
    done = sorted({_acl_of(native) for refusal, natives in answer if refusal is None for native in natives})
    for refusal, natives in answer:
        if refusal is not None:
            of = "".join(f" {_acl_of(native)}" for native in natives)
            raise refused(f"{what}{of} (done before: {', '.join(map(str, done)) or 'none'})", refusal)
    return done


def _acl_of(native: Native) -> Acl:
    kind, name, pattern, principal, host, operation, permission = native
    return Acl(
        _word(KINDS, kind),
        name or "",
        principal or "",
        _word(OPERATIONS, operation),
        _word(PERMISSIONS, permission),
        _word(PATTERNS, pattern),
        host or "",
    )


def _word(words: Mapping[int, str], number: int) -> Any:
    return words.get(number, UNKNOWN)
