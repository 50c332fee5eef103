"""awoke as an application of Django's."""

from django.apps import AppConfig


class AwokeConfig(AppConfig):
    """The application `awoke`, with the model of the outbox."""

    name = "awoke.django"
    label = "awoke"
    default_auto_field = "django.db.models.BigAutoField"
