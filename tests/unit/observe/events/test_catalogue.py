"""The catalogue of awoke's events, the page made from it, and the engine's events."""

from __future__ import annotations

import ast
import logging
import re

import pytest

from awoke import ConfigError
from awoke.observe import events
from awoke.observe.events import CommitFailed, JobFailed, LaneFailed, NamedEvent, RpcFailed
from awoke.observe.events.catalogue import CATALOGUE, SECTIONS, as_markdown, counters, from_engine, user_event
from tests.support.events import example_of
from tests.support.python_syntax import PACKAGE, REPOSITORY

CRATES = REPOSITORY / "crates"
BRIDGE = (CRATES / "bridge" / "src" / "events.rs").read_text()
ENGINE = (CRATES / "kafka" / "src" / "events.rs").read_text()
SET_BY = {"set_at": {"topic", "partition"}, "set_code": {"code", "code_name"}, "set_partitions": {"partitions"}}


def of_engine() -> dict[str, set[str]]:
    """The events that the bridge converts, with their fields."""
    names = dict(re.findall(r'Self::(\w+)[^=]*=> "([a-z_.]+)"', ENGINE))
    body = BRIDGE.partition("match event.what {")[2].partition("Ok((event.client")[0]
    found: dict[str, set[str]] = {}
    for arm in re.split(r"\n        (?=What::)", body)[1:]:
        pattern, _, code = arm.partition("=>")
        fields = {"client"}
        for listed in re.findall(r"set!\(fields, ([\w, ]+)\)", code):
            fields |= set(listed.split(", "))
        for function, more in SET_BY.items():
            fields |= more if f"{function}(" in code else set()
        for variant in re.findall(r"What::(\w+)", pattern):
            found[names.pop(variant)] = fields
    assert not names, "events that are not converted"
    return found


def test_every_event_of_the_engine_has_a_class_with_its_fields() -> None:
    fields = of_engine()
    assert "commit.failed" in fields
    # The runtime adds the group.
    assert {name: set(CATALOGUE[name].__struct_fields__) - {"group"} for name in fields} == fields


def test_the_page_has_the_catalogue() -> None:
    assert as_markdown() in (REPOSITORY / "docs" / "events.md").read_text()


def test_every_event_is_exported() -> None:
    assert {event.__name__ for event in CATALOGUE.values()} <= set(events.__all__)
    assert all(hasattr(events, name) for name in events.__all__)


def test_every_event_says_when_it_happens() -> None:
    assert [name for name, event in CATALOGUE.items() if not (event.__doc__ or "").strip()] == []


def test_every_failure_of_user_code_is_a_warning_and_is_counted() -> None:
    failures = [event for event in CATALOGUE.values() if event.is_of_user_code]
    assert {JobFailed, LaneFailed, RpcFailed} <= set(failures)
    assert all("error" in event.__struct_fields__ for event in failures)
    assert min(event.usual_level for event in failures) >= logging.WARNING
    assert [event.name for event in failures if event.counter is None] == []


def test_every_counter_finds_its_labels_in_its_event() -> None:
    for event in CATALOGUE.values():
        labels = example_of(event).label_values
        assert len(labels) == (0 if event.counter is None else len(event.counter.labels)), event.name
    failed = CommitFailed(client="shop", partitions=[], code=-195, code_name="_TRANSPORT", will_retry=True)
    assert failed.label_values == ("_TRANSPORT",)


def test_counters_have_one_name_each() -> None:
    names = [counter.name for counter in counters()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"awoke_[a-z_]+_total", name) for name in names)


def test_the_engines_events_become_classes_without_users_of_addresses() -> None:
    fields = {"code": -195, "code_name": "_TRANSPORT", "text": "sasl://me:secret@host: refused", "is_fatal": False}
    event = from_engine("shop", "client.error", fields)
    assert isinstance(event, events.ClientError)
    assert (event.client, event.code) == ("shop", -195)
    assert "me:secret" not in event.text


def test_awoke_itself_emits_classes_only() -> None:
    calls = [
        (file, call)
        for file in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "emit"
    ]
    assert len(calls) > 20
    assert [(file.name, call.lineno) for file, call in calls if call.keywords or len(call.args) != 1] == []


def test_the_sections_have_each_event_once() -> None:
    names = [name for section in SECTIONS.values() for name in section.__all__]
    assert sorted(names) == sorted(event.__name__ for event in CATALOGUE.values())


def test_an_event_of_user_code_keeps_its_fields_and_takes_no_name_of_awokes() -> None:
    assert user_event("shop.opened", {"customer": 7}) == NamedEvent(name="shop.opened", values={"customer": 7})
    with pytest.raises(ConfigError, match="JobFailed; choose another name") as refused:
        user_event("job.failed", {})
    assert refused.value.property == "job.failed"
