"""The table of the outbox."""

from __future__ import annotations

import uuid

from django.db import models


class OutboxMessage(models.Model):
    """A message that waits in the database until the relay has sent it."""

    id = models.BigAutoField(primary_key=True)
    """The order of sending."""
    uid = models.UUIDField(default=uuid.uuid4, editable=False)
    """Names the message in the relay's marker. Numbers would begin again when the table is truncated."""
    topic = models.CharField(max_length=249)
    key = models.BinaryField(null=True)
    value = models.BinaryField(null=True)
    headers = models.JSONField(default=list)
    """Pairs of a name and a value: text, bytes as base64, or null."""
    partition = models.IntegerField(null=True)
    timestamp_ms = models.BigIntegerField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        """The order is that of sending."""

        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.id} to {self.topic}"
