"""`manage.py awoke_outbox`: sends the rows of the outbox to Kafka until SIGINT or SIGTERM."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from awoke.app.application import find_app
from awoke.django.app import TARGET
from awoke.django.relay import Relay
from awoke.errors import ConfigError


class Command(BaseCommand):
    """Runs the relay."""

    help = "Sends the messages of the outbox to Kafka, each once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the app, the database, and the choice of a single round."""
        parser.add_argument("app", nargs="?", help='The app, as in shop.kafka:app; left out, settings.AWOKE["app"].')
        parser.add_argument("--database", default="default", help="The database with the outbox.")
        parser.add_argument("--once", action="store_true", help="Send what is there, and end: for other databases.")

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Runs the relay. Blocks."""
        target = options["app"] or getattr(settings, "AWOKE", {}).get(TARGET)
        if target is None:
            raise CommandError('say the app, as in shop.kafka:app, or set AWOKE = {"app": "shop.kafka:app"}')
        relay = Relay(find_app(target), using=options["database"])
        if options["once"]:
            return f"sent {relay.run_once()} messages"
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: relay.stop())
        try:
            relay.run()
        except ConfigError as error:
            raise CommandError(str(error)) from None
        return None
