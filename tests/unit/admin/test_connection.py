"""The errors of entries, and of a client that is closed or has a wrong argument; without a broker."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

import awoke
from awoke.admin.connection import ADVICE, AdminOptions, Connection, check, check_offsets, refused
from awoke.waiting.drive import drive


def test_an_entry_without_an_error_passes() -> None:
    check([("orders", None)], "create topic")
    check_offsets([("orders", 0, 5, None)], "delete records")


def test_the_first_error_of_an_entry_is_raised_with_its_name() -> None:
    refusal = (36, "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists.")
    with pytest.raises(awoke.KafkaError, match="create topic 'orders': Topic 'orders' already exists") as error:
        check([("fine", None), ("orders", refusal), ("other", refusal)], "create topic")
    assert (error.value.code, error.value.code_name) == (36, "TOPIC_ALREADY_EXISTS")


def test_the_error_of_a_partition_names_it() -> None:
    with pytest.raises(awoke.UnknownTopic, match=r"offsets: orders\[7\]: none"):
        check_offsets([("orders", 7, -1, (3, "UNKNOWN_TOPIC_OR_PART", "none"))], "offsets")


def test_an_error_without_a_text_has_its_name() -> None:
    assert str(refused("create topic", (37, "INVALID_PARTITIONS", ""))) == "create topic: INVALID_PARTITIONS"


@pytest.mark.parametrize(
    ("code", "kind"), [(69, awoke.UnknownGroup), (68, awoke.GroupNotEmpty), (31, awoke.AuthorizationFailed)]
)
def test_an_error_has_the_most_exact_class(code: int, kind: type[awoke.KafkaError]) -> None:
    assert type(refused("delete group", (code, "", "no"))) is kind


def test_a_request_that_brokers_do_not_know_says_what_to_do() -> None:
    assert ADVICE in str(refused("list groups", (-165, "_UNSUPPORTED_FEATURE", "Required feature not supported")))


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "text"),
    [
        ("create_topics", [("a\0b", 1, 1, [])], awoke.ConfigError, "ask: a topic must not hold a zero byte"),
        ("delete_groups", ["a\0b"], awoke.ConfigError, "must not hold a zero byte"),
        ("create_acls", [(9, "a", 3, "User:a", "*", 3, 3)], awoke.ConfigError, "ask: ACL: Invalid resource type"),
        ("create_acls", [(2, None, 3, "User:a", "*", 3, 3)], awoke.ConfigError, "Invalid resource name"),
        ("describe_acls", (2, None, 9, None, None, 3, 3), awoke.ConfigError, "Invalid resource pattern type"),
        ("describe_configs", [(2, "")], awoke.ConfigError, "can't have settings"),
        ("make_coffee", None, awoke.ConfigError, 'no admin request "make_coffee"'),
        ("create_partitions", [("orders", -1)], OverflowError, None),
        ("delete_topics", [1], TypeError, None),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    kind: str, arguments: object, error: type[Exception], text: str | None
) -> None:
    connection = Connection(AdminOptions("127.0.0.1:1"))
    try:
        with pytest.raises(error, match=text):
            drive(connection.request(kind, arguments, 60, "ask"))
    finally:
        connection.close()


def test_closing_ends_a_request_and_those_after_it() -> None:
    connection = Connection(AdminOptions("127.0.0.1:1"))
    with ThreadPoolExecutor(1) as others:
        waiting = others.submit(drive, connection.request("list_groups", None, 600, "list groups"))
        connection.close()
        with pytest.raises(awoke.ClosedError):
            waiting.result(30)
    with pytest.raises(awoke.ClosedError):
        drive(connection.request("list_groups", None, 600, "list groups"))
    assert not drive(connection.again())


async def test_an_event_loop_goes_on_while_a_request_waits() -> None:
    connection = Connection(AdminOptions("127.0.0.1:1"))
    waiting = asyncio.ensure_future(connection.request("list_groups", None, 600, "list groups"))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await connection.again()
    connection.close()
    with pytest.raises(awoke.ClosedError):
        await waiting
