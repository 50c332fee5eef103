"""awoke: a Kafka processing framework for Python in which nothing sleeps.

`__init__.pyi` lists the public names. Each is loaded on its first use: a command that makes no client, and the
supervisor of a swarm, do not load librdkafka.
"""

import os

from awoke.preconditions import installation as _installation

_installation.check(os.path.dirname(__file__))

import importlib  # noqa: E402  First it must be known that the package can work here.
import logging  # noqa: E402
from typing import Any  # noqa: E402

import lazy_loader  # noqa: E402

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
__all__ += ["__version__"]

# A library is silent until its user sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_ROOMS = {
    "dead_letter": "payloads",
    "events": "observe",
    "formats": "payloads",
    "logs": "observe",
    "registry": "payloads",
}
"""Public modules that stand in a room: `awoke.events` is `awoke.observe.events`."""


def __getattr__(name: str) -> Any:
    """Loads a public name. Raises `ImportError` with advice if the system refuses the native module."""
    try:
        if name in _ROOMS:
            importlib.import_module(f"awoke.{_ROOMS[name]}.{name}")
        return _load(name)
    except ImportError as error:
        _installation.explain(error)
        raise
