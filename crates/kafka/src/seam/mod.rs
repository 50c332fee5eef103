//! The seam between the engine and its Kafka client. librdkafka is the client of a program, `simulated` that of a
//! simulation.
//!
//! Here are the types that both clients share. `statement.rs` says which functions and types of its own a client has to
//! have. It is compiled once in each client, so one that drifts from the other does not compile.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use awoke_wake::clock::Deadline;

use crate::Code;

/// One partition of a topic; partition -1 stands for the topic as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
}

impl TopicPartition {
    /// That partition of that topic.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl std::fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.topic, self.partition)
    }
}

/// The next offset to read, with the epoch of the leader that served the one before it (-1 unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The next offset to read.
    pub offset: i64,
    /// The leader's epoch, which lets a broker notice a truncated log.
    pub leader_epoch: i32,
}

/// Which half of the client it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sends messages.
    Producer,
    /// A producer that only asks: one thread serves its queue, and looks at errors between two waits.
    Admin,
    /// A producer that its owner replaces when it can't go on: what ends it is no end of anything else.
    Transactional,
    /// Reads messages.
    Consumer,
}

/// Called with the name and the new id of a topic that was deleted and made again, by a thread of the client's that
/// has not fetched from the new topic yet. It must not block, nor call the client.
pub type OnRenewed = Box<dyn Fn(&str, TopicId) + Send + Sync>;

/// The reason why brokers do not let a client in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFailure {
    /// `AUTHENTICATION` or `SSL`; or what is not allowed.
    pub code: Code,
    /// The cause, and what to do.
    pub text: String,
}

/// The brokers' description of themselves and their topics.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// By id.
    pub brokers: Vec<BrokerInfo>,
    /// By name.
    pub topics: Vec<TopicInfo>,
}

/// One broker.
#[derive(Clone, Debug)]
pub struct BrokerInfo {
    /// Its id.
    pub id: i32,
    /// Where it says that it listens.
    pub address: String,
}

/// One topic.
#[derive(Clone, Debug)]
pub struct TopicInfo {
    /// Its name.
    pub name: String,
    /// Why there is nothing to say about it.
    pub error: Option<Code>,
    /// By number.
    pub partitions: Vec<PartitionInfo>,
}

/// One partition of a topic.
#[derive(Clone, Debug)]
pub struct PartitionInfo {
    /// Its number.
    pub partition: i32,
    /// The broker that leads it; -1 when none does.
    pub leader: i32,
    /// Brokers that hold it.
    pub replicas: Vec<i32>,
    /// Brokers that hold all of it.
    pub in_sync: Vec<i32>,
}

/// The brokers' answer about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has members, or is about to.
    Present,
    /// It has none.
    Empty,
    /// No broker knows of it, or none tells this client.
    Unlisted,
    /// Some broker did not answer.
    Unknown,
}

/// The id of a topic, in base 64: one that is made again has another id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub Arc<str>);

/// What is asked of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedTopic {
    /// Its name.
    pub name: String,
    /// Its id; `None` where the broker gives none (before Kafka 2.8).
    pub id: Option<TopicId>,
    /// How many partitions it has.
    pub partitions: i32,
}

/// A member of a group, with the partitions that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its `client.id`.
    pub client_id: String,
    /// Its partitions.
    pub partitions: Vec<TopicPartition>,
}

/// The kind of an event that comes out of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The group assigns partitions, or takes some back.
    Rebalance,
    /// The answer to a commit.
    Commit,
    /// Fetched messages.
    Messages,
    /// The answer to a question about groups.
    Groups,
    /// The answer to a question about the partitions that the members of a group own.
    Owned,
    /// The answer to a question about topics.
    Topics,
    /// An error of the client.
    Error,
    /// Another kind.
    Other,
}

/// A fetched record outside a batch.
#[derive(Clone, Debug, Default)]
pub struct Fetched<'a> {
    /// Its value.
    pub value: Cow<'a, [u8]>,
    /// Its headers, in their order.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
}

/// An error that a queue held instead of a message.
#[derive(Clone, Debug)]
pub struct FetchError {
    /// The code.
    pub code: Code,
    /// The text.
    pub text: String,
    /// Where the client was to fetch; negative when that is unknown.
    pub offset: i64,
}

