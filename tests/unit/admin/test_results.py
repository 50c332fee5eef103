"""The values of administration."""

from __future__ import annotations

from awoke.admin.results import EVERY_ACL, Acl, AclFilter, OffsetChange


def test_a_change_is_not_clamped_unless_it_says_so() -> None:
    assert not OffsetChange("billing", "orders", 0, None, 1, 0, 2).is_clamped


def test_an_acl_allows_one_resource_from_everywhere_unless_it_says_otherwise() -> None:
    assert Acl("topic", "orders", "User:a", "read")[4:] == ("allow", "literal", "*")


def test_a_filter_selects_any_acl_unless_it_says_otherwise() -> None:
    assert AclFilter() == EVERY_ACL
    assert set(EVERY_ACL) == {None}
