"""The marks of parameters, and what they refuse."""

from __future__ import annotations

import typing
from typing import Any

import pytest

import awoke
from awoke.declare.injection import Depends, Header, Key, Scope, Service, Value
from awoke.declare.injection.markers import SCOPES, IsKey, IsValue


def session() -> None: ...


def test_a_function_lives_as_long_as_a_job_unless_it_says_otherwise() -> None:
    assert (Depends(session).function, Depends(session).scope) == (session, "job")
    assert Depends(session, scope="process").scope == "process"


def test_what_can_not_be_called_is_no_dependency() -> None:
    with pytest.raises(
        awoke.ConfigError, match=r"Depends takes a function, as in Depends\(session\), not 7"
    ) as refused:
        Depends(7)  # type: ignore[arg-type]
    assert refused.value.property == "depends"


def test_a_scope_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    wrong: Any = "request"
    with pytest.raises(awoke.ConfigError, match="scope is one of app, process, assignment, job, not 'request'"):
        Depends(session, wrong)


def test_the_scopes_of_the_type_are_those_that_are_known() -> None:
    assert typing.get_args(Scope) == SCOPES


def test_a_dependency_shows_its_function_and_its_scope() -> None:
    assert repr(Depends(session, scope="assignment")) == "Depends(session, scope='assignment')"


def test_a_type_of_the_value_and_of_the_key_is_marked() -> None:
    assert typing.get_args(Value[int]) == (int, IsValue())
    assert typing.get_args(Key[str]) == (str, IsKey())


def test_marks_of_one_name_are_the_same_and_those_of_another_kind_are_not() -> None:
    """`Annotated` keeps what it has made, by what is equal."""
    same: list[tuple[Any, Any]] = [(Header("tenant"), Header("tenant")), (IsKey(), IsKey())]
    different: list[tuple[Any, Any]] = [
        (Header("tenant"), Header("region")),
        (Header("tenant"), Service("tenant")),
        (IsKey(), IsValue()),
    ]
    assert [one == other for one, other in same] == [True] * len(same)
    assert [one == other for one, other in different] == [False] * len(different)
    assert [hash(one) == hash(other) for one, other in same] == [True] * len(same)
