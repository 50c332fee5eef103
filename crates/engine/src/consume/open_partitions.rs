//! The open partitions of a client, and events that concern them beside their jobs: a topic that was made again, and
//! fetching that has ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::PartitionQueue;
use crate::kafka::{Client, Code, TopicId, TopicPartition};
use crate::transact::{TransactionBatcher, TransactionEntry};

/// The open partitions of a client. Shared by the partitions, their owner and librdkafka's log callback.
#[derive(Default)]
pub(super) struct OpenPartitions {
    open: Mutex<BTreeMap<TopicPartition, Weak<PartitionQueue>>>,
    /// Partitions, and topics (partition -1), whose messages do not come any more, and why.
    stuck: Mutex<HashMap<TopicPartition, Stuck>>,
    /// Topics that were made again, whose leaders have to be learnt again.
    renewed: Mutex<BTreeSet<String>>,
    /// Commits offsets of transactional partitions.
    batcher: OnceLock<Weak<TransactionBatcher>>,
}

impl OpenPartitions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, Weak<PartitionQueue>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stuck(&self) -> MutexGuard<'_, HashMap<TopicPartition, Stuck>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, partition: &Arc<PartitionQueue>) {
        self.open().insert(partition.topic_partition().clone(), Arc::downgrade(partition));
    }

    pub(super) fn remove(&self, partition: &PartitionQueue) {
        let mut open = self.open();
        let at = partition.topic_partition();
        // A later assignment of the partition may be there already.
        if open.get(at).is_some_and(|found| std::ptr::eq(found.as_ptr(), partition)) {
            open.remove(at);
            drop(open);
            self.clear_stuck(at);
        }
    }

    /// Returns the partitions with what `PartitionQueue::pulled` tells of each. Does not block.
    pub(super) fn pulled(&self) -> Vec<(TopicPartition, Option<i64>, bool)> {
        // A partition must not be freed under the lock.
        let open: Vec<_> = self.open().values().filter_map(Weak::upgrade).collect();
        let row = |partition: Arc<PartitionQueue>| {
            let (next, is_kept_back) = partition.pulled();
            (partition.topic_partition().clone(), next, is_kept_back)
        };
        open.into_iter().map(row).collect()
    }

    /// Has the partitions of a topic that was deleted and made again begin at the first message of the new one. Does
    /// not block.
    ///
    /// Called by librdkafka's thread before it fetches from the new topic: no worker gets a message of it before it
    /// executes the seek.
    pub(super) fn renew(&self, topic: &str, id: &TopicId) {
        self.renewed().insert(topic.to_owned());
        // Under the lock, so that no partition is closed meanwhile: this thread must not be the one that frees it.
        let open = self.open();
        for (at, partition) in &*open {
            if let (true, Some(partition)) = (&*at.topic == topic, partition.upgrade()) {
                partition.renew(id.clone());
            }
        }
    }

    /// Learns the leaders of topics that were made again. Returns whether some have to be asked for again. Blocks the
    /// calling thread while brokers are asked: it must not hold the GIL.
    pub(super) fn learn_leaders(&self, client: &Client) -> bool {
        let renewed = std::mem::take(&mut *self.renewed());
        let unknown: BTreeSet<_> = renewed.into_iter().filter(|topic| !client.learn_leaders(topic)).collect();
        let is_unfinished = !unknown.is_empty();
        self.renewed().extend(unknown);
        is_unfinished
    }

    /// Sets the batcher that commits offsets of transactional partitions; once, before the first partition is open.
    pub(super) fn use_batcher(&self, batcher: Weak<TransactionBatcher>) {
        drop(self.batcher.set(batcher));
    }

    /// Commits the stored offset of a transactional partition without records. Does not block.
    pub(super) fn commit_in_transaction(&self, at: &TopicPartition) {
        let partition = self.open().get(at).and_then(Weak::upgrade);
        let batcher = self.batcher.get().and_then(Weak::upgrade);
        if let (Some(partition), Some(batcher)) = (partition, batcher) {
            // A closed batcher commits nothing; the next assignment begins before the control records then.
            drop(batcher.submit(TransactionEntry::of_stored_offset(partition)));
        }
    }

    /// Returns whether no messages come after this error, until its cause is gone.
    pub(super) const fn is_final(code: Code) -> bool {
        // A batch that cannot be decompressed; no offset and no reset policy; librdkafka's unknown topic and partition;
        // the broker's unknown topic, and not authorised.
        matches!(code.0, -198 | -140 | -188 | -190 | 3 | 29)
    }

    /// Notes that messages do not come any more, and after which offset they would come again. Returns whether that was
    /// not known.
    pub(super) fn note_stuck(&self, at: &TopicPartition, code: Code, text: &str, beyond: Option<i64>) -> bool {
        let stuck = Stuck {
            at: at.clone(),
            code,
            text: format!("{text} ({})", code.name()),
            is_resumable: at.partition >= 0 && (code == Code::AUTO_OFFSET_RESET || beyond.is_some()),
            beyond,
        };
        self.stuck().insert(at.clone(), stuck).is_none()
    }

    /// Notes that messages come again, or that the partition is not assigned any more.
    pub(super) fn clear_stuck(&self, at: &TopicPartition) {
        self.stuck().remove(at);
    }

    /// Returns where a stuck partition can be read again.
    pub(super) fn way_on(&self, at: &TopicPartition) -> Option<WayOn> {
        let beyond = self.stuck().get(at).filter(|stuck| stuck.is_resumable)?.beyond;
        let Some(offset) = beyond else { return Some(WayOn::FirstMessage) };
        let partition = self.open().get(at).and_then(Weak::upgrade)?;
        Some(WayOn::Beyond(partition, offset))
    }

    /// Returns whether librdkafka (2.12.1) fetches this partition no more: it had no offset to begin at, and none to
    /// fall back to.
    pub(super) fn has_fetching_ended(&self, at: &TopicPartition) -> bool {
        self.stuck().get(at).is_some_and(|stuck| stuck.code == Code::AUTO_OFFSET_RESET)
    }

    /// Returns all stuck partitions and topics.
    pub(super) fn all_stuck(&self) -> Vec<Stuck> {
        self.stuck().values().cloned().collect()
    }
}

/// Where a stuck partition can be read again.
pub(super) enum WayOn {
    /// At its first message.
    FirstMessage,
    /// From this offset.
    Beyond(Arc<PartitionQueue>, i64),
}

/// A partition, or a topic (partition -1), whose messages do not come any more.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The partition.
    pub at: TopicPartition,
    /// The error.
    pub code: Code,
    /// The error in words.
    pub text: String,
    /// True if it can be read from its first message, or after a batch. Otherwise it goes on by itself when the cause
    /// is gone.
    pub is_resumable: bool,
    /// The offset after a batch that cannot be read.
    beyond: Option<i64>,
}

/// Prefix of librdkafka's (2.12.1) error about a subscribed topic that is not available.
const NOT_AVAILABLE: &str = "Subscribed topic not available: ";

/// Returns the topic that an error of the group member is about.
pub(super) fn unavailable_topic(text: &str) -> Option<TopicPartition> {
    let (topic, _) = text.strip_prefix(NOT_AVAILABLE)?.split_once(": ")?;
    Some(TopicPartition::new(topic, -1))
}
