"""The base of consumer classes: one instance for each topic-partition, for as long as it is assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from awoke._native import Batch, GroupMember, Job, Message
from awoke.errors import ClosedError

if TYPE_CHECKING:
    from awoke.app import App


class Consumer:
    """Processes the messages of one topic-partition.

    Derive from it and decorate with `@app.consumer(topic)`. Its methods may be `async def`. They run one at a time and in
    order, on a worker of awoke's; there is no message of the partition between `revoked` and the next `assigned`, which
    another instance hears.
    """

    app: App
    """The app that runs it."""
    topic: str
    partition: int
    _member: GroupMember | None = None
    _job: Job | None = None

    def assigned(self) -> Any:
        """Called before the first batch."""

    def consume(self, batch: Batch[Any]) -> Any:
        """Called for each batch; what it raises makes the batch be tried again, after what was marked."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a method consume(self, batch)")

    def revoked(self) -> Any:
        """Called after the last batch, before the partition is given back; offsets are committed before and after."""

    def lost(self) -> Any:
        """Called when the partition was taken without asking: somebody else may have it already."""

    def shutdown(self) -> Any:
        """Called after the last batch when the process stops."""

    def mark(self, message: Message[Any]) -> None:
        """Say that this message, and all before it, are done: should the batch fail, only the rest is tried again.

        Does not block.

        Raises:
            ClosedError: outside of `consume`.
            FencedError: the partition was taken away meanwhile.
        """
        if self._job is None:
            raise ClosedError("mark() belongs into consume()")
        self._job.done(message.offset)

    def commit(self, timeout_s: float | None = None) -> None:
        """Bring what is stored to the broker and wait for its answer. Blocks up to `timeout_s` (None: 60 s).

        Raises:
            KafkaError: the broker refused; OperationTimeout: no answer in time; ClosedError: not running.
        """
        if self._member is None:
            raise ClosedError("commit() needs a consumer that is assigned")
        self._member.commit().wait(timeout_s)
