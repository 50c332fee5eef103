"""The options of a route's output, and the functions that return several records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Optional, cast

import pytest

import awoke
from awoke.routing import KindOptions, Route
from awoke.runtime.outputs import PLAIN_MAX, Outputs, records_in, returns_records


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


def to_record(_: Any) -> awoke.Record:
    return awoke.Record(b"")


def to_values(_: Any) -> list[bytes]:
    return []


def to_unknown(_: Any) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821, UP037
    return []


@pytest.mark.parametrize("function", [to_list, to_list_or_none, to_optional, to_tuple, to_iterator, to_list_later])
def test_an_annotation_says_that_there_are_several_records(function: Callable[..., Any]) -> None:
    assert returns_records(function)


@pytest.mark.parametrize("function", [to_record, to_values, to_unknown, lambda _: None, print])
def test_other_functions_return_several_records_in_a_list(function: Callable[..., Any]) -> None:
    assert not returns_records(function)


def test_several_results_are_records_only() -> None:
    record = awoke.Record(b"1")
    assert records_in(iter([record, record])) == [record, record]
    assert records_in(record) == [record]
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
