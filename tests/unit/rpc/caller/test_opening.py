"""A caller is opened: its topics are checked or made, then it connects, with the user's properties before awoke's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from awoke.errors import UnknownTopic
from awoke.rpc.caller import opening as module
from awoke.rpc.caller.opening import Opening, ServiceAddress
from awoke.settings import Settings

ADDRESS = ServiceAddress("shop.rpc.calls", "shop.rpc.replies", "shop", "web", 1, 2, 3, b"hunter2")
TOPICS = ("shop.rpc.calls", "shop.rpc.replies")


class Fakes:
    """The parts that opening uses, in the order of their use."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def ensure(self, settings: Settings, topics: Any, partitions: int) -> None:
        self.steps.append(("ensure", tuple(topics), partitions))

    def check(self, settings: Settings, service: str, topics: Any) -> None:
        self.steps.append(("check", service, tuple(topics)))

    def connect(self, producing: Any, consuming: Any, address: Any, timeout_s: float, box: Any) -> Any:
        self.steps.append(("connect", dict(producing), dict(consuming), address, timeout_s))
        if self.error is not None:
            raise self.error
        return "native"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    fakes = Fakes()
    monkeypatch.setattr(module, "topics", SimpleNamespace(ensure=fakes.ensure, check=fakes.check))
    monkeypatch.setattr(module, "_native", SimpleNamespace(Caller=fakes.connect))
    return fakes


def opening(*, creates_topics: bool = False, **settings: Any) -> Opening:
    return Opening("shop", Settings(startup_timeout_s=7.0, **settings), ADDRESS, None, creates_topics, 5)


def producing(fakes: Fakes, **kafka: str) -> dict[str, str]:
    """Returns librdkafka's properties for the requests."""
    source = opening(kafka=kafka).open()[1]
    source.close()
    found: dict[str, str] = fakes.steps[-1][1]
    return found


@pytest.mark.parametrize(
    ("creates_topics", "step"), [(False, ("check", "shop", TOPICS)), (True, ("ensure", TOPICS, 5))]
)
def test_topics_are_checked_or_made_before_the_caller_connects(
    fakes: Fakes, creates_topics: bool, step: tuple[Any, ...]
) -> None:
    native, source = opening(creates_topics=creates_topics).open()
    source.close()
    first, (kind, _, _, address, timeout_s) = fakes.steps
    assert first == step
    assert (kind, address, timeout_s) == ("connect", ADDRESS, 7.0)
    assert cast(Any, native) == "native"


def test_a_caller_that_can_not_connect_leaves_no_thread_behind(fakes: Fakes) -> None:
    fakes.error = UnknownTopic("gone")
    with pytest.raises(UnknownTopic, match="gone"):
        opening().open()


def test_requests_linger_for_a_millisecond_at_most_and_are_dropped_after_30_s(fakes: Fakes) -> None:
    found = producing(fakes)
    assert (found["linger.ms"], found["message.timeout.ms"]) == ("1", "30000")
    assert "linger.ms" not in fakes.steps[-1][2], "these are for requests only"


def test_the_properties_of_the_user_come_first(fakes: Fakes) -> None:
    assert producing(fakes, **{"linger.ms": "5"})["linger.ms"] == "5"


@pytest.mark.parametrize("name", ["message.timeout.ms", "delivery.timeout.ms"])
def test_both_names_of_the_time_out_of_a_request_decide(fakes: Fakes, name: str) -> None:
    found = producing(fakes, **{name: "1000"})
    assert {each: found[each] for each in found if each.endswith("ry.timeout.ms") or each == name} == {name: "1000"}
    assert found.get("message.timeout.ms", "1000") == "1000"


def test_the_secret_of_a_service_is_not_shown() -> None:
    assert "hunter2" not in repr(ADDRESS)
    assert "shop.rpc.calls" in repr(ADDRESS)
