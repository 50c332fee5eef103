"""The client for commands: a wrong command is not sent."""

from __future__ import annotations

import asyncio

import pytest

from awoke.console.commands.commander import Commander, request_of
from awoke.rpc.errors import InvalidArgument
from awoke.settings import load

NO_BROKER = {"bootstrap_servers": "127.0.0.1:1"}


def test_a_wrong_command_is_refused_before_anything_is_opened() -> None:
    with Commander("shop", settings=load(NO_BROKER).values) as commander:
        with pytest.raises(InvalidArgument, match="no command 'explode'"):
            commander.send("host.1", "explode", who="ann", reason="a test")
        with pytest.raises(InvalidArgument, match="who"):
            commander.send("host.1", "quiet", who="", reason="a test")


def test_an_awaited_command_is_checked_alike() -> None:
    async def send() -> None:
        async with Commander("shop", settings=load(NO_BROKER).values) as commander:
            with pytest.raises(InvalidArgument, match="reason"):
                await commander.asend("host.1", "quiet", who="ann", reason=" ")

    asyncio.run(send())


def test_the_call_names_process_command_sender_and_reason() -> None:
    found = request_of("host.1", "scale", {"nodes": 3}, " ann ", "more work")
    assert found == {
        "node": "host.1",
        "verb": "scale",
        "arguments": {"nodes": 3},
        "who": "ann",
        "reason": "more work",
    }
