"""Certificates for tests, made at run time: a right authority, an unknown one, and broker certificates with faults."""

from __future__ import annotations

import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

BROKER_NAMES = ("localhost", "127.0.0.1")
NEW_YEAR_2020 = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
NEW_YEAR_2021 = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)


class Certificates:
    """Files of certificates and keys in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        stranger = trustme.CA()
        self.authority = self._write_authority("authority", self._authority)
        """The authority of brokers and clients."""
        self.unknown_authority = self._write_authority("unknown", stranger)
        """An authority that signed nothing of the brokers'."""
        self.broker = self._write("broker", self._authority.issue_cert(*BROKER_NAMES))
        old = self._authority.issue_cert(*BROKER_NAMES, not_before=NEW_YEAR_2020, not_after=NEW_YEAR_2021)
        self.expired = self._write("expired", old)
        self.wrong_host = self._write("elsewhere", self._authority.issue_cert("elsewhere.example"))
        self.client = self._write("client", self._authority.issue_cert("client@example.com", common_name="client"))
        self.unknown_client = self._write("stranger", stranger.issue_cert("x@example.com", common_name="stranger"))

    def _write_authority(self, name: str, authority: trustme.CA) -> Path:
        file = self._folder / f"{name}.pem"
        file.write_bytes(authority.cert_pem.bytes())
        return file

    def _write(self, name: str, leaf: trustme.LeafCert) -> Path:
        """Writes a key and its chain of certificates; Java reads keys in PKCS 8 only."""
        key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), password=None)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = self._folder / f"{name}.pem"
        file.write_bytes(key.private_bytes(*form) + b"".join(each.bytes() for each in leaf.cert_chain_pems))
        return file
