"""A mold as its supervisor sees it."""

from __future__ import annotations

from typing import cast

from awoke.swarm import protocol
from awoke.swarm.mold_handle import MoldHandle, MoldState
from awoke.swarm.pidfd import Pidfd
from tests.unit.swarm.fakes import FakePidfd


def test_a_mold_that_is_not_ready_forks_nothing() -> None:
    ours, theirs = protocol.pair()
    mold = MoldHandle(1, cast(Pidfd, FakePidfd()), ours)
    with ours, theirs:
        assert not mold.fork(1, theirs.fileno())
        assert mold.served_s is None
        mold.become_ready()
        assert mold.fork(1, theirs.fileno())
        mold.kill()
        assert mold.state is MoldState.ENDING
        assert not mold.fork(1, theirs.fileno())
    mold.close()
