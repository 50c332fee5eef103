//! A list of partitions.

use std::sync::Arc;

use super::{Code, Position, TopicPartition};
use crate::Result;

/// librdkafka's number for "where the group has committed".
const NO_OFFSET: i64 = -1001;

/// One entry of a list.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: TopicPartition,
    pub(super) position: Position,
    pub(super) metadata: Option<Arc<str>>,
    pub(super) code: Code,
}

/// A list of partitions, with an offset and a text beside each.
#[derive(Clone, Debug, Default)]
pub struct TopicPartitionList(pub(super) Vec<Entry>);

impl TopicPartitionList {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a partition, with a position where one is given.
    ///
    /// # Errors
    /// None.
    pub fn add(&mut self, at: &TopicPartition, position: Option<Position>) -> Result<()> {
        let position = position.unwrap_or(Position { offset: NO_OFFSET, leader_epoch: -1 });
        self.0.push(Entry { at: at.clone(), position, metadata: None, code: Code::NONE });
        Ok(())
    }

    /// Makes a list of partitions, without positions.
    ///
    /// # Errors
    /// None.
    pub fn of(partitions: &[TopicPartition]) -> Result<Self> {
        let mut list = Self::new();
        partitions.iter().try_for_each(|at| list.add(at, None))?;
        Ok(list)
    }

    /// Writes a text beside the offset of the entry that was added last.
    pub fn set_metadata(&mut self, metadata: &str) {
        if let Some(last) = self.0.last_mut() {
            last.metadata = Some(metadata.into());
        }
    }

    /// Returns each partition with its offset and its own error.
    pub fn entries(&self) -> Vec<(TopicPartition, i64, Code)> {
        self.0.iter().map(|entry| (entry.at.clone(), entry.position.offset, entry.code)).collect()
    }

    /// Returns the partitions, in the list's order.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.0.iter().map(|entry| entry.at.clone()).collect()
    }

    /// Returns whether it holds no partition.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
