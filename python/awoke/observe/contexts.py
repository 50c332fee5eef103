"""The contexts of jobs: what user code sets in context variables for one message, no other message sees.

Each job, hook and call begins with a copy of the context that stood when the app started, with what its start-up
functions have set. Each message of a function's job begins with a copy of the job's.

A copy is shallow. Two libraries keep objects in context variables that they change in place: Sentry its scopes, which
are forked here as in Sentry's own integrations, and `decimal` its context, which no job inherits, as no thread does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial

NOT_INHERITED = frozenset({"decimal_context"})
SENTRY = "sentry_sdk"
OWN_PREFIX = "awoke_"
"""The names of awoke's own variables: an app that is started by a job of another one is not part of that job."""


class JobContexts:
    """The contexts of one app. It is made by who starts the app, in the context that each job inherits."""

    def __init__(self) -> None:
        self.base = Context()
        """The context of start-up functions, which each job inherits as they leave it."""
        for variable, value in copy_context().items():
            if variable.name not in NOT_INHERITED and not variable.name.startswith(OWN_PREFIX):
                self.base.run(variable.set, value)

    def new(self) -> Context:
        """Returns the context of a job, a hook or a call. Does not block. Any thread."""
        context = self.base.copy()
        if has_scopes():
            context.run(fork_scopes)
        return context


def message_contexts(job: Context) -> Callable[[], Context]:
    """Returns what makes the contexts of the messages of a job."""
    return partial(_forked, job) if has_scopes() else job.copy


def _forked(job: Context) -> Context:
    context = job.copy()
    context.run(fork_scopes)
    return context


def has_scopes() -> bool:
    """Tells whether the process uses Sentry (2.0 or later), whose scopes are to be forked for each message."""
    sentry = sys.modules.get(SENTRY)
    if sentry is None or not hasattr(sentry, "get_isolation_scope"):
        return False
    return bool(sentry.get_client().is_active())


def fork_scopes() -> None:
    """Gives the running context Sentry scopes of its own, with the tags of those that it has inherited."""
    scope = sys.modules[SENTRY].Scope
    scope.set_isolation_scope(scope.get_isolation_scope().fork())
    scope.set_current_scope(scope.get_current_scope().fork())
