//! Makes librdkafka forget the leaders of a topic that was deleted and made again.
//!
//! librdkafka (2.12.1) ignores a partition's leader whose epoch is below the one that it knows. A topic that is made
//! again begins at epoch 0, so that where the leader of the old topic had changed, the leaders of the new one are never
//! learnt, and nothing is fetched. Java's clients compare the topic's id (KAFKA-12257). Here librdkafka is told to
//! forget what it knew.

use std::ffi::c_void;
use std::time::Duration;

use super::{Client, TopicPartition, TopicPartitionList, ffi};
use crate::clock::Deadline;

/// The time that the brokers have to name the leaders. librdkafka goes on asking afterwards.
const METADATA_WITHIN: Duration = Duration::from_secs(2);

// Not in librdkafka's header: functions of its own that the library, which is linked statically and in one version,
// has.
unsafe extern "C" {
    /// The partition of a list's entry; the list holds it from then on. Null when it is not known and not to be made.
    fn rd_kafka_topic_partition_ensure_toppar(
        rk: *mut ffi::rd_kafka_t,
        entry: *mut ffi::rd_kafka_topic_partition_t,
        create_on_miss: u8,
    ) -> *mut c_void;
    /// Forgets leader and epoch, if a leader is known, until metadata tells of them again. Takes locks of the handle
    /// and the partition.
    fn rd_kafka_toppar_forget_leader(partition: *mut c_void);
}

impl Client {
    /// Learns anew who leads the partitions of a topic that was made again, also of those that others read; `false`:
    /// brokers did not say which there are, ask again. Blocks the calling thread, twice `METADATA_WITHIN` at the most.
    /// It must not be called by a callback of librdkafka's.
    pub fn learn_leaders(&self, topic: &str) -> bool {
        let ask = || self.metadata(Some(topic), &Deadline::after(Some(METADATA_WITHIN)));
        let Ok(found) = ask() else { return false };
        let partitions = found.topics.into_iter().flat_map(|topic| topic.partitions);
        let partitions: Vec<_> = partitions.map(|each| TopicPartition::new(topic, each.partition)).collect();
        let Ok(list) = TopicPartitionList::of(&partitions) else { return true };
        if list.is_empty() {
            return false;
        }
        for entry in list.entry_pointers() {
            // SAFETY: the handle is alive, and the list, which holds the partition until it is dropped.
            unsafe {
                let partition = rd_kafka_topic_partition_ensure_toppar(self.handle(), entry, 0);
                if !partition.is_null() {
                    rd_kafka_toppar_forget_leader(partition);
                }
            }
        }
        drop(ask());
        true
    }
}
