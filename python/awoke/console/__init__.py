"""The console of an app: its processes report their state in Kafka, and every reader of these topics shows it.

`asgi` returns the console as a web application (extra `console`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
