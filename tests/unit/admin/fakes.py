"""Stands for the connection of an admin client: answers from memory, and notes what it is asked."""

from __future__ import annotations

from collections import deque
from typing import Any

from awoke.admin.connection import Connection, Metadata

METADATA: Metadata = (
    [(1, "a:9092"), (2, "b:9092")],
    [("orders", 0, [(0, 1, [1, 2], [1, 2]), (1, 2, [2, 1], [2])])],
)


class FakeConnection(Connection):
    """Has for each kind of request its answers, in their order; the last one is given again. An error is raised."""

    def __init__(self, metadata: Metadata = METADATA, **answers: list[Any]) -> None:
        self._metadata = metadata
        self._answers = {kind: deque(each) for kind, each in answers.items()}
        self.asked: list[tuple[str, Any]] = []
        self.waits = 0
        self.waits_max = 1_000
        """The number of waits after which the client is closed."""

    async def metadata(self, topic: str | None, timeout_s: float) -> Metadata:
        brokers, topics = self._metadata
        found = [each for each in topics if topic in (None, each[0])]
        return brokers, found or [(str(topic), 3, [])]

    async def request(self, kind: str, arguments: object, timeout_s: float, what: str) -> Any:
        self.asked.append((kind, arguments))
        answers = self._answers[kind]
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def again(self) -> bool:
        self.waits += 1
        return self.waits < self.waits_max
