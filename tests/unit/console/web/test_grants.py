"""Roles include those before them; a policy never grants more than the console allows."""

from __future__ import annotations

import pytest

from awoke.console.web.grants import Grant, Granted, Rights, Role, role_of, view_only
from awoke.errors import ConfigError


async def test_nothing_is_allowed_unless_said() -> None:
    grant = await Rights(view_only, (), False).of({})
    assert grant == Grant(role=Role.VIEW, verbs=frozenset(), payloads=False)
    assert not grant.allows("pause", Role.VIEW)
    assert not grant.payloads


async def test_a_verb_needs_its_role_and_the_list() -> None:
    grant = await Rights(lambda scope: Role.OPERATE, ["pause"], False).of({})
    assert grant is not None
    assert [grant.allows("pause"), grant.allows("seek"), grant.allows("pause", Role.ADMIN)] == [True, False, False]


async def test_a_policy_can_narrow_the_verbs_only() -> None:
    wide = Grant(role=Role.ADMIN, who="ann", verbs=frozenset({"pause", "stop"}))
    assert await Rights(lambda scope: wide, ["pause"], True).of({}) == Grant(
        role=Role.ADMIN, who="ann", verbs=frozenset({"pause"}), payloads=True
    )


@pytest.mark.parametrize("found", [None, Role.ADMIN, Grant(role=Role.OPERATE)])
async def test_a_policy_may_be_awaited(found: Granted) -> None:
    async def policy(scope: object) -> Granted:
        return found

    grant = await Rights(policy, (), False).of({})
    role = found if isinstance(found, Role | None) else found.role
    assert grant == (None if role is None else Grant(role=role, verbs=frozenset(), payloads=False))


def test_a_role_has_a_name() -> None:
    assert role_of("operate") is Role.OPERATE
    with pytest.raises(ConfigError, match="view, operate and admin"):
        role_of("root")


async def test_a_grant_that_allows_nothing_stays_so() -> None:
    narrow = Grant(role=Role.ADMIN, who="ann", verbs=frozenset(), payloads=False)
    found = await Rights(lambda scope: narrow, ["*"], True).of({})
    assert found is not None
    assert (found.allows("pause"), found.payloads) == (False, False)
    every = Grant(role=Role.ADMIN, verbs=frozenset({"*"}), payloads=True)
    found = await Rights(lambda scope: every, ["pause"], False).of({})
    assert found is not None
    assert (found.allows("pause"), found.allows("stop"), found.payloads) == (True, False, False)
    assert not Grant(role=Role.ADMIN).allows("pause"), "nobody has asked the console"
