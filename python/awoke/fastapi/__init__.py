"""awoke inside FastAPI: the lifespan, dependencies for the producer and callers, the errors of calls as HTTP statuses.

Needs the extra `fastapi`.
"""

from __future__ import annotations

from typing import Annotated, Any, Unpack

import awoke
from awoke.asgi import CallsMiddleware, app_of, lifespan
from awoke.preconditions.extras import needs
from awoke.rpc import Caller, CallerOptions

needs("fastapi", "fastapi")

from fastapi import Depends  # noqa: E402 - After the check.
from starlette.requests import HTTPConnection  # noqa: E402

__all__ = ["CallsMiddleware", "Producer", "caller", "lifespan", "producer"]


async def producer(connection: HTTPConnection) -> awoke.Producer:
    """Returns the producer of the app whose lifespan the web application has. Does not block.

    Raises:
        ConfigError: the web application has no lifespan of awoke's.
    """
    return app_of(connection.scope).producer


Producer = Annotated[awoke.Producer, Depends(producer)]
"""The type of a parameter that gets the app's producer."""


def caller(service: str, **options: Unpack[CallerOptions]) -> Any:
    """Returns the dependency on a caller: `shop: Annotated[awoke.rpc.Caller, caller("shop")]`.

    The options count on the first use of the service in the app. The lifespan opens the callers of its `callers`
    before the first request, and the first call opens another one. Raises as `producer`.
    """

    async def get(connection: HTTPConnection) -> Caller:
        return app_of(connection.scope).caller(service, **options)

    return Depends(get)
