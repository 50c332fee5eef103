//! The brokers' description of themselves and their topics.

use std::ffi::c_int;
use std::time::Duration;

use super::{Client, Code, Metadata, c_string, ffi, text_of};
use crate::clock::Deadline;
use crate::seam::{BrokerInfo, PartitionInfo, TopicInfo};
use crate::{Error, Result};

impl Client {
    /// Asks who the brokers are; whether one has answered in time. Blocks the calling thread.
    pub fn asks_for_brokers(&self, within: Duration) -> bool {
        let mut metadata: *const ffi::rd_kafka_metadata = std::ptr::null();
        // SAFETY: the handle is alive; the answer is ours to destroy.
        unsafe {
            let timeout_ms = within.as_millis() as c_int;
            let nothing = std::ptr::null_mut();
            let code = ffi::rd_kafka_metadata(self.handle(), 0, nothing, &raw mut metadata, timeout_ms);
            if !metadata.is_null() {
                ffi::rd_kafka_metadata_destroy(metadata);
            }
            Code::of(code) == Code::NONE
        }
    }

    /// Asks for one topic, or for all. Blocks the calling thread.
    pub fn metadata(&self, topic: Option<&str>, deadline: &Deadline) -> Result<Metadata> {
        self.check_process()?;
        let operation = || topic.map_or_else(|| "list topics".to_owned(), |topic| format!("describe topic {topic}"));
        let name = topic.map(|topic| c_string("a topic", topic)).transpose()?;
        let mut metadata: *const ffi::rd_kafka_metadata = std::ptr::null();
        // SAFETY: the topic handle, if any, is destroyed after the call; the answer is ours to destroy.
        unsafe {
            let only = name.map_or(std::ptr::null_mut(), |name| {
                ffi::rd_kafka_topic_new(self.handle(), name.as_ptr(), std::ptr::null_mut())
            });
            let code = Code::of(ffi::rd_kafka_metadata(
                self.handle(),
                c_int::from(only.is_null()),
                only,
                &raw mut metadata,
                deadline.remaining_ms(),
            ));
            if !only.is_null() {
                ffi::rd_kafka_topic_destroy(only);
            }
            if code != Code::NONE {
                return Err(Error::kafka(operation(), code, ""));
            }
            let answer = read(&*metadata);
            ffi::rd_kafka_metadata_destroy(metadata);
            Ok(answer)
        }
    }
}

/// # Safety
/// `metadata` is an answer of librdkafka's.
unsafe fn read(metadata: &ffi::rd_kafka_metadata) -> Metadata {
    // SAFETY: each array has the length that stands beside it.
    unsafe {
        let mut brokers: Vec<_> = array(metadata.brokers, metadata.broker_cnt)
            .iter()
            .map(|broker| BrokerInfo { id: broker.id, address: format!("{}:{}", text_of(broker.host), broker.port) })
            .collect();
        let mut topics: Vec<_> = array(metadata.topics, metadata.topic_cnt)
            .iter()
            .map(|topic| {
                let code = Code((&raw const topic.err).cast::<i32>().read());
                let mut partitions: Vec<_> = array(topic.partitions, topic.partition_cnt)
                    .iter()
                    .map(|partition| PartitionInfo {
                        partition: partition.id,
                        leader: partition.leader,
                        replicas: array(partition.replicas, partition.replica_cnt).to_vec(),
                        in_sync: array(partition.isrs, partition.isr_cnt).to_vec(),
                    })
                    .collect();
                partitions.sort_by_key(|partition| partition.partition);
                TopicInfo { name: text_of(topic.topic), error: (code != Code::NONE).then_some(code), partitions }
            })
            .collect();
        brokers.sort_by_key(|broker| broker.id);
        topics.sort_by(|one, other| one.name.cmp(&other.name));
        Metadata { brokers, topics }
    }
}

/// # Safety
/// `start` points to `count` values, or `count` is 0.
unsafe fn array<'a, T>(start: *const T, count: i32) -> &'a [T] {
    if start.is_null() || count <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}
