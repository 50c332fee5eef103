"""awoke: a Kafka processing framework for Python in which nothing sleeps.

What it offers stands in `__init__.pyi`, and is loaded when it is first asked for: a command that makes no client, and the
supervisor of a swarm, have no use for librdkafka.
"""

import logging

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
__all__ += ["__version__"]

# A library is silent until its user sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())
