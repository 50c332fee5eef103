"""Topics that this process creates are told to all who listen."""

from __future__ import annotations

from awoke.admin import new_topics


def test_listeners_are_called_until_they_end() -> None:
    seen: list[str] = []
    ends = [
        new_topics.listen(lambda topic: seen.append("a" + topic)),
        new_topics.listen(lambda topic: seen.append("b" + topic)),
    ]
    new_topics.tell("1")
    ends[0]()
    ends[0]()
    new_topics.tell("2")
    ends[1]()
    new_topics.tell("3")
    assert seen == ["a1", "b1", "b2"]
