//! Partitions and topics whose messages do not come any more by themselves, and why.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::PartitionQueue;
use crate::Result;
use crate::kafka::{Code, TopicPartition};

/// Where librdkafka begins with `RD_KAFKA_OFFSET_BEGINNING`.
const EARLIEST: i64 = -2;

/// Partitions and topics (partition -1) whose messages do not come any more by themselves.
#[derive(Default)]
pub(super) struct Stuck {
    entries: Mutex<HashMap<TopicPartition, Entry>>,
}

struct Entry {
    text: String,
    /// `None` for a topic.
    partition: Option<Weak<PartitionQueue>>,
}

impl Stuck {
    fn entries(&self) -> MutexGuard<'_, HashMap<TopicPartition, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether fetching ended for good with this error.
    pub(super) const fn is_cause(code: Code) -> bool {
        // No offset and no reset policy; librdkafka's unknown topic and partition; the broker's unknown topic, and not authorised.
        matches!(code.0, -140 | -188 | -190 | 3 | 29)
    }

    /// Notes one; whether that is news.
    pub(super) fn note(&self, at: &TopicPartition, text: &str, partition: Option<Weak<PartitionQueue>>) -> bool {
        let entry = Entry { text: text.to_owned(), partition };
        self.entries().insert(at.clone(), entry).is_none()
    }

    /// Messages come again, or are not to come here any more.
    pub(super) fn clear(&self, at: &TopicPartition) {
        self.entries().remove(at);
    }

    /// All of them, each with why.
    pub(super) fn all(&self) -> Vec<(TopicPartition, String)> {
        self.entries().iter().map(|(at, entry)| (at.clone(), entry.text.clone())).collect()
    }

    /// Lets a partition go on from its first message; `false` when it is not stuck, or is a topic.
    pub(super) fn resume(&self, at: &TopicPartition) -> Result<bool> {
        let partition = self.entries().get(at).and_then(|entry| entry.partition.as_ref()?.upgrade());
        let Some(partition) = partition else { return Ok(false) };
        partition.seek(EARLIEST)?;
        Ok(true)
    }
}

/// What stands in the error of librdkafka (2.12.1) about a topic that is subscribed and not there.
const NOT_AVAILABLE: &str = "Subscribed topic not available: ";

/// The topic that an error of the group member is about.
pub(super) fn topic_of(text: &str) -> Option<TopicPartition> {
    let (topic, _) = text.strip_prefix(NOT_AVAILABLE)?.split_once(": ")?;
    Some(TopicPartition::new(topic, -1))
}

/// A registry that partitions share with their member.
pub(super) type Shared = Arc<Stuck>;
