//! librdkafka's list of partitions.

use std::sync::Arc;

use super::{Code, Position, TopicPartition, c_string, ffi, text_of};
use crate::Result;

/// A `rd_kafka_topic_partition_list_t` of our own.
pub struct TopicPartitionList(*mut ffi::rd_kafka_topic_partition_list_t);

// SAFETY: a list is not tied to a thread, and only its owner reads and writes it.
unsafe impl Send for TopicPartitionList {}

impl Default for TopicPartitionList {
    fn default() -> Self {
        Self::new()
    }
}

impl TopicPartitionList {
    /// Makes an empty list.
    pub fn new() -> Self {
        // SAFETY: returns a list that this value owns.
        Self(unsafe { ffi::rd_kafka_topic_partition_list_new(4) })
    }

    /// A copy of a list that librdkafka lends (null: empty).
    ///
    /// # Safety
    /// `list` is null or valid during the call.
    pub(crate) unsafe fn copy_of(list: *const ffi::rd_kafka_topic_partition_list_t) -> Self {
        if list.is_null() {
            return Self::new();
        }
        // SAFETY: the caller's promise; the copy is ours.
        Self(unsafe { ffi::rd_kafka_topic_partition_list_copy(list) })
    }

    /// Makes a list of topics, without partitions.
    pub fn of_topics(topics: &[String]) -> Result<Self> {
        let mut list = Self::new();
        for topic in topics {
            list.add(&TopicPartition::new(topic.as_str(), -1), None)?;
        }
        Ok(list)
    }

    /// Adds a partition, with a position where one is given.
    pub fn add(&mut self, at: &TopicPartition, position: Option<Position>) -> Result<()> {
        let topic = c_string("a topic", &at.topic)?;
        // SAFETY: the list is ours; librdkafka copies the topic and returns a place inside the list.
        unsafe {
            let entry = ffi::rd_kafka_topic_partition_list_add(self.0, topic.as_ptr(), at.partition);
            if let Some(position) = position {
                (*entry).offset = position.offset;
                if position.leader_epoch >= 0 {
                    ffi::rd_kafka_topic_partition_set_leader_epoch(entry, position.leader_epoch);
                }
            }
        }
        Ok(())
    }

    /// Makes a list of partitions, without positions.
    pub fn of(partitions: &[TopicPartition]) -> Result<Self> {
        let mut list = Self::new();
        for at in partitions {
            list.add(at, None)?;
        }
        Ok(list)
    }

    /// Writes a text beside the offset of the entry that was added last.
    pub fn set_metadata(&mut self, metadata: &str) {
        // SAFETY: the list is ours; librdkafka frees the text with the list, by the C library's `free`.
        unsafe {
            let list = &mut *self.0;
            let Some(index) = usize::try_from(list.cnt).ok().and_then(|count| count.checked_sub(1)) else { return };
            let text = libc::malloc(metadata.len().max(1));
            if !text.is_null() {
                std::ptr::copy_nonoverlapping(metadata.as_ptr(), text.cast(), metadata.len());
                let entry = &mut *list.elems.add(index);
                entry.metadata = text;
                entry.metadata_size = metadata.len();
            }
        }
    }

    /// The text beside each offset.
    pub fn metadata(&self) -> Vec<Option<Arc<str>>> {
        // SAFETY: the list is ours and holds `cnt` entries, whose texts have the length that stands beside them.
        unsafe {
            let list = &*self.0;
            (0..list.cnt as usize)
                .map(|index| {
                    let entry = &*list.elems.add(index);
                    let is_there = !entry.metadata.is_null() && entry.metadata_size > 0;
                    is_there.then(|| {
                        let bytes = std::slice::from_raw_parts(entry.metadata.cast::<u8>(), entry.metadata_size);
                        Arc::from(String::from_utf8_lossy(bytes))
                    })
                })
                .collect()
        }
    }

    /// The first error of an entry.
    pub fn check(&self, operation: &str) -> Result<()> {
        for (at, _, code) in self.entries() {
            code.check(format!("{operation} of {at}"))?;
        }
        Ok(())
    }

    /// Returns librdkafka's list.
    pub(crate) const fn as_ptr(&self) -> *mut ffi::rd_kafka_topic_partition_list_t {
        self.0
    }

    /// A pointer to each entry, valid as long as the list is neither changed nor dropped.
    pub(crate) fn entry_pointers(&self) -> impl Iterator<Item = *mut ffi::rd_kafka_topic_partition_t> {
        // SAFETY: the list is ours and holds `cnt` entries.
        let (first, count) = unsafe { ((*self.0).elems, (*self.0).cnt as usize) };
        // SAFETY: as above.
        (0..count).map(move |index| unsafe { first.add(index) })
    }

    /// Each partition with its offset and its own error.
    pub fn entries(&self) -> Vec<(TopicPartition, i64, Code)> {
        // SAFETY: the list is ours and holds `cnt` entries; the error is read as the number it is.
        unsafe {
            let list = &*self.0;
            (0..list.cnt as usize)
                .map(|index| {
                    let entry = list.elems.add(index);
                    let code = (&raw const (*entry).err).cast::<i32>().read();
                    let at = TopicPartition::new(text_of((*entry).topic), (*entry).partition);
                    (at, (*entry).offset, Code(code))
                })
                .collect()
        }
    }

    /// The offset of the first entry, with its epoch.
    pub fn first_position(&self) -> Option<Position> {
        // SAFETY: the list is ours and holds `cnt` entries.
        unsafe {
            let entry = ((*self.0).cnt > 0).then(|| (*self.0).elems)?;
            let leader_epoch = ffi::rd_kafka_topic_partition_get_leader_epoch(entry);
            Some(Position { offset: (*entry).offset, leader_epoch })
        }
    }

    /// The leader epoch beside each offset; -1 where it is unknown.
    pub fn leader_epochs(&self) -> Vec<i32> {
        // SAFETY: the list is ours and holds `cnt` entries.
        unsafe {
            let list = &*self.0;
            let epoch = |index| ffi::rd_kafka_topic_partition_get_leader_epoch(list.elems.add(index));
            (0..list.cnt as usize).map(epoch).collect()
        }
    }

    /// Returns the partitions, in the list's order.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.entries().into_iter().map(|(at, _, _)| at).collect()
    }

    /// Tells whether it holds no partition.
    pub fn is_empty(&self) -> bool {
        // SAFETY: the list is ours.
        unsafe { (*self.0).cnt == 0 }
    }
}

impl Drop for TopicPartitionList {
    fn drop(&mut self) {
        // SAFETY: the list is ours.
        unsafe { ffi::rd_kafka_topic_partition_list_destroy(self.0) };
    }
}
