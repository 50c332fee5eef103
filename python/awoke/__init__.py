"""awoke: a Kafka processing framework for Python in which nothing sleeps."""

import logging

from awoke import rpc
from awoke._native import (
    Batch,
    DeliveryHandle,
    Message,
    Sequencer,
    SequencerPermit,
    SequencerTicket,
    librdkafka_version,
)
from awoke._waiting import Delivery
from awoke.admin import Admin, BrokerInfo, PartitionInfo, TopicInfo
from awoke.app import App
from awoke.concurrency import Concurrency, by, by_key, by_partition, unordered
from awoke.consumer import Consumer
from awoke.errors import (
    AppNotFound,
    AwokeError,
    BackgroundFailed,
    BrokerUnreachable,
    ClosedError,
    ConfigError,
    DecodeError,
    DeliveryFailed,
    DeliveryTimeout,
    EncodeError,
    FencedError,
    FetchFailed,
    ForkedClientError,
    KafkaError,
    MessageTooLarge,
    OperationTimeout,
    ProcessDied,
    ProducerFenced,
    QueueFull,
    RetriesExhausted,
    RpcError,
    SequencerBroken,
    SystemFailure,
    TransactionAborted,
    TransactionInDoubt,
    UnknownTopic,
)
from awoke.events import Event, Events
from awoke.middleware import Middleware, Outgoing
from awoke.producer import Producer, Record, Variant, wait_all
from awoke.reader import Reader
from awoke.routing import Batching, Flow, Retry
from awoke.runtime.server import Server
from awoke.transaction import Transaction

__version__ = "0.1.0"

# A library is silent until its user sets logging up.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Admin",
    "App",
    "AppNotFound",
    "AwokeError",
    "BackgroundFailed",
    "Batch",
    "Batching",
    "BrokerInfo",
    "BrokerUnreachable",
    "ClosedError",
    "Concurrency",
    "ConfigError",
    "Consumer",
    "DecodeError",
    "Delivery",
    "DeliveryFailed",
    "DeliveryHandle",
    "DeliveryTimeout",
    "EncodeError",
    "Event",
    "Events",
    "FencedError",
    "FetchFailed",
    "Flow",
    "ForkedClientError",
    "KafkaError",
    "Message",
    "MessageTooLarge",
    "Middleware",
    "OperationTimeout",
    "Outgoing",
    "PartitionInfo",
    "ProcessDied",
    "Producer",
    "ProducerFenced",
    "QueueFull",
    "Reader",
    "Record",
    "RetriesExhausted",
    "Retry",
    "RpcError",
    "Sequencer",
    "SequencerBroken",
    "SequencerPermit",
    "SequencerTicket",
    "Server",
    "SystemFailure",
    "TopicInfo",
    "Transaction",
    "TransactionAborted",
    "TransactionInDoubt",
    "UnknownTopic",
    "Variant",
    "__version__",
    "by",
    "by_key",
    "by_partition",
    "librdkafka_version",
    "rpc",
    "unordered",
    "wait_all",
]
