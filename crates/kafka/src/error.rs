//! Everything that can go wrong in the engine, in one enum, so that the bridge's exhaustive `match` breaks when one is
//! added.

use std::fmt;
use std::time::Duration;

use crate::{Code, wake};

/// The engine's results.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in the engine.
#[derive(Clone, Debug)]
pub enum Error {
    /// A librdkafka property that is unknown, has a bad value, or belongs to awoke.
    Config {
        /// The property as librdkafka spells it.
        property: String,
        /// The fault; never holds the value of a secret.
        reason: String,
    },
    /// An answer of the broker or of librdkafka.
    Kafka {
        /// The operation, with its object: "create topic orders".
        operation: String,
        /// librdkafka's error code.
        code: Code,
        /// More than the code says; may be empty.
        detail: String,
    },
    /// The handle was made before a fork and is used in the child.
    Forked {
        /// The kind of handle.
        what: &'static str,
        /// The process that made it.
        pid: u32,
    },
    /// The handle has been closed.
    Closed {
        /// The kind of handle.
        what: &'static str,
    },
    /// The producer's queue had no room within the time given.
    QueueFull {
        /// The time that the caller waited.
        waited: Duration,
        /// Messages that wait for their delivery report.
        messages: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// A message larger than `message.max.bytes`, refused before it left.
    MessageTooLarge {
        /// The topic that it was meant for.
        topic: String,
        /// Its key, value and headers in bytes.
        size_bytes: usize,
        /// librdkafka's text.
        detail: String,
    },
    /// No answer within the time given; the operation may still take effect.
    TimedOut {
        /// The operation, with its object.
        operation: String,
        /// The time that the caller waited.
        waited: Duration,
    },
    /// The partition was taken away before this result came; it changes no offset.
    Fenced {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A transaction was aborted: nothing of it will be seen.
    Aborted {
        /// Why.
        code: Code,
        /// librdkafka's text.
        detail: String,
    },
    /// The broker did not say whether a transaction was committed.
    InDoubt {
        /// Why.
        code: Code,
        /// librdkafka's text.
        detail: String,
    },
    /// Another producer has taken the transactional id: nothing of an open transaction will be seen.
    ProducerFenced {
        /// Why.
        code: Code,
        /// librdkafka's text.
        detail: String,
    },
    /// The sink of a sequencer's entries has failed, and with it the sequencer: it is unknown how far the last run
    /// came.
    Poisoned {
        /// All before this entry were appended.
        index: u64,
    },
    /// An argument that makes no sense; nothing was done.
    Invalid {
        /// The fault.
        reason: String,
    },
    /// The system refused something.
    System {
        /// The operation.
        operation: &'static str,
        /// The system's text.
        detail: String,
    },
}

impl Error {
    /// An error of Kafka's for this operation.
    pub fn kafka(operation: impl Into<String>, code: Code, detail: impl Into<String>) -> Self {
        Self::Kafka { operation: operation.into(), code, detail: detail.into() }
    }

    /// Makes an error of this operation from the calling thread's last system error.
    pub fn last_system(operation: &'static str) -> Self {
        Self::System { operation, detail: std::io::Error::last_os_error().to_string() }
    }

    /// Returns whether the same call may work a moment later.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Kafka { code, .. } => code.is_retriable(),
            Self::QueueFull { .. } | Self::TimedOut { .. } => true,
            _ => false,
        }
    }
}

impl Error {
    /// librdkafka's code, where the error came from there.
    pub fn code(&self) -> Code {
        match self {
            Self::Kafka { code, .. }
            | Self::Aborted { code, .. }
            | Self::InDoubt { code, .. }
            | Self::ProducerFenced { code, .. } => *code,
            _ => Code::NONE,
        }
    }
}

impl From<wake::Error> for Error {
    fn from(error: wake::Error) -> Self {
        match error {
            wake::Error::Forked { what, pid } => Self::Forked { what, pid },
            wake::Error::Closed { what } => Self::Closed { what },
            wake::Error::BudgetExhausted { waited, messages, bytes } => Self::QueueFull { waited, messages, bytes },
            wake::Error::TimedOut { operation, waited } => Self::TimedOut { operation, waited },
            wake::Error::Poisoned { index } => Self::Poisoned { index },
            wake::Error::Invalid { reason } => Self::Invalid { reason },
            wake::Error::System { operation, detail } => Self::System { operation, detail },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { property, reason } => write!(f, "setting {property:?}: {reason}"),
            Self::Kafka { operation, code, detail } if detail.is_empty() => {
                write!(f, "{operation}: {} ({})", code.description(), code.name())
            }
            Self::Kafka { operation, code, detail } => write!(f, "{operation}: {detail} ({})", code.name()),
            Self::Forked { what, pid } => write!(
                f,
                "this {what} was made in process {pid} and its threads did not come along into process {}; \
                 make a new one after the fork",
                std::process::id()
            ),
            Self::Closed { what } => write!(f, "this {what} is closed"),
            Self::QueueFull { waited, messages, bytes } => write!(
                f,
                "the producer's queue is full ({messages} messages, {bytes} bytes wait for the broker) and had no room \
                 within {:.3} s; raise queue.buffering.max.messages, wait longer, or produce more slowly",
                waited.as_secs_f64()
            ),
            Self::MessageTooLarge { topic, size_bytes, detail } => write!(
                f,
                "a message of {size_bytes} bytes for topic {topic:?} is too large: {detail}; \
                 raise message.max.bytes here and max.message.bytes on the topic, or send less"
            ),
            Self::TimedOut { operation, waited } => {
                write!(f, "{operation}: no answer within {:.3} s; it may still take effect", waited.as_secs_f64())
            }
            Self::Fenced { topic, partition } => {
                write!(f, "{topic}[{partition}] was taken away before this result came; its offset stays")
            }
            Self::Aborted { code, detail } => {
                write!(f, "the transaction was aborted, nothing of it will be seen: {detail} ({})", code.name())
            }
            Self::InDoubt { code, detail } => write!(
                f,
                "the broker did not say whether the transaction was committed; look for its messages before you send \
                them again: {detail} ({})",
                code.name()
            ),
            Self::ProducerFenced { code, detail } => write!(
                f,
                "another producer has taken this transactional_id, nothing of an open transaction will be seen; give \
                each producer that runs at the same time an id of its own: {detail} ({})",
                code.name()
            ),
            Self::Poisoned { index } => {
                write!(f, "the sequencer is broken: its sink failed at entry {index} or one of those behind it")
            }
            Self::Invalid { reason } => f.write_str(reason),
            Self::System { operation, detail } => write!(f, "{operation}: {detail}"),
        }
    }
}

impl std::error::Error for Error {}
