"""One Kafka broker with a listener for each kind of security, and an authorizer.

Every user may do what no ACL denies. The plain listener is for the broker itself and for the tests' own questions.
"""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import awoke
from tests.support.certificates import Certificates
from tests.support.clusters import unique
from tests.support.kafka_broker import KafkaCluster, free_ports

USER, PASSWORD = "alice", "canary-right-5e1f"
WRONG_PASSWORD = "canary-wrong-77ab"
REAUTH_MS = 2_000
"""The length of a session of the listener REAUTH (KIP-368). Brokers refuse a new login within a second."""
LISTENERS = {
    "SASL": "SASL_SSL",
    "REAUTH": "SASL_SSL",
    "TLS": "SSL",
    "MTLS": "SSL",
    "EXPIRED": "SSL",
    "WRONGHOST": "SSL",
}
"""Each with its protocol."""
PLAIN_LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
OAUTH_LOGIN = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";'
)
OAUTH_VALIDATOR = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


class SecureBroker:
    """One broker, its certificates, and the properties of clients that it lets in."""

    def __init__(self, folder: Path) -> None:
        self.certificates = Certificates(folder)
        self._ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        self.kafka = KafkaCluster(1, _properties(self.certificates, self._ports))

    def at(self, listener: str) -> str:
        """Returns the address of a listener."""
        return f"localhost:{self._ports[listener]}"

    @property
    def plain(self) -> str:
        """Returns the address of the listener without TLS, whose clients may do everything."""
        return self.kafka.bootstrap_servers

    def tls(self, **more: str) -> dict[str, str]:
        """Returns the properties of a client of TLS without SASL."""
        return {"security.protocol": "SSL", **self._ca(), **_dotted(more)}

    def mtls(self, **more: str) -> dict[str, str]:
        """Returns the properties of a client that shows a certificate."""
        file = str(self.certificates.client)
        return {**self.tls(), "ssl.certificate.location": file, "ssl.key.location": file, **_dotted(more)}

    def sasl(self, mechanism: str, password: str = PASSWORD, **more: str) -> dict[str, str]:
        """Returns the properties of a client of SASL over TLS."""
        login = {"sasl.username": USER, "sasl.password": password} if mechanism != "OAUTHBEARER" else {}
        protocol = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
        return {**protocol, **login, **self._ca(), **_dotted(more)}

    def unsecured(self) -> dict[str, str]:
        """Returns the properties of a client whose tokens librdkafka makes, which nothing signs."""
        more = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={USER}"}
        return {**self.sasl("OAUTHBEARER"), **more}

    def _ca(self) -> dict[str, str]:
        return {"ssl.ca.location": str(self.certificates.authority), "broker.address.family": "v4"}

    def create_topic(self, config: Mapping[str, str] | None = None) -> str:
        """Creates a topic that no other test has."""
        name = unique("secured")
        with awoke.Admin(self.plain) as admin:
            admin.create_topic(name, config=config)
        return name

    @contextlib.contextmanager
    def denied(
        self, kind: ResourceType, name: str, operation: AclOperation = AclOperation.ALL, *, is_prefix: bool = False
    ) -> Iterator[None]:
        """Denies an operation to the user while the block runs; the others stay allowed."""
        pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
        rules = {AclPermissionType.DENY: operation}
        if operation is not AclOperation.ALL:
            rules[AclPermissionType.ALLOW] = AclOperation.ALL  # A resource with an ACL denies users without one.
        acls = [AclBinding(kind, name, pattern, f"User:{USER}", "*", each, rule) for rule, each in rules.items()]
        admin = self._admin()
        for made in admin.create_acls(acls).values():
            made.result(30)
        try:
            yield
        finally:
            any_of = (AclOperation.ANY, AclPermissionType.ANY)
            every = AclBindingFilter(kind, name, pattern, None, None, *any_of)  # type: ignore[arg-type]
            for deleted in admin.delete_acls([every]).values():
                deleted.result(30)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.plain, "log_level": 0})

    def _add_user(self) -> None:
        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        changes = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), PASSWORD.encode()) for kind in kinds
        ]
        admin = self._admin()
        for change in changes:
            for changed in admin.alter_user_scram_credentials([change]).values():
                changed.result(30)

    def __enter__(self) -> SecureBroker:
        self.kafka.__enter__()
        self._add_user()
        return self

    def __exit__(self, *_: object) -> None:
        self.kafka.stop()


@contextlib.contextmanager
def secure_broker() -> Iterator[SecureBroker]:
    """Runs a broker while the block runs."""
    with tempfile.TemporaryDirectory(prefix="awoke-certificates-") as folder, SecureBroker(Path(folder)) as broker:
        yield broker


def unsigned_token(life_s: float, principal: str = USER) -> awoke.OAuthToken:
    """Returns a JWT that nothing signs, as the broker's validator for tests accepts it."""
    now_s = time.time()
    claims = {"sub": principal, "iat": now_s, "exp": now_s + life_s}
    head, body = (_base64(json.dumps(part).encode()) for part in ({"alg": "none"}, claims))
    return awoke.OAuthToken(f"{head}.{body}.", now_s + life_s, principal)


def _base64(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def _dotted(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in properties.items()}


def _properties(certificates: Certificates, ports: dict[str, int]) -> dict[str, str]:
    certificate_of = {"EXPIRED": certificates.expired, "WRONGHOST": certificates.wrong_host}
    listeners = {name: f"{name}://localhost:{port}" for name, port in ports.items()}
    every = ",".join(listeners.values())
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},{every}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{every}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    for name in LISTENERS:
        properties.update(_tls_of(name, certificates, certificate_of.get(name, certificates.broker)))
    for mechanism, login in (("plain", PLAIN_LOGIN), ("scram-sha-256", SCRAM_LOGIN), ("scram-sha-512", SCRAM_LOGIN)):
        properties[f"listener.name.sasl.{mechanism}.sasl.jaas.config"] = login
    properties["listener.name.sasl.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
    properties["listener.name.reauth.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    properties["listener.name.reauth.oauthbearer.connections.max.reauth.ms"] = str(REAUTH_MS)
    for name in ("sasl", "reauth"):
        properties[f"listener.name.{name}.oauthbearer.sasl.jaas.config"] = OAUTH_LOGIN
        handler = f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class"
        properties[handler] = OAUTH_VALIDATOR
    return properties


def _tls_of(listener: str, certificates: Certificates, certificate: Path) -> dict[str, str]:
    prefix = f"listener.name.{listener.lower()}.ssl."
    stores = {"keystore.type": "PEM", "keystore.location": str(certificate)}
    trust = {"truststore.type": "PEM", "truststore.location": str(certificates.authority)}
    auth = {"client.auth": "required"} if listener == "MTLS" else {}
    return {prefix + name: value for name, value in {**stores, **trust, **auth}.items()}
