"""Refuses to run an app where gevent or eventlet has replaced threads.

It stands alone because it knows two libraries that awoke does not use: where they are, and how they tell.
"""

from __future__ import annotations

import sys

from awoke.errors import ConfigError


def check_threads() -> None:
    """Checks that `threading.Thread` makes threads of the system.

    A handler runs on a thread that waits in the engine, and not in Python. A green thread that waits so stops all
    others, and with them the thread that hears signals: the app would do nothing, and not end.

    Raises:
        ConfigError: A library has replaced them; names it, and says what to do.
    """
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None and gevent.is_module_patched("threading"):
        name, instead = "gevent", "monkey.patch_all(thread=False)"
    elif eventlet is not None and eventlet.is_monkey_patched("thread"):
        name, instead = "eventlet", "monkey_patch(thread=False)"
    else:
        return
    text = f"{name} has replaced threads by green ones in this process, in which no handler can wait for Kafka"
    raise ConfigError(f"{text}; run the app in a process of its own (`awoke run`), or patch with {instead}", name)
