from .apps import running
from .embedded import EmbeddedCluster
from .probe import Probe
from .registry import EmbeddedRegistry

__all__ = ["EmbeddedCluster", "EmbeddedRegistry", "Probe", "running"]
