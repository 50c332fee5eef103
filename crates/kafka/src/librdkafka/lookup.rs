//! Questions about offsets that a consumer asks the brokers. Each blocks the calling thread.

use std::ffi::c_int;
use std::time::Duration;

use super::{Client, Code, CommittedOffset, Position, TopicPartition, TopicPartitionList, c_string, ffi};
use crate::Result;
use crate::clock::Deadline;

/// The time that librdkafka has to begin a seek.
const SEEK_TIMEOUT_MS: c_int = 1_000;

/// The time after which a question counts as not answered.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Returns the offsets that the client's group has committed for these partitions, in their order; `None` where
    /// there is nothing.
    pub fn committed(&self, partitions: &[TopicPartition]) -> Result<Vec<Option<CommittedOffset>>> {
        self.committed_within(partitions, LOOKUP_TIMEOUT)
    }

    /// As `committed`, in this time.
    pub fn committed_within(
        &self,
        partitions: &[TopicPartition],
        timeout: Duration,
    ) -> Result<Vec<Option<CommittedOffset>>> {
        self.check_process()?;
        let list = TopicPartitionList::of(partitions)?;
        let timeout_ms = timeout.as_millis() as i32;
        // SAFETY: handle and list are alive; librdkafka fills the list in.
        let code = Code::of(unsafe { ffi::rd_kafka_committed(self.handle(), list.as_ptr(), timeout_ms) });
        code.check("look up committed offsets")?;
        list.check("look up committed offsets")?;
        let found = list.entries().into_iter().zip(list.leader_epochs()).zip(list.metadata());
        Ok(found
            .map(|(((_, offset, _), leader_epoch), metadata)| {
                (offset >= 0).then_some(CommittedOffset { offset, leader_epoch, metadata })
            })
            .collect())
    }

    /// The first offset at or after a time, in milliseconds since 1970; the end (-1) where nothing is so young.
    pub fn offset_at(&self, at: &TopicPartition, timestamp_ms: i64) -> Result<i64> {
        self.check_process()?;
        let mut list = TopicPartitionList::new();
        list.add(at, Some(Position { offset: timestamp_ms, leader_epoch: -1 }))?;
        let timeout_ms = LOOKUP_TIMEOUT.as_millis() as i32;
        // SAFETY: handle and list are alive; librdkafka fills the list in.
        let code = Code::of(unsafe { ffi::rd_kafka_offsets_for_times(self.handle(), list.as_ptr(), timeout_ms) });
        code.check(format!("look up an offset of {at} by time"))?;
        list.check("look up an offset by time")?;
        Ok(list.entries().first().map_or(-1, |(_, offset, _)| *offset))
    }

    /// One past the last message of a partition. Blocks the calling thread.
    pub fn end_offset(&self, at: &TopicPartition, deadline: &Deadline) -> Result<i64> {
        self.check_process()?;
        let topic = c_string("a topic", &at.topic)?;
        let (mut low, mut high) = (0, 0);
        // SAFETY: handle and name are alive; librdkafka fills both numbers in.
        let code = Code::of(unsafe {
            ffi::rd_kafka_query_watermark_offsets(
                self.handle(),
                topic.as_ptr(),
                at.partition,
                &raw mut low,
                &raw mut high,
                deadline.remaining_ms(),
            )
        });
        code.check(format!("look up the end of {at}"))?;
        Ok(high)
    }

    /// The offsets of a partition as the last fetch saw them, from the first message to one past the last; `None` when
    /// nothing was fetched yet. Does not block.
    pub fn offsets_seen(&self, at: &TopicPartition) -> Option<std::ops::Range<i64>> {
        self.check_process().ok()?;
        let topic = c_string("a topic", &at.topic).ok()?;
        let (mut low, mut high) = (0, 0);
        // SAFETY: handle and name are alive; reads what librdkafka remembers.
        let code = Code::of(unsafe {
            ffi::rd_kafka_get_watermark_offsets(
                self.handle(),
                topic.as_ptr(),
                at.partition,
                &raw mut low,
                &raw mut high,
            )
        });
        (code == Code::NONE && high >= 0).then(|| low.clamp(0, high)..high)
    }

    /// One past the last record that was pulled from the partition of this list, control records included; `None`
    /// before the first. Does not block.
    pub fn position(&self, of: &mut TopicPartitionList) -> Option<Position> {
        self.check_process().ok()?;
        // SAFETY: handle and list are alive; librdkafka fills the list in.
        let code = Code::of(unsafe { ffi::rd_kafka_position(self.handle(), of.as_ptr()) });
        of.first_position().filter(|position| code == Code::NONE && position.offset >= 0)
    }

    /// Lets fetching of an assigned partition go on from an offset; with a leader epoch, from where the log was
    /// truncated, if a later leader knows less. `false`: fetching has not begun, or has ended, and nothing happens.
    /// Waits for librdkafka, not for a broker.
    pub fn seek(&self, at: &TopicPartition, position: Position) -> bool {
        let mut list = TopicPartitionList::new();
        if self.check_process().is_err() || list.add(at, Some(position)).is_err() {
            return false;
        }
        // SAFETY: handle and list are alive; the error, if any, is ours to destroy.
        unsafe {
            let error = ffi::rd_kafka_seek_partitions(self.handle(), list.as_ptr(), SEEK_TIMEOUT_MS);
            if !error.is_null() {
                ffi::rd_kafka_error_destroy(error);
                return false;
            }
        }
        list.check("seek").is_ok()
    }
}
