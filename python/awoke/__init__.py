"""awoke: a Kafka processing framework for Python in which nothing sleeps.

`__init__.pyi` lists the public names. Each is loaded on its first use: a command that makes no client, and the
supervisor of a swarm, do not load librdkafka.
"""

import logging

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
__all__ += ["__version__"]

# A library is silent until its user sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())
