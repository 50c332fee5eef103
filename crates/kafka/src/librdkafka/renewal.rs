//! Makes librdkafka forget the leaders of a topic that was deleted and made again.
//!
//! Patch 0013 says why librdkafka does not do that by itself.

use std::time::Duration;

use super::{Client, TopicPartition, TopicPartitionList, ffi};
use crate::clock::Deadline;

/// The time that the brokers have to name the leaders. librdkafka goes on asking afterwards.
const METADATA_WITHIN: Duration = Duration::from_secs(2);

unsafe extern "C" {
    fn awoke_forget_leader(rk: *mut ffi::rd_kafka_t, entry: *mut ffi::rd_kafka_topic_partition_t);
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
            unsafe { awoke_forget_leader(self.handle(), entry) };
        }
        drop(ask());
        true
    }
}
