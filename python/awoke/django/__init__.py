"""awoke inside Django: an app whose handlers use the ORM, messages on commit, and an outbox.

`INSTALLED_APPS` needs `"awoke.django"`. Needs the extra `django`.
"""

import sys

from awoke.__main__ import begin
from awoke.preconditions.extras import needs

if sys.argv[1:2] == ["awoke"]:  # `manage.py awoke run`: a signal may come while Django imports its applications.
    begin(sys.argv[2:])
needs("django", "django")

from awoke.django.app import DjangoApp  # noqa: E402 - First it must be known that it is there.

__all__ = ["DjangoApp"]
