"""Decides when a call that failed is made again."""

from __future__ import annotations

import threading

import msgspec

from awoke.errors import ConfigError, RpcError
from awoke.rpc.caller.plan import Plan
from awoke.rpc.errors import NobodyThere
from awoke.waiting.backoff import Backoff


class Retries(msgspec.Struct, frozen=True):
    """The policy for calls that failed: each is made again within its deadline and under the same idempotency key.

    A call that the responder refused to begin (`RpcError.is_rejected`) is made again. A call that may have been
    executed is made again only if it is idempotent.
    """

    attempts: int = 3
    """Most attempts at one call; 1 for no retries."""
    backoff_s: tuple[float, float] = (0.05, 1.0)
    """Delay after the first failure, doubled after each further one, and its limit."""
    budget: float = 10.0
    """Retries that all calls of a caller share: each takes 1, and with less than 1 left nothing is retried."""
    budget_refill: float = 0.1
    """Part of a retry that each successful call gives back to the budget."""

    def __post_init__(self) -> None:
        first_s, limit_s = self.backoff_s
        if self.attempts < 1 or first_s < 0 or limit_s < first_s or self.budget < 0 or self.budget_refill < 0:
            raise ConfigError(
                "Retries: attempts at least 1, 0 <= first <= limit of backoff_s, nothing negative", "retries"
            )

    def delay_s(self, attempt: int) -> float:
        """Returns the delay after this attempt, from 1, has failed."""
        return Backoff(*self.backoff_s, jitter=0.5).delay_s(attempt)


class RetryBudget:
    """Decides whether a call of one caller is made again. Any thread."""

    def __init__(self, retries: Retries) -> None:
        self.retries = retries
        self._lock = threading.Lock()
        """Guards `_left`."""
        self._left = retries.budget
        self.is_short = False
        """True if a retry was taken and not given back."""

    def delay_s(self, plan: Plan, error: RpcError) -> float:
        """Takes a retry and returns the delay before the call is made again; raises the error if it is not."""
        may_repeat = error.is_rejected or plan.is_idempotent
        is_worth_it = error.is_retryable and may_repeat and not isinstance(error, NobodyThere)
        if not is_worth_it or plan.attempts >= self.retries.attempts:
            raise error
        delay_s = max(error.retry_after_s or 0.0, self.retries.delay_s(plan.attempts))
        if delay_s >= plan.left_s():
            raise error
        with self._lock:
            if self._left < 1:
                raise error
            self._left -= 1
            self.is_short = True
        return delay_s

    def refill(self) -> None:
        """Gives a part of a retry back: a call has succeeded."""
        with self._lock:
            self._left = min(self.retries.budget, self._left + self.retries.budget_refill)
            self.is_short = self._left < self.retries.budget
