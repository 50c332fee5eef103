"""The arguments of handlers: a parameter gets what its annotation says.

1. When a route is made, `parameters_of` reads the annotations of the handler, and of the functions that it depends on.
2. When the app starts, `bind` makes the call of the handler: what the app gives is passed as it is, and only what
   depends on the message is looked up for each call.
3. What functions of `Depends` return lives as long as its scope: `Values` makes and closes it.
"""

from awoke.declare.injection.markers import Depends, Header, Key, Scope, Service, Value
from awoke.declare.injection.sources import Assignment

__all__ = ["Assignment", "Depends", "Header", "Key", "Scope", "Service", "Value"]
