"""An app inside a web application (ASGI): its lifespan, and the errors, deadlines and traces of requests.

Nothing here needs a library: Starlette, Litestar and FastAPI take it as it is. `awoke.fastapi` adds dependencies.
"""

from awoke.asgi.lifespan import Lifespan, app_of, lifespan
from awoke.asgi.requests import CallsMiddleware

__all__ = ["CallsMiddleware", "Lifespan", "app_of", "lifespan"]
