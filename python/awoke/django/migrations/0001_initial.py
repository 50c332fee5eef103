"""The table of the outbox."""

import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    """Creates the table."""

    initial = True
    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("topic", models.CharField(max_length=249)),
                ("key", models.BinaryField(null=True)),
                ("value", models.BinaryField(null=True)),
                ("headers", models.JSONField(default=list)),
                ("partition", models.IntegerField(null=True)),
                ("timestamp_ms", models.BigIntegerField(null=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
            ],
            options={"ordering": ("id",)},
        ),
    ]
