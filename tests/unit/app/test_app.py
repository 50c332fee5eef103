"""The app: what it registers, its settings, its producer and callers, and what it is before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import awoke
from awoke.declare.lifecycle import BackgroundFunction

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("name", ["", None, 3])
def test_an_app_needs_a_name(name: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="an app needs a name") as refused:
        awoke.App(name)
    assert refused.value.property == "name"


def test_a_topic_has_one_route_and_the_second_names_the_first() -> None:
    app = awoke.App("shop")

    @app.on("orders")
    def charge(message: awoke.Message[bytes]) -> None: ...

    @app.consumer("payments")
    class Payments(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None: ...

    assert list(app.routes) == ["orders", "payments"]
    for register in (app.on("orders"), app.on("payments")):
        with pytest.raises(awoke.ConfigError, match=r"has a route already: .*(charge|Payments)") as refused:
            register(lambda message: None)
        assert refused.value.property == "topic"
    assert app.routes["orders"].name.endswith("charge")


def test_a_consumer_is_a_class_of_awokes() -> None:
    wrong: Any = dict
    with pytest.raises(awoke.ConfigError, match=r"must be a class that derives from awoke\.Consumer"):
        awoke.App("shop").consumer("orders")(wrong)


def test_a_decorator_returns_what_it_decorates() -> None:
    app = awoke.App("shop")

    def hook() -> None: ...
    def handle(message: awoke.Message[bytes]) -> None: ...
    def sign(message: awoke.Outgoing) -> awoke.Outgoing:
        return message

    hooks = (app.on_startup, app.on_shutdown, app.before_fork, app.after_fork)
    assert [decorate(hook) for decorate in hooks] == [hook] * 4
    assert app.on("orders")(handle) is handle
    assert app.outgoing(sign) is sign
    assert (app.before_forks, app.after_forks, app.middleware) == ([hook], [hook], [sign])
    assert [each.function for each in app.lifecycle.startups] == [hook]


def test_an_app_reads_its_settings_once_and_again_where_they_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = awoke.App("shop")
    monkeypatch.setenv("AWOKE_WORKERS", "3")
    assert app.settings.workers == 3
    assert app.settings is app.settings
    monkeypatch.setenv("AWOKE_WORKERS", "4")
    assert app.settings.workers == 3
    assert awoke.AppRunner(app).settings.workers == 4, "each start reads them"
    assert app.settings.workers == 4
    app.use(workers=5)
    assert app.settings.workers == 5


def test_later_settings_win_and_properties_are_merged() -> None:
    app = awoke.App("shop", kafka={"acks": "all", "linger.ms": 5}, workers=2)
    app.use(workers=None, group="billing", kafka={"linger.ms": 7})
    app.use(kafka=None)
    assert (app.settings.workers, app.settings.group) == (2, "billing")
    assert app.settings.kafka == {"acks": "all", "linger.ms": "7"}


def test_a_setting_that_does_not_exist_is_refused_when_the_settings_are_read() -> None:
    app = awoke.App("shop", wrokers=2)
    with pytest.raises(awoke.ConfigError, match="did you mean 'workers'"):
        _ = app.settings


def test_an_app_that_does_not_run_has_nothing() -> None:
    app = awoke.App("shop")
    assert not app.resume("orders", 0)
    assert not app.skip("orders", 0, 7)
    assert not app.is_assigned("orders", 0)
    assert (app.blocking("orders", 0), app.threads(), app.callers(), app.queued()) == ([], [], {}, (0, 0))
    assert app.close_producer() == 0
    app.close_callers(0.0)


class FakeRunner:
    """The runtime of an app that runs."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def steer(self, group: str | None, change: Callable[[Any], bool]) -> bool:
        self.group = group
        return change(self)

    def resume(self, topic: str, partition: int) -> bool:
        self.asked.append(("resume", topic, partition, self.group))
        return True

    def skip(self, topic: str, partition: int, offset: int) -> bool:
        self.asked.append(("skip", topic, partition, offset, self.group))
        return True

    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]:
        return [7, 9] if group is None else [9]

    def is_assigned(self, topic: str, partition: int) -> bool:
        return True

    def extension(self, kind: type[Any]) -> Any:
        return SimpleNamespace(actions="the actions")

    def threads(self) -> list[tuple[str, str, str]]:
        return [("orders[0]", "flush", "shop.py:7")]


