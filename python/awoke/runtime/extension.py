"""Parts that are added to a running app from outside of the runtime: consoles, metrics, watches.

The runner knows them by this interface only. The app says which there are, `awoke.app.extensions`, and the runner
calls them in this order:

1. `start` of each, in the order of the list, before the workers and the start-up functions;
2. `before_joining` of each, when all but the groups has started;
3. `assigned`, for each partition and before its first message, as long as the app runs;
4. `stop` of each, in the reverse order, when the last message is done and committed and the producers are closed.

What `start` or `before_joining` raises ends the start of the app with that error, and all are stopped. What `stop`
raises is reported, and keeps no other from stopping. An extension is made before the app starts: until `start` it
opens no client and starts no thread.
"""

from __future__ import annotations

from collections.abc import Iterable


class Extension:
    """One of them: a class that inherits from this has only what it does, and the rest does nothing."""

    def start(self) -> None:
        """Begins the work, on the thread that starts the app."""

    def before_joining(self) -> None:
        """Prepares what has to be there before the first message. May block for some seconds."""

    def assigned(self, group: str, topic: str, partition: int) -> None:
        """Hears of a partition that a group of the app was given, before its first message, on the worker's thread.

        A pause takes effect before that message, too. Does not block: the partition waits for it.
        """

    def reasons(self) -> Iterable[str]:
        """Returns why the app is unhealthy, a sentence each. Any thread; does not block."""
        return ()

    def stop(self, timeout_s: float) -> None:
        """Ends the work and its threads. Blocks up to `timeout_s`, which is a second at least.

        It comes also where `start` failed or was not called. After a second signal the app does not wait for it.
        """
