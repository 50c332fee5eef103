from .apps import running
from .clock import VirtualClock
from .embedded import EmbeddedCluster
from .probe import Probe
from .records import Call, Commit, DeadLetter, Failure, Retry, SentMessage
from .registry import EmbeddedRegistry
from .runs import Runs
from .service import ServiceCall, TestService

__all__ = [
    "Call",
    "Commit",
    "DeadLetter",
    "EmbeddedCluster",
    "EmbeddedRegistry",
    "Failure",
    "Probe",
    "Retry",
    "Runs",
    "SentMessage",
    "ServiceCall",
    "TestService",
    "VirtualClock",
    "running",
]
