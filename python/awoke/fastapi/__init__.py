"""awoke inside FastAPI: the lifespan, dependencies for the producer and callers, the errors of calls as HTTP statuses.

Needs the extra `fastapi`.
"""

from awoke.asgi import CallsMiddleware, lifespan
from awoke.preconditions.extras import needs

needs("fastapi", "fastapi")

from awoke.fastapi.dependencies import Producer, caller, producer  # noqa: E402 - After the check.

__all__ = ["CallsMiddleware", "Producer", "caller", "lifespan", "producer"]
