"""The events of awoke: one typed class each, their subscribers, and the way from the engine to them.

Logs, metrics and docs/events.md are made from the classes, see `catalogue`. A new event is written in the
file of its section only: its class, and a line in that file's `__all__`.
"""

from awoke.observe.events import application, calls, clients, group, messages
from awoke.observe.events.application import *  # noqa: F403
from awoke.observe.events.bus import Events
from awoke.observe.events.calls import *  # noqa: F403
from awoke.observe.events.clients import *  # noqa: F403
from awoke.observe.events.event import Event, NamedEvent
from awoke.observe.events.group import *  # noqa: F403
from awoke.observe.events.messages import *  # noqa: F403
from awoke.observe.events.pump import EventSource, Listener

__all__ = [
    "Event",
    "EventSource",
    "Events",
    "Listener",
    "NamedEvent",
]
__all__ += application.__all__ + calls.__all__ + clients.__all__ + group.__all__ + messages.__all__
