"""Which topic goes to which code, and how."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec

from awoke.consumer import Consumer
from awoke.errors import ConfigError
from awoke.serde import Decoder, decoder_for


class Batching(msgspec.Struct, frozen=True):
    """How much one job may hold. A batch is what is there when a worker comes, up to these limits."""

    max_messages: int = 1_000
    max_bytes: int = 16 * 1024 * 1024
    """A batch ends with the first few hundred messages that reach this sum of keys and values."""

    def __post_init__(self) -> None:
        if self.max_messages < 1 or self.max_bytes < 1:
            raise ConfigError("Batching: max_messages and max_bytes must be at least 1", "batch")


class Retry(msgspec.Struct, frozen=True):
    """What happens to a message whose handler raised: it stays in its place and is tried again later."""

    attempts: int | None = None
    """How many times a message is tried; None for ever."""
    backoff_s: tuple[float, float] = (0.1, 30.0)
    """Delay after the first failure, doubled after each further one, and its limit."""
    jitter: float = 0.2
    """Each delay is shortened by up to this share, so that partitions that failed together come apart."""
    on_exhausted: Literal["stop", "skip"] = "stop"
    """After the last try: `stop` ends the app (the message is there at the next start), `skip` goes on with an event."""

    def __post_init__(self) -> None:
        first_s, limit_s = self.backoff_s
        if (self.attempts is not None and self.attempts < 1) or first_s < 0 or limit_s < first_s:
            raise ConfigError("Retry: attempts must be at least 1 and 0 <= first <= limit of backoff_s", "retry")

    def delay_s(self, attempt: int) -> float:
        """The delay after this attempt (from 1) has failed."""
        first_s, limit_s = self.backoff_s
        delay_s: float = min(limit_s, first_s * 2.0 ** min(attempt - 1, 60))
        return delay_s * (1.0 - self.jitter * random.random())

    def is_exhausted(self, attempt: int) -> bool:
        """Whether this attempt (from 1) was the last."""
        return self.attempts is not None and attempt >= self.attempts


class Route:
    """One topic and the code that processes it."""

    def __init__(
        self,
        topic: str,
        target: Callable[..., Any] | type[Consumer],
        *,
        value: Any = None,
        batch: Batching | None = None,
        retry: Retry | None = None,
        output: str | None = None,
    ) -> None:
        if not isinstance(topic, str) or not topic:
            raise ConfigError(f"a route needs the name of a topic, not {topic!r}", "topic")
        self.topic = topic
        is_class = isinstance(target, type) and issubclass(target, Consumer)
        self.consumer: type[Consumer] | None = cast("type[Consumer]", target) if is_class else None
        """The class, where the route has one."""
        self.function: Callable[..., Any] = target if self.consumer is None else self.consumer.consume
        """What is called, once for each message; of a class, its `consume`."""
        self.name = str(getattr(target, "__qualname__", target))
        """The code's name, for logs."""
        self.batch = batch or Batching()
        self.retry = retry or Retry()
        self.output = output
        self.decoder = self._decoder(value)
        self.is_async = inspect.iscoroutinefunction(self.function)

    def _decoder(self, value: Any) -> Decoder | None:
        try:
            return decoder_for(value)
        except (TypeError, msgspec.MsgspecError) as error:
            text = f"route {self.topic!r}: {value!r} is no type that JSON can be read as: {error}"
            raise ConfigError(text, "value") from None
