"""Dependencies of FastAPI's: the producer of the app, and callers of services."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

from fastapi import Depends
from starlette.requests import HTTPConnection

import awoke
from awoke.asgi import app_of
from awoke.rpc import Caller, CallerOptions


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
