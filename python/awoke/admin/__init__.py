"""Administration: topics, settings, groups and their offsets, ACLs. `Admin` blocks, `AsyncAdmin` is awaited."""

from awoke.admin.client import Admin, AsyncAdmin
from awoke.admin.results import (
    Acl,
    AclFilter,
    BrokerInfo,
    ConfigEntry,
    GroupInfo,
    GroupListing,
    MemberInfo,
    OffsetChange,
    PartitionInfo,
    ResetTo,
    Shift,
    TopicInfo,
)

__all__ = [
    "Acl",
    "AclFilter",
    "Admin",
    "AsyncAdmin",
    "BrokerInfo",
    "ConfigEntry",
    "GroupInfo",
    "GroupListing",
    "MemberInfo",
    "OffsetChange",
    "PartitionInfo",
    "ResetTo",
    "Shift",
    "TopicInfo",
]
