//! One partition of a topic, and a place in it.

use std::sync::Arc;

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
