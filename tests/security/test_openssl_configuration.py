"""A wheel's OpenSSL reads no configuration file: awoke's settings decide alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from awoke import _native
from tests.support.entrances import Client, doctor
from tests.support.secure_broker import SecureBroker

CONTRADICTION = """\
openssl_conf = all
[all]
ssl_conf = uses
[uses]
system_default = no_protocol
[no_protocol]
MinProtocol = TLSv1.3
MaxProtocol = TLSv1.2
"""
"""With this file, no TLS connection can be made."""


def is_of_the_system() -> bool:
    """Tells whether the extension links the system's OpenSSL, which obeys its file.

    The process does not tell: Python's own `ssl` loads the system's OpenSSL, too.
    """
    return b"libssl.so" in Path(str(_native.__file__)).read_bytes()


@pytest.mark.skipif(is_of_the_system(), reason="a development build links the system's OpenSSL")
def test_a_file_of_openssl_conf_changes_nothing(
    secure_broker: SecureBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "openssl.cnf"
    file.write_text(CONTRADICTION)
    monkeypatch.setenv("OPENSSL_CONF", str(file))
    done = doctor(Client(secure_broker.at("TLS"), secure_broker.tls()))
    assert done.returncode == 0, done.stdout
