"""Messages between mold, nodes and supervisor."""

from __future__ import annotations

import pytest

from awoke.swarm import protocol


def test_messages_say_what_they_are() -> None:
    vitals = protocol.Vitals(1, 2 << 30, 30, 4, 5, 6, 7, 8, -1)
    assert protocol.decode_node(protocol.VITALS_MARK + protocol.VITALS.pack(*vitals)) == vitals
    assert protocol.decode_node(protocol.encode(protocol.StartFailed("no"))) == protocol.StartFailed("no")
    assert protocol.decode(protocol.encode(protocol.MoldReady(1)), protocol.FROM_MOLD) == protocol.MoldReady(1)
    with pytest.raises(ValueError, match="3 bytes"):
        protocol.decode_node(b"xyz")
