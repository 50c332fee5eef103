from .apps import EmbeddedCluster, running
from .calls import acall, call
from .clock import VirtualClock
from .faults import Fault, Faults
from .messages import batch, message
from .probe import Probe
from .records import Call, Commit, DeadLetter, Failure, RecordedRetry, SentMessage
from .registry import EmbeddedRegistry
from .route_results import Failed, Outcome, Output, RouteRun
from .route_runs import arun_route, run_route
from .runs import Runs
from .service import ServiceCall, TestService

__all__ = [
    "Call",
    "Commit",
    "DeadLetter",
    "EmbeddedCluster",
    "EmbeddedRegistry",
    "Failed",
    "Failure",
    "Fault",
    "Faults",
    "Outcome",
    "Output",
    "Probe",
    "RecordedRetry",
    "RouteRun",
    "Runs",
    "SentMessage",
    "ServiceCall",
    "TestService",
    "VirtualClock",
    "acall",
    "arun_route",
    "batch",
    "call",
    "message",
    "run_route",
    "running",
]
