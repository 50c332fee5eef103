"""Permissions that brokers deny: one that was never granted ends the app, a later denial makes it unhealthy."""

from __future__ import annotations

from awoke.errors import AuthorizationFailed
from awoke.observe.events import ClientError, CommitFailed, PartitionsAssigned
from awoke.runtime.process.refusals import GROUP, TRANSACTIONAL_ID, Refusals

ASSIGNED = PartitionsAssigned(client="shop", partitions=[("orders", 0)])


class Case:
    """The refusals of an app, and the fatal errors that it stopped for."""

    def __init__(self) -> None:
        self.ended: list[BaseException] = []
        self.refusals = Refusals("shop", "shop.", self.ended.append)

    def refuse(self, code: int) -> None:
        self.refusals.on_refused(ClientError(client="c", code=code, code_name="DENIED", text="t", is_fatal=False))


def test_a_group_that_was_never_allowed_ends_the_app_with_the_permission_it_needs() -> None:
    case = Case()
    case.refuse(GROUP)
    (error,) = case.ended
    assert isinstance(error, AuthorizationFailed)
    assert (error.code, error.code_name) == (GROUP, "DENIED")
    assert "group 'shop': not allowed; an ACL must allow READ on the group (DENIED)" in str(error)
    assert not case.refusals.is_allowed(GROUP)


def test_a_group_that_is_denied_later_is_a_reason_of_bad_health_until_it_is_allowed_again() -> None:
    case = Case()
    case.refusals.on_group_allowed(ASSIGNED)
    assert case.refusals.is_allowed(GROUP)
    case.refuse(GROUP)
    assert case.ended == []
    assert not case.refusals.is_allowed(GROUP)
    assert [reason.split(":")[0] for reason in case.refusals.reasons()] == ["group 'shop'"]
    case.refusals.on_group_allowed(ASSIGNED)
    assert case.refusals.is_allowed(GROUP)
    assert case.refusals.reasons() == []


def test_a_commit_that_is_denied_counts_as_well() -> None:
    case = Case()
    event = CommitFailed(client="c", partitions=[], code=GROUP, code_name="DENIED", will_retry=False)
    case.refusals.on_refused(event)
    assert len(case.ended) == 1


def test_permissions_are_kept_apart() -> None:
    case = Case()
    case.refusals.on_group_allowed(ASSIGNED)
    case.refuse(TRANSACTIONAL_ID)
    assert "transactional ids that begin with 'shop.': not allowed" in str(case.ended[0])
    assert case.refusals.is_allowed(GROUP)
    case.refusals.allow(TRANSACTIONAL_ID)
    assert case.refusals.reasons() == []


def test_other_errors_are_no_denials() -> None:
    case = Case()
    case.refuse(-195)
    assert (case.ended, case.refusals.reasons()) == ([], [])
