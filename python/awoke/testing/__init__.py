"""For users' tests: brokers and a schema registry inside the process, and an app that runs beside the test.

`__init__.pyi` lists the names. Each is loaded on its first use: the pytest plugin is imported by every run of pytest.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
