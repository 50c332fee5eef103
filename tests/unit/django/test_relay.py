"""The connection on which a relay listens: that it is lost is noticed, and that it hears nothing, too."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from awoke.django.relay import LOST_AFTER_S, notice_loss


@pytest.mark.parametrize(
    ("options", "is_set"), [({}, True), ({"sslmode": "require"}, True), ({"keepalives_idle": 600}, False)]
)
def test_a_lost_connection_is_noticed_within_a_minute_unless_its_options_say_when(
    options: dict[str, Any], is_set: bool
) -> None:
    with socket.socket() as connection:
        notice_loss(connection.fileno(), options)
        assert bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) is is_set
        idle_s = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        assert (idle_s == LOST_AFTER_S) is is_set


def test_a_connection_inside_the_machine_needs_no_tries() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        notice_loss(ours.fileno(), {})
        ours.send(b"x")
        assert theirs.recv(1) == b"x", "the descriptor is still open"
