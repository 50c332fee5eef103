"""Settings that librdkafka refuses are one clear error each time, and never corrupt memory.

Each runs in a process of its own: a fault would end it with a signal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

import pytest

REFUSED: dict[str, dict[str, object]] = {
    "no user": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
    "no user without TLS": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"},
    "an unknown mechanism": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "MAGIC"},
    "no token endpoint": {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
    },
    "a missing authority": {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"},
    "a missing certificate": {"security.protocol": "SSL", "ssl.certificate.location": "/nowhere/client.pem"},
    "a missing key": {"security.protocol": "SSL", "ssl.key.location": "/nowhere/key.pem"},
    "a missing key store": {"security.protocol": "SSL", "ssl.keystore.location": "/nowhere/store.p12"},
    "a broken authority": {"security.protocol": "SSL", "ssl.ca.pem": "no certificate"},
    "a broken certificate": {"security.protocol": "SSL", "ssl.certificate.pem": "no certificate"},
    "a broken key": {"security.protocol": "SSL", "ssl.key.pem": "no key"},
    "an unknown cipher": {"security.protocol": "SSL", "ssl.cipher.suites": "ROT13"},
    "an unknown curve": {"security.protocol": "SSL", "ssl.curves.list": "banana"},
    "unknown signature algorithms": {"security.protocol": "SSL", "ssl.sigalgs.list": "banana"},
}
REFUSED_IN_TRANSACTIONS: dict[str, dict[str, object]] = {
    "a message time-out beyond the transaction's": {"transaction.timeout.ms": 1_000, "message.timeout.ms": 60_000},
    "no idempotence": {"enable.idempotence": False},
    "acknowledgements of one broker": {"acks": 1},
}

TRY = """
import json, sys
import awoke
properties, more = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for _ in range(50):
    try:
        awoke.Producer("127.0.0.1:1", kafka=properties, **more).close()
    except awoke.ConfigError as error:
        said = str(error)
    else:
        raise SystemExit("accepted")
print(said)
"""


@pytest.mark.parametrize("name", REFUSED)
def test_a_producer_refuses_a_setting_each_time(name: str) -> None:
    refuse_fifty_times(REFUSED[name], {})


@pytest.mark.parametrize("name", REFUSED | REFUSED_IN_TRANSACTIONS)
def test_a_transactional_producer_refuses_a_setting_each_time(name: str) -> None:
    refuse_fifty_times((REFUSED | REFUSED_IN_TRANSACTIONS)[name], {"transactional_id": "tx"})


def refuse_fifty_times(properties: Mapping[str, object], more: Mapping[str, str]) -> None:
    """Makes a producer with a setting that librdkafka refuses, fifty times: each is one error with a reason."""
    tried = subprocess.run(
        [sys.executable, "-c", TRY, json.dumps(properties), json.dumps(more)],
        capture_output=True,
        text=True,
        timeout=240,  # Each try may read all of the system's certificates: seconds of processor time.
        check=False,
    )
    assert tried.returncode == 0, f"exit code {tried.returncode}: {tried.stderr[-2_000:]}"
    assert tried.stdout.strip()
