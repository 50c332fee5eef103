"""A replay runs on a thread of its own, tells how far it is, and is cancelled between two letters."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import awoke
from awoke.console.letters import runs as module
from awoke.console.letters.runs import ReplayRuns, Run, answer_of
from awoke.console.letters.views import LetterRefused, ReplayResult
from awoke.operate.dead_letters.replays import ReplayCancelled

WITHIN_S = 60.0
TOTAL = 3


class FakeReplay:
    """Sends a letter whenever the test allows it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.steps: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.exits, self._error = 0, error

    def __enter__(self) -> FakeReplay:
        return self

    def __exit__(self, *_: object) -> None:
        self.exits += 1

    def run(self, digest: str, tell: Callable[[int, int], None] | None = None) -> ReplayResult:
        assert tell is not None
        tell(0, TOTAL)
        sent = 0
        while sent < TOTAL and self.steps.get(timeout=WITHIN_S) == "send":
            sent += 1
            tell(sent, TOTAL)
        if self._error is not None:
            raise self._error
        return ReplayResult(topic="dead", sent=sent, refused=[], left=TOTAL - sent, is_cancelled=sent < TOTAL)

    def cancel(self) -> None:
        self.steps.put("stop")


class Told:
    """Waits for changes."""

    def __init__(self, runs: ReplayRuns) -> None:
        self._changed = threading.Semaphore(0)
        runs.subscribe(self._changed.release)

    def wait(self, is_there: Callable[[], bool]) -> None:
        while not is_there():
            assert self._changed.acquire(timeout=WITHIN_S)


def is_sent(run: Run, sent: int) -> bool:
    return run.view.sent == sent


def record(act: Callable[[], str]) -> str:
    return act()


@pytest.fixture
def runs() -> Iterator[ReplayRuns]:
    found = ReplayRuns()
    yield found
    found.close()


def begin(runs: ReplayRuns, replay: Any = None, topic: str = "dead", record: Any = record) -> Run:
    return runs.start(topic, "ada", replay or FakeReplay(), "digest", record)


def test_a_replay_tells_of_each_letter_and_of_its_end(runs: ReplayRuns) -> None:
    replay, told = FakeReplay(), Told(runs)
    run = begin(runs, replay)
    told.wait(lambda: run.view.state == "sending")
    assert (run.view.sent, run.view.total, run.view.who, run.view.is_over) == (0, TOTAL, "ada", False)
    for sent in range(1, TOTAL + 1):
        assert not run.ended.done()
        replay.steps.put("send")
        told.wait(partial(is_sent, run, sent))
    assert run.wait(WITHIN_S)
    told.wait(lambda: run.view.is_over)
    assert (run.view.state, run.view.text) == ("done", "3 letters of dead were sent; they are still in it")
    assert replay.exits == 1
    assert runs.of("dead") == [run.view]


def test_a_cancelled_replay_says_how_many_letters_were_sent(runs: ReplayRuns) -> None:
    replay, told, made = FakeReplay(), Told(runs), list[str]()

    def noted(act: Callable[[], str]) -> str:
        try:
            return act()
        except ReplayCancelled as error:
            made.append(f"{type(error).__name__}: {error}")
            raise

    run = begin(runs, replay, record=noted)
    replay.steps.put("send")
    told.wait(lambda: run.view.sent == 1)
    assert run.cancel()
    assert run.wait(WITHIN_S)
    text = "the replay was cancelled: 1 of 3 letters of dead were sent, 2 are left"
    assert (run.view.state, run.view.text, run.view.sent) == ("cancelled", text, 1)
    assert made == [f"ReplayCancelled: {text}"], "the audit has it"
    assert not run.cancel(), "it has ended"


def test_a_replay_that_ends_while_it_is_cancelled_is_stopping_until_then(runs: ReplayRuns) -> None:
    replay, told = FakeReplay(), Told(runs)
    run = begin(runs, replay)
    told.wait(lambda: run.view.state == "sending")
    for _ in range(TOTAL):
        replay.steps.put("send")
    run.cancel()
    assert run.wait(WITHIN_S)
    assert (run.view.state, run.view.sent) == ("done", TOTAL)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (awoke.AwokeError("no partitions"), "nothing was sent, or not all: no partitions"),
        (ValueError("secret"), "it has failed: see the log of the console"),
    ],
)
def test_a_replay_that_fails_says_so(runs: ReplayRuns, error: Exception, text: str) -> None:
    replay = FakeReplay(error)
    run = begin(runs, replay)
    replay.cancel()
    assert run.wait(WITHIN_S)
    assert (run.view.state, run.view.text) == ("failed", text)


def test_a_topic_has_one_replay_at_a_time_and_a_console_four(runs: ReplayRuns) -> None:
    first = FakeReplay()
    begin(runs, first)
    with pytest.raises(awoke.AwokeError, match="a replay of dead runs already"):
        begin(runs)
    for number in range(module.RUNS_MAX - 1):
        begin(runs, topic=f"dead{number}")
    with pytest.raises(awoke.AwokeError, match="4 replays run already"):
        begin(runs, topic="another")
    first.cancel()
    assert runs.of("dead")
    assert runs.find("dead", runs.of("dead")[0].id) is not None
    assert runs.find("dead0", runs.of("dead")[0].id) is None, "it is of another topic"


def test_ended_replays_are_forgotten_but_for_the_last(runs: ReplayRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_MAX", 2)
    names = []
    for _ in range(4):
        replay = FakeReplay()
        run = begin(runs, replay)
        replay.cancel()
        assert run.wait(WITHIN_S)
        names.append(run.view.id)
    assert [each.id for each in runs.of("dead")] == names[:0:-1]


def test_the_end_of_the_console_cancels_each_replay() -> None:
    runs = ReplayRuns()
    run = begin(runs)
    runs.close()
    assert run.view.state == "cancelled"
    with pytest.raises(awoke.ClosedError):
        begin(runs)


def test_a_refused_letter_is_named() -> None:
    refused = [LetterRefused(partition=0, offset=5, reason="too large")]
    with pytest.raises(awoke.AwokeError, match="1 letters of dead were sent, then 0:5 was refused: too large; 2 are"):
        answer_of(ReplayResult(topic="dead", sent=1, refused=refused, left=2))