/// Why a batch was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It would take more than the bound. Its offsets.
    TooLarge(RangeInclusive<i64>),
    /// It is read in the next response, because those before it took so much.
    Later,
}

/// The meaning of a message's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampKind {
    /// There is none.
    Unknown,
    /// Set by its producer.
    Created,
    /// Set by the broker when it was appended.
    Appended,
}

/// The offset that a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: i64,
    /// The epoch of the leader that served the message before it; -1 unknown.
    pub leader_epoch: i32,
    /// The text beside it.
    pub metadata: Option<Arc<str>>,
}

/// The place of a message in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The partition.
    pub partition: i32,
    /// The offset; -1 without one.
    pub offset: i64,
    /// False if the broker was asked not to answer (`acks=0`): only then a message that was delivered has no offset.
    pub has_answer: bool,
    /// Milliseconds since 1970 as the broker keeps it; -1 when unknown.
    pub timestamp_ms: i64,
}

/// A partition with messages that have no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The partition; -1 for messages of which it is not known yet.
    pub at: TopicPartition,
    /// Its leader; -1 if none is known.
    pub leader: i32,
    /// How many messages.
    pub waiting: u64,
}

/// Takes the delivery report of one message.
pub trait Reported: Send + Sync + 'static {
    /// Takes the report, on the thread that serves the client's reports. Returns whether that thread's poll has to end.
    /// It must not block.
    fn report(self: Arc<Self>, report: Result<Delivery, Code>) -> bool;

    /// Takes the partition that the message was put into; -1 until the topic's partitions are known. Called with locks
    /// of the client's held.
    fn set_partition(&self, _partition: i32) {}

    /// Returns the partition that was set last; -1 before.
    fn partition(&self) -> i32 {
        -1
    }
}

/// Records that the client did not take.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// The index of the first of them.
    pub first: usize,
    /// Why it did not take the first of them.
    pub code: Code,
    /// The number of them.
    pub messages: usize,
    /// Their size together.
    pub bytes: usize,
}

/// Where a client counts an awaited message, which does not linger; given back when it is awaited no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedLinger(pub(crate) u8);

impl EndedLinger {
    /// Returns a number for it, below 255.
    pub const fn to_number(self) -> u8 {
        self.0
    }

    /// Returns the one with this number.
    pub const fn from_number(number: u8) -> Self {
        Self(number)
    }
}

/// Until when a call of a transaction is made.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    /// When the call times out.
    pub deadline: &'a Deadline,
    /// Set to end the call early.
    pub is_over: &'a AtomicBool,
}

/// Why a call of a transaction failed, and what is to be done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// The text.
    pub text: String,
    /// The client can't go on.
    pub is_fatal: bool,
    /// The same call is to be made again, and goes on where it was.
    pub is_retriable: bool,
}

/// The requests of one client that end a transaction. The client's threads count them, and never wait here.
#[derive(Debug, Default)]
pub struct EndTxns {
    sent: AtomicU64,
    answered: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndTxnCounts {
    sent: u64,
    answered: u64,
}

impl EndTxnCounts {
    /// Returns whether a transaction that began at `before` has been asked to end.
    pub const fn is_asked_since(self, before: Self) -> bool {
        self.sent != before.sent
    }

    /// Returns whether a request of since then may still be on its way.
    pub const fn is_in_doubt_since(self, before: Self) -> bool {
        let (sent, answered) = (self.sent - before.sent, self.answered - before.answered);
        sent > 1 || answered < sent
    }
}

#[cfg_attr(not(any(feature = "librdkafka", feature = "simulated")), allow(dead_code))]
impl EndTxns {
    /// Returns the counts as they are now.
    pub fn counts(&self) -> EndTxnCounts {
        // In this order: an answer counted here has its request counted, too.
        let answered = self.answered.load(Ordering::Acquire);
        EndTxnCounts { sent: self.sent.load(Ordering::Acquire), answered }
    }

    pub(crate) fn note_sent(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn note_answered(&self) {
        self.answered.fetch_add(1, Ordering::AcqRel);
    }
}
