//! The engine's events: errors, logs, statistics and changes of assignment, in one bounded box for one listener.

use std::sync::Arc;

use crate::wake::{EventFd, Mailbox};
use crate::{Code, TopicPartition};

/// Where the engine's events go. A listener that does not come loses the oldest.
pub type EventBox = Mailbox<Event, EventFd>;

/// Most events that wait for a listener.
pub const EVENTS_MAX: usize = 10_000;

/// A box for the engine's events.
pub fn event_box() -> crate::Result<Arc<EventBox>> {
    Ok(Arc::new(Mailbox::bounded(EventFd::new()?, EVENTS_MAX)))
}

/// Something that a client of the engine has to say.
#[derive(Clone, Debug)]
pub struct Event {
    /// The client: its `client.id`, or its group.
    pub client: Arc<str>,
    /// The event.
    pub what: What,
}

/// The event.
#[derive(Clone, Debug)]
pub enum What {
    /// A line of librdkafka's log.
    Log {
        /// Of syslog: 0 emergency … 7 debug.
        level: i32,
        /// librdkafka's word for the place: `FAIL`, `REBALANCE`.
        facility: String,
        /// The line.
        text: String,
    },
    /// An error of the whole client, often of one broker connection.
    Error {
        /// librdkafka's code.
        code: Code,
        /// librdkafka's text.
        text: String,
        /// True if the client can't go on.
        fatal: bool,
    },
    /// An error of fetching one partition or topic.
    FetchFailed {
        /// The topic, with the partition where it is known.
        at: TopicPartition,
        /// librdkafka's code.
        code: Code,
        /// librdkafka's text.
        text: String,
    },
    /// librdkafka's statistics, as JSON.
    Statistics(String),
    /// Partitions that the group gave to this member.
    Assigned(Vec<TopicPartition>),
    /// Partitions that no member of the group owns, though an assignment has stood for a session.
    Unowned(Vec<TopicPartition>),
    /// Other apps are members of the group, or read its other topics.
    Shared {
        /// The names of those apps.
        apps: Vec<String>,
        /// Topics of other members that this app does not read.
        topics: Vec<String>,
    },
    /// Messages for a partition are not acknowledged: nothing can be written to it.
    OutputBlocked {
        /// The partition; -1 while the topic's partitions are not known.
        at: TopicPartition,
        /// The messages that wait.
        messages: u64,
        /// For how long none was acknowledged.
        for_s: f64,
        /// The cause, as far as it is known.
        text: String,
    },
    /// It is well again.
    OutputUnblocked {
        /// The partition.
        at: TopicPartition,
        /// How that is known.
        text: String,
    },
    /// Messages that were not delivered, and whose handles were dropped or not looked at.
    DeliveryLost {
        /// Their topic.
        topic: Arc<str>,
        /// librdkafka's code.
        code: Code,
        /// The error, as a handle would tell it.
        text: String,
        /// Their number.
        messages: u64,
    },
    /// Partitions that were given back in order: jobs done, offsets committed.
    Revoked(Vec<TopicPartition>),
    /// Partitions that were taken without asking; nothing could be committed.
    Lost(Vec<TopicPartition>),
    /// A job that did not end within the time that a revocation or the shutdown gave it.
    JobOverdue(TopicPartition),
    /// Offsets that the broker did not take.
    CommitFailed {
        /// The partitions.
        partitions: Vec<TopicPartition>,
        /// librdkafka's code.
        code: Code,
        /// True if the next commit brings them again.
        will_retry: bool,
    },
    /// A transaction that could not be committed; nothing of it will be seen.
    TransactionAborted {
        /// librdkafka's code.
        code: Code,
        /// librdkafka's text.
        text: String,
    },
    /// A transactional producer got a new connection, because none of its transactions may begin on the old one.
    ProducerReplaced {
        /// Why not.
        reason: String,
    },
    /// A partition, or a topic (partition -1), whose messages do not come any more by themselves.
    Stuck {
        /// Which.
        at: TopicPartition,
        /// librdkafka's code.
        code: Code,
        /// librdkafka's text.
        text: String,
    },
    /// A reply that is refused for good: its call has ended, and is not executed again.
    ReplyRefused {
        /// Where the call stands.
        at: TopicPartition,
        /// Its offset.
        offset: i64,
        /// librdkafka's code.
        code: Code,
    },
    /// The system's clock was set.
    ClockStepped {
        /// Forward, or back (negative).
        by_ms: i64,
    },
    /// A partition whose log went back: reading goes on from the first message of the new log.
    Rewound {
        /// The partition.
        at: TopicPartition,
        /// The offset that would have been next.
        from: i64,
        /// The offset that reading goes on from.
        to: i64,
        /// The cause, as far as it is known.
        reason: String,
    },
    /// Offsets that the broker holds now; each with the next offset to read.
    Committed(Vec<(TopicPartition, i64)>),
}

impl What {
    /// Returns the event's name, as users know it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Log { .. } => "client.log",
            Self::Error { .. } => "client.error",
            Self::FetchFailed { .. } => "fetch.failed",
            Self::Statistics(_) => "client.statistics",
            Self::Assigned(_) => "partitions.assigned",
            Self::Unowned(_) => "group.unowned",
            Self::Shared { .. } => "group.shared",
            Self::OutputBlocked { .. } => "output.blocked",
            Self::OutputUnblocked { .. } => "output.unblocked",
            Self::DeliveryLost { .. } => "delivery.lost",
            Self::Revoked(_) => "partitions.revoked",
            Self::Lost(_) => "partitions.lost",
            Self::JobOverdue(_) => "job.overdue",
            Self::CommitFailed { .. } => "commit.failed",
            Self::TransactionAborted { .. } => "transaction.aborted",
            Self::ProducerReplaced { .. } => "producer.replaced",
            Self::Stuck { .. } => "partition.stuck",
            Self::ReplyRefused { .. } => "rpc.reply_refused",
            Self::ClockStepped { .. } => "clock.stepped",
            Self::Rewound { .. } => "partition.rewound",
            Self::Committed(_) => "offsets.committed",
        }
    }
}