def test_an_app_that_runs_asks_its_runtime() -> None:
    app, runner = awoke.App("shop"), FakeRunner()
    app.runs(None, runner)
    assert app.resume("orders", 0)
    assert app.skip("orders", 0, 7)
    assert app.is_assigned("orders", 0)
    assert (app.blocking("orders", 0), app.threads()) == ([7, 9], [("orders[0]", "flush", "shop.py:7")])
    assert runner.asked == [("resume", "orders", 0, None), ("skip", "orders", 0, 7, None)]
    assert app.actions == "the actions"
    app.runs(None, None)
    assert app.actions is None
    assert not app.is_assigned("orders", 0)


def test_an_app_that_runs_asks_for_one_of_its_groups() -> None:
    app, runner = awoke.App("shop"), FakeRunner()
    app.runs(None, runner)
    assert app.resume("orders", 0, group="audit")
    assert app.skip("orders", 0, 7, group="audit")
    assert app.blocking("orders", 0, group="audit") == [9]
    assert runner.asked == [("resume", "orders", 0, "audit"), ("skip", "orders", 0, 7, "audit")]


def test_background_functions_start_with_the_app_and_later_ones_at_once() -> None:
    app, started = awoke.App("shop"), list[BackgroundFunction]()
    app.background(print, 1, on_error="restart", name="printer")
    assert started == []
    app.runs(started.append, FakeRunner())
    early = BackgroundFunction(print, (1,), "restart", "printer")
    assert started == [early]
    app.background(sum, [1])
    late = BackgroundFunction(sum, ([1],), "log", None)
    assert started == [early, late]
    app.runs(None, None)
    app.runs(started.append, FakeRunner())
    assert started == [early, late, early, late], "each start runs all of them"


def test_a_background_function_is_decorated_with_options_or_without_and_stays_itself() -> None:
    app, started = awoke.App("shop"), list[BackgroundFunction]()

    @app.background
    def look() -> None: ...

    @app.background(on_error="restart", name="again")
    async def look_again() -> None: ...

    app.runs(started.append, FakeRunner())
    assert started == [
        BackgroundFunction(look, (), "log", None),
        BackgroundFunction(look_again, (), "restart", "again"),
    ]
    with pytest.raises(awoke.ConfigError, match="yield"):
        app.background(generator)


def generator() -> Iterator[int]:
    yield 1


def test_the_producer_is_made_on_first_use_with_the_apps_settings_and_replaced_after_its_close() -> None:
    seen: list[awoke.Outgoing] = []
    app = awoke.App("shop", bootstrap_servers=NOWHERE)

    @app.outgoing
    def note(message: awoke.Outgoing) -> awoke.Outgoing:
        seen.append(message)
        return message

    first = app.producer
    assert app.producer is first
    first.produce("orders", {"id": 1}, key="k")
    assert (app.queued(), seen[0].value) == ((1, len('{"id":1}') + 1), {"id": 1})
    assert app.close_producer(0.01) == 1
    second = app.producer
    assert second is not first
    assert app.close_producer(0.01) == 0


class FakeCaller:
    """A caller that opens no connection."""

    made: list[tuple[str, dict[str, Any]]] = []

    def __init__(self, service: str, **options: Any) -> None:
        self.made.append((service, options))
        self.closed: list[float] = []

    def close(self, timeout_s: float) -> None:
        self.closed.append(timeout_s)


def test_a_service_has_one_caller_with_the_apps_name_until_callers_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.app.app.Caller", FakeCaller)
    monkeypatch.setattr(FakeCaller, "made", [])
    app = awoke.App("shop")
    first: Any = app.caller("stock", timeout_s=2.0)
    again: Any = app.caller("stock")
    assert again is first
    mine: Any = app.caller("billing", name="me")
    assert app.callers() == {"stock": first, "billing": mine}
    names = [(service, options["name"], options["settings"]) for service, options in FakeCaller.made]
    assert names == [("stock", "shop", app.settings), ("billing", "me", app.settings)]
    assert [options["events"] for _, options in FakeCaller.made] == [app.events] * 2
    app.close_callers(3.0)
    assert (first.closed, mine.closed, app.callers()) == ([3.0], [3.0], {})
    another: Any = app.caller("stock")
    assert another is not first


def test_a_stop_reaches_what_listens() -> None:
    app, heard = awoke.App("shop"), list[str]()
    app.stop_requests.listen(lambda: heard.append("stop"))
    app.stop()
    assert heard == ["stop"]


async def test_run_refuses_to_block_an_event_loop() -> None:
    with pytest.raises(awoke.ConfigError, match=r"use async with app\.serving\(\)") as refused:
        awoke.App("shop").run()
    assert refused.value.property == "run"


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u2028b", "a\0", "a" * 201])
def test_a_name_that_would_end_a_line_of_a_unit_or_a_manifest_is_refused(name: str) -> None:
    with pytest.raises(awoke.ConfigError, match="manifests and units"):
        awoke.App(name)
