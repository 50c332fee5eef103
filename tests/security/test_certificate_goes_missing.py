"""A certificate that is missing when a transactional producer reconnects is one clear error each time, and no crash.

It runs in a process of its own: a fault of memory would end it with a signal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.secure_broker import SecureBroker

TIMES = 50
TRY = """
import json, os, sys
import awoke

servers, topic, certificate, kafka = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
TIMES = int(sys.argv[5])
replaced = []
events = awoke.Events()
events.subscribe("producer.replaced", replaced.append)


def spoil(producer):
    # A message that fails leaves a gap: no further transaction may begin on the connection.
    try:
        with producer.transaction() as transaction:
            transaction.produce(topic, bytes(5_000))  # More than the topic takes.
    except awoke.TransactionAborted:
        return
    raise SystemExit("not aborted")


with awoke.Producer(servers, kafka=kafka, transactional_id="missing", events=events) as producer:
    for _ in range(TIMES):
        spoil(producer)
        os.rename(certificate, certificate + ".away")
        try:
            producer.transaction().__enter__()
        except awoke.ConfigError as error:
            said = str(error)
        else:
            raise SystemExit("accepted")
        os.rename(certificate + ".away", certificate)
    with producer.transaction() as transaction:
        transaction.produce(topic, b"value")
print(said)
raise SystemExit(0 if len(replaced) >= TIMES else f"replaced {len(replaced)} times")
"""


def test_a_certificate_that_is_gone_when_a_producer_is_replaced(secure_broker: SecureBroker, tmp_path: Path) -> None:
    certificate = tmp_path / "client.pem"
    certificate.write_bytes(secure_broker.certificates.client.read_bytes())
    kafka = secure_broker.mtls(ssl_certificate_location=str(certificate), ssl_key_location=str(certificate))
    topic = secure_broker.create_topic({"max.message.bytes": "1000"})
    arguments = [secure_broker.at("MTLS"), topic, str(certificate), json.dumps(kafka)]
    tried = subprocess.run(
        [sys.executable, "-c", TRY, *arguments, str(TIMES)], capture_output=True, text=True, timeout=100, check=False
    )
    assert tried.returncode == 0, f"exit code {tried.returncode}: {tried.stderr[-2_000:]}"
    assert "ssl.certificate.location" in tried.stdout
