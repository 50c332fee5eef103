"""Signatures of user code whose annotations name what does not exist, or not yet."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import awoke
from awoke.declare.signatures import signature_of

LAZY = """
def handle(message: Message[Later]) -> Nowhere: ...
def start() -> Nowhere: ...
def quote(order: Later, stop: Nowhere = None) -> Nowhere: ...
"""
"""Read without `from __future__ import annotations`: Python 3.14 keeps the annotations as code."""

lazily = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python evaluates annotations at once before 3.14")


class Order:
    def __init__(self, amount: Amount) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def defined() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(LAZY, "lazy.py", "exec", dont_inherit=True), names)
    return names


def test_a_name_that_does_not_exist_is_a_text() -> None:
    assert signature_of(Order).parameters["amount"].annotation == "Amount"


def test_a_wrapped_function_is_followed_only_if_wanted() -> None:
    def inner(message: int) -> None: ...
    def outer(*more: int) -> None: ...

    outer.__wrapped__ = inner  # type: ignore[attr-defined]
    assert list(signature_of(outer).parameters) == ["message"]
    assert list(signature_of(outer, follows_wrapped=False).parameters) == ["more"]


@lazily
def test_a_lazy_name_that_does_not_exist_is_a_text() -> None:
    signature = signature_of(defined()["quote"])
    assert (signature.parameters["order"].annotation, signature.return_annotation) == ("Later", "Nowhere")


@lazily
def test_a_handler_whose_type_does_not_exist_is_refused() -> None:
    with pytest.raises(awoke.ConfigError, match="Later"):
        awoke.App("app").on("orders")(defined()["handle"])


@lazily
def test_other_functions_need_no_names_of_their_annotations() -> None:
    app, functions = awoke.App("app"), defined()
    app.on_startup(functions["start"])
    app.rpc.method(functions["quote"])
    app.background(functions["quote"])
