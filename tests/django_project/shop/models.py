"""The payments that handlers write."""

from __future__ import annotations

from django.db import models


class Payment(models.Model):
    """One message, each once: a message that comes again changes nothing."""

    number = models.IntegerField(unique=True)
    by = models.IntegerField()
    """The process that wrote it."""
