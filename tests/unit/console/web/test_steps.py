"""A step keeps the moment at which it began, until it has ended and waits again."""

from __future__ import annotations

from awoke.console.web.steps import Steps, StepState


def test_a_step_that_waits_keeps_its_begin_whatever_it_says() -> None:
    steps = Steps()
    assert steps.note("Brokers", StepState.WAITING, "asked", 10)
    assert not steps.note("Brokers", StepState.WAITING, "asked", 20)
    assert steps.note("Brokers", StepState.WAITING, "they are away", 30)
    (step,) = steps.all()
    assert (step.text, step.since_ms, step.ended_ms) == ("they are away", 10, None)
    steps.note("Brokers", StepState.DONE, "they have answered", 40)
    (step,) = steps.all()
    assert (step.since_ms, step.ended_ms) == (10, 40)


def test_a_step_that_waits_again_begins_anew_and_is_the_last() -> None:
    steps = Steps()
    steps.note("Brokers", StepState.DONE, "they have answered", 10)
    steps.note("Reports", StepState.WAITING, "being read", 20)
    steps.note("Brokers", StepState.WAITING, "they are away", 30)
    assert [(each.name, each.since_ms, each.ended_ms) for each in steps.all()] == [
        ("Reports", 20, None),
        ("Brokers", 30, None),
    ]
