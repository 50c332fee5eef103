"""The names of a node."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

import awoke
from awoke.runtime.inbox import Inbox
from awoke.swarm.node import Node
from awoke.swarm.options import Options


@pytest.mark.parametrize(
    ("settings", "options", "name"),
    [
        ({}, {}, "HOST.s.2"),
        ({"instance_id": "shop"}, {}, "shop-2"),
        ({"instance_id": "shop"}, {"static_members": False}, "shop-2"),
        ({}, {"static_members": False}, None),
        ({}, {"kafka": {"group.instance.id": "mine"}}, None),
        ({}, {"kafka": {"group.protocol": "consumer"}}, None),
        ({"kafka": {"group.protocol": "consumer"}}, {}, None),
    ],
)
def test_a_node_has_a_name_in_its_group(settings: dict[str, Any], options: dict[str, Any], name: str | None) -> None:
    app = awoke.App("shop", **settings)
    with contextlib.closing(Inbox()) as heard, socket.socket() as control:
        node = Node(2, control, app, Options(target="a:b", nodes=2, socket="/tmp/s", **options), heard)
        assert node._names()["instance_id"] == (name and name.replace("HOST", socket.gethostname()))
