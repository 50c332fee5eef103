"""The events of awoke: one typed class each, their subscribers, and the way from the engine to them.

Logs, metrics and docs/events.md are made from the classes, see `awoke.events.catalogue`. A new event is written in the
file of its section only: its class, and a line in that file's `__all__`.
"""

from awoke.events import application, calls, clients, group, messages
from awoke.events.application import *  # noqa: F403
from awoke.events.bus import Events
from awoke.events.calls import *  # noqa: F403
from awoke.events.clients import *  # noqa: F403
from awoke.events.event import Event, NamedEvent
from awoke.events.group import *  # noqa: F403
from awoke.events.messages import *  # noqa: F403
from awoke.events.pump import EventSource, Listener

__all__ = [
    "Event",
    "EventSource",
    "Events",
    "Listener",
    "NamedEvent",
]
__all__ += application.__all__ + calls.__all__ + clients.__all__ + group.__all__ + messages.__all__
