"""awoke inside Django: an app whose handlers use the ORM, messages on commit, and an outbox.

`INSTALLED_APPS` needs `"awoke.django"`. Needs the extra `django`.
"""

from awoke.preconditions.extras import needs

needs("django", "django")

from awoke.django.app import DjangoApp  # noqa: E402 - First it must be known that it is there.

__all__ = ["DjangoApp"]
