"""The app of the project: it writes each message of `PAYMENTS` into the database, and counts what failed."""

from __future__ import annotations

import os

from django.db import connection

import awoke
import awoke.django
from tests.django_project.shop.models import Payment

app = awoke.django.DjangoApp(os.environ.get("GROUP", "django"))

if "QUERIES_AT_IMPORT" in os.environ:
    Payment.objects.count()  # Leaves a connection open, which nodes must not use.


@app.on(os.environ.get("PAYMENTS", "payments"), retry=awoke.Retry(backoff_s=(0.01, 0.2)))
def write(message: awoke.Message[bytes]) -> None:
    """Writes a payment. Every tenth time it closes the connection itself, as some code does."""
    number = int(message.value)
    Payment.objects.update_or_create(number=number, defaults={"by": os.getpid()})
    if number % 10 == 0:
        connection.close()


@app.on(os.environ.get("PAYMENTS", "payments") + "-async", retry=awoke.Retry(backoff_s=(0.01, 0.2)))
async def write_async(message: awoke.Message[bytes]) -> None:
    """Writes a payment from the event loop."""
    await Payment.objects.aupdate_or_create(number=int(message.value), defaults={"by": os.getpid()})
