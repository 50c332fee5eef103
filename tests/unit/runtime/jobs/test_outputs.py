"""The options of a route's output, and the functions that return several records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Optional, cast

import pytest

import awoke
from awoke.declare.route_options import KindOptions
from awoke.declare.routing import Route
from awoke.runtime.jobs.outputs import (
    PLAIN_MAX,
    Outputs,
    Yielded,
    add_answer,
    records_in,
    returns_records,
)


def to_list(_: Any) -> list[awoke.Record]:
    return []


def to_list_or_none(_: Any) -> list[awoke.Record] | None:
    return None


def to_optional(_: Any) -> Optional[Iterable[awoke.Record]]:  # noqa: UP045
    return None


def to_tuple(_: Any) -> tuple[awoke.Record, ...]:
    return ()


def to_iterator(_: Any) -> Iterator[awoke.Record]:
    yield from ()


async def to_list_later(_: Any) -> list[awoke.Record]:
    return []


def to_own_topics(_: Any) -> list[awoke.Outgoing]:
    return []


def to_both(_: Any) -> list[awoke.Record | awoke.Outgoing] | None:
    return []


def to_outgoing(_: Any) -> awoke.Outgoing:
    return awoke.Outgoing("other", b"")


def to_record(_: Any) -> awoke.Record:
    return awoke.Record(b"")


def to_values(_: Any) -> list[bytes]:
    return []


def to_unknown(_: Any) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821, UP037
    return []


@pytest.mark.parametrize(
    "function",
    [to_list, to_list_or_none, to_optional, to_tuple, to_iterator, to_list_later, to_own_topics, to_both],
)
def test_an_annotation_says_that_there_are_several_records(function: Callable[..., Any]) -> None:
    assert returns_records(function)


@pytest.mark.parametrize("function", [to_record, to_outgoing, to_values, to_unknown, lambda _: None, print])
def test_other_functions_return_several_records_in_a_list(function: Callable[..., Any]) -> None:
    assert not returns_records(function)


def test_several_results_are_records_only() -> None:
    record = awoke.Record(b"1")
    assert records_in(iter([record, record])) == [record, record]
    assert records_in(record) == [record]
    outgoing = awoke.Outgoing("other", b"2")
    assert records_in(outgoing) == [outgoing]
    assert records_in((record, outgoing)) == [record, outgoing]
    with pytest.raises(TypeError, match=r"awoke\.Record only, not bytes"):
        records_in([record, b"2"])


def test_a_route_is_not_its_own_output() -> None:
    with pytest.raises(awoke.ConfigError, match="its own output") as refused:
        awoke.App("app").on("topic", output="topic")(print)
    assert refused.value.property == "output"


@pytest.mark.parametrize("forwards", ["tenant", [1], 7, b"tenant"])
def test_headers_to_carry_on_are_names(forwards: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="list of names") as refused:
        awoke.App("app").on("topic", output="out", forward_headers=forwards)(print)
    assert refused.value.property == "forward_headers"


def test_headers_are_carried_on_to_an_output() -> None:
    with pytest.raises(awoke.ConfigError, match="is about an output"):
        awoke.App("app").on("topic", forward_headers=["tenant"])(print)


def answers(*results: Any, **options: Any) -> Outputs:
    """The outputs of a route after these results."""
    own = KindOptions(output="out", **options)
    outputs = Outputs(Route("orders", lambda message: None, {}, own), None)
    for result in results:
        outputs.answer(cast("awoke.Message[Any]", SimpleNamespace(key=b"key", raw_key=b"key", headers=[])), result)
    return outputs


def test_a_type_of_results_that_was_sent_as_it_is_needs_no_other_look() -> None:
    assert answers().plain == {bytes, str}
    assert answers({"id": 1}, 7, [1], (2,), awoke.Record(b"1"), [awoke.Record(b"2")]).plain == {bytes, str, dict, int}


def test_where_headers_are_carried_on_no_result_is_sent_as_it_is() -> None:
    assert answers({"id": 1}, forward_headers=True).plain == set()


def test_the_number_of_known_types_is_bounded() -> None:
    kinds = [type(f"Kind{number}", (), {}) for number in range(2 * PLAIN_MAX)]
    assert len(answers(*(kind() for kind in kinds)).plain) == PLAIN_MAX


MESSAGE: Any = SimpleNamespace(key=b"key", raw_key=b"key", headers=[("tenant", b"acme"), ("trace", b"1")], offset=7)


def outputs_of(function: Any, **options: Any) -> Outputs:
    return Outputs(Route("orders", function, {}, KindOptions(output=["out", "other"], **options)), None)


def test_a_result_may_name_a_topic_of_its_own() -> None:
    outgoing, record = awoke.Outgoing("other", b"1", "own"), awoke.Record(b"2")
    outputs = outputs_of(lambda message: None)
    assert outputs.answer(MESSAGE, outgoing) == outgoing
    assert outputs.answer(MESSAGE, [outgoing, record]) == [outgoing, record]
    assert outputs.answer(MESSAGE, (record, outgoing)) == [record, outgoing]
    with pytest.raises(TypeError, match=r"awoke\.Record only, not bytes"):
        outputs.answer(MESSAGE, [outgoing, b"2"])


def test_all_that_a_generator_yields_is_sent_values_under_the_key_of_the_message() -> None:
    outgoing, record = awoke.Outgoing("other", b"1", "own"), awoke.Record(b"2")
    outputs = outputs_of(lambda message: None)
    yielded = Yielded([b"0", outgoing, record, [b"3"]])
    assert outputs.answer(MESSAGE, yielded) == [
        awoke.Record(b"0", b"key"),
        outgoing,
        record,
        awoke.Record([b"3"], b"key"),
    ]
    assert outputs.answer(MESSAGE, Yielded()) == []
    assert Yielded not in outputs.plain


def test_headers_are_carried_on_to_a_topic_of_its_own_and_with_what_is_yielded() -> None:
    outputs = outputs_of(lambda message: None, forward_headers=["tenant"])
    found = outputs.answer(MESSAGE, awoke.Outgoing("other", b"1", None, {"own": b"2"}))
    assert found == awoke.Outgoing("other", b"1", None, [("tenant", b"acme"), ("own", b"2")])
    (yielded,) = cast("list[awoke.Record]", outputs.answer(MESSAGE, Yielded([b"0"])))
    assert yielded == awoke.Record(b"0", b"key", [("tenant", b"acme")])


def handlers_of(*functions: Any) -> awoke.Handlers:
    handlers = awoke.Handlers()
    for each in functions:
        handlers.when(lambda message: True)(each)
    return handlers


def test_of_several_handlers_some_may_return_several_records_and_others_values() -> None:
    outputs = outputs_of(handlers_of(to_list, lambda message: b"value"))
    record = awoke.Record(b"1")
    assert outputs.answer(MESSAGE, []) == []
    assert outputs.answer(MESSAGE, [record]) == [record]
    assert outputs.answer(MESSAGE, b"value") == awoke.Record(b"value", b"key")
    assert outputs.answer(MESSAGE, [b"value"]) == awoke.Record([b"value"], b"key")
    assert outputs.plain == set()
    assert outputs_of(handlers_of(lambda message: None)).answer(MESSAGE, []) == awoke.Record([], b"key")


class Sent:
    """A transaction entry that notes what is added."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, topic: str, record: awoke.Record) -> None:
        self.records.append((topic, record))

    def produce_all(self, records: Iterable[Any]) -> None:
        self.records.append(list(records))


def test_the_records_of_one_message_enter_a_transaction_each_with_its_topic() -> None:
    entry, record, outgoing = Sent(), awoke.Record(b"1", "k"), awoke.Outgoing("other", b"2", "k")
    for answer in (record, outgoing, [record, outgoing]):
        add_answer(cast(Any, entry), "out", cast(Any, answer))
    addressed = [("out", record), ("other", awoke.Record(b"2", "k"))]
    assert entry.records == [*addressed, addressed]
