from .web.application import asgi
from .web.grants import Grant, Role

__all__ = ["Grant", "Role", "asgi"]
