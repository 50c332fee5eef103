"""An app in a Django project: what it sends with a transaction of the database."""

from __future__ import annotations

from tests.support.clusters import MockCluster, reading, unique
from tests.support.django_processes import SETTINGS
from tests.support.processes import Process

ON_COMMIT = """
import sys
import django
django.setup()
from django.db import transaction
from tests.django_project.kafka import app

topic = sys.argv[1]
app.produce_on_commit(topic, b"without a transaction")
with transaction.atomic():
    app.produce_on_commit(topic, b"committed", key="k")
    assert app.queued()[0] == 1
try:
    with transaction.atomic():
        app.produce_on_commit(topic, b"rolled back")
        raise LookupError
except LookupError:
    pass
"""


def test_messages_on_commit_follow_the_transaction_and_are_delivered_at_the_end(mock_cluster: MockCluster) -> None:
    topic = unique("committed")
    mock_cluster.create_topic(topic)
    env = {
        **SETTINGS,
        "AWOKE_BOOTSTRAP_SERVERS": mock_cluster.bootstrap_servers,
        "AWOKE_KAFKA_LINGER_MS": "60000",
    }
    with Process("-c", ON_COMMIT, topic, env=env, program=()) as process:
        assert process.wait() == 0, process.output
    with reading(mock_cluster, topic) as reader:
        assert [bytes(message.value) for message in reader.read_until_end(60)] == [
            b"without a transaction",
            b"committed",
        ]
