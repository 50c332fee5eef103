"""Adds the origin of a setting to errors about it, and the property of librdkafka that was probably meant."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from awoke.errors import BrokerUnreachable, ConfigError
from awoke.settings import ARGUMENT, Settings, environment, files

PROPERTIES = re.findall(
    r"\S+",
    """
acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
auto.commit.enable auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size bootstrap.servers
broker.address.family broker.address.ttl broker.version.fallback builtin.features check.crcs client.dns.lookup
client.id client.rack compression.codec compression.level compression.type connections.max.idle.ms
consume.callback.max.messages coordinator.query.interval.ms debug delivery.report.only.error delivery.timeout.ms
enable.auto.commit enable.auto.offset.store enable.gapless.guarantee enable.idempotence enable.metrics.push
enable.partition.eof enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification
fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type group.remote.assignor
heartbeat.interval.ms https.ca.location https.ca.pem internal.termination.signal isolation.level linger.ms
log.connection.close log.queue log.thread.name max.in.flight max.in.flight.requests.per.connection
max.partition.fetch.bytes max.poll.interval.ms message.copy.max.bytes message.max.bytes message.send.max.retries
message.timeout.ms metadata.broker.list metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy offset.store.method offset.store.path offset.store.sync.interval.ms
partition.assignment.strategy partitioner plugin.library.paths produce.offset.report
queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages queuing.strategy receive.message.max.bytes
reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms request.required.acks request.timeout.ms
retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism
sasl.mechanisms sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.oauthbearer.scope
sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol session.timeout.ms
socket.blocking.max.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites
ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location
ssl.key.location ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers
ssl.sigalgs.list statistics.interval.ms sticky.partitioning.linger.ms topic.blacklist
topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse transaction.timeout.ms transactional.id
""",
)
"""The properties of librdkafka 2.12, to suggest one for a misspelt name; librdkafka decides which names are valid."""

UNREACHABLE = re.compile(r"no broker of (\S+) answered within")
THREAD = re.compile(r"\[thrd:[^\]]*\]: ")
CONNECTION = re.compile(r"(?<=\()(?:\w+://)?\S+/(?:bootstrap|-?\d+): ")
STATE = re.compile(r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)")
UNKNOWN = re.compile(r"is no property of librdkafka")


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Adds the origin of a wrong setting to an error that is raised inside the block."""
    try:
        yield
    except BrokerUnreachable as error:
        text = clear(str(error))
        raise BrokerUnreachable(text, error.code, error.code_name, error.is_retriable) from None
    except ConfigError as error:
        if not UNKNOWN.search(str(error)):
            raise
        raise ConfigError(unknown_property(str(error), error.property), error.property) from None


def clear(text: str) -> str:
    """Returns what an error says about brokers that do not answer, with the origin of their address."""
    for noise in (THREAD, CONNECTION, STATE):
        text = noise.sub("", text)
    return UNREACHABLE.sub(lambda found: f"no broker of {found[1]} ({of_address(found[1])}) answered within", text)


def of_address(address: str) -> str:
    """Returns where the address of the brokers was set."""
    variable = environment.variable_of("bootstrap_servers")
    if address == environment.variables().get(variable):
        return f"from {variable}"
    for name, table in files(Path()):
        if address == table.get("bootstrap_servers"):
            return f"from {name}"
    return "the default" if address == Settings().bootstrap_servers else f"from an {ARGUMENT}"


def unknown_property(text: str, name: str) -> str:
    """Returns what an error says about a property that librdkafka does not know, with its origin and a better name."""
    close = difflib.get_close_matches(name, PROPERTIES, 1)
    return f"{text} ({of_property(name)})" + (f"; did you mean {close[0]!r}?" if close else "")


def of_property(name: str) -> str:
    """Returns where a property of librdkafka was set."""
    variable = environment.KAFKA_PREFIX + name.upper().replace(".", "_")
    if variable in environment.variables():
        return f"from {variable}"
    for file, table in files(Path()):
        if name in table.get("kafka", {}):
            return f"from {file}"
    return f"from an {ARGUMENT}"
