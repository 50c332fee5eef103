//! The logs of the partitions.

use std::sync::Arc;

use super::Position;
use crate::clock;

/// The headers of a record, in order; a value may be missing.
pub type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A record of a log.
#[derive(Debug)]
pub struct LogRecord {
    /// Its offset.
    pub offset: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Headers,
    /// When it was appended, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The epoch of the leader that appended it.
    pub leader_epoch: i32,
    /// True for the marker of a transaction, which no consumer gets.
    pub is_control: bool,
    /// The number of the transaction that it is part of; 0 for none.
    pub transaction: u64,
}

impl LogRecord {
    /// Returns the record as one that no consumer gets.
    pub(super) const fn as_control(&self) -> Self {
        Self {
            offset: self.offset,
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp_ms: self.timestamp_ms,
            leader_epoch: self.leader_epoch,
            is_control: true,
            transaction: self.transaction,
        }
    }
}

/// The content of a record that is appended.
#[derive(Default)]
pub(super) struct Content {
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Headers,
    pub(super) is_control: bool,
    pub(super) transaction: u64,
}

/// The log of one partition.
#[derive(Default)]
pub(super) struct Log {
    pub(super) records: Vec<Arc<LogRecord>>,
    /// The leader epochs, each with its first offset.
    epochs: Vec<(i32, i64)>,
}

impl Log {
    pub(super) fn epoch(&self) -> i32 {
        self.epochs.last().map_or(0, |(epoch, _)| *epoch)
    }

    pub(super) fn end(&self) -> i64 {
        self.records.len() as i64
    }

    /// Appends a record. Returns its offset.
    pub(super) fn append(&mut self, content: Content) -> i64 {
        let Content { key, value, headers, is_control, transaction } = content;
        let (offset, leader_epoch) = (self.end(), self.epoch());
        let timestamp_ms = clock::wall().as_millis() as i64;
        let record = LogRecord { offset, key, value, headers, timestamp_ms, leader_epoch, is_control, transaction };
        self.records.push(Arc::new(record));
        offset
    }

    /// Removes the records from an offset on, as an unclean leader election does.
    pub(super) fn truncate(&mut self, end: i64) {
        self.records.truncate(end as usize);
        let (epoch, end) = (self.epoch() + 1, self.end());
        self.epochs.retain(|(_, start)| *start < end);
        self.epochs.push((epoch, end));
    }

    /// Returns where the log of a leader epoch ends: a position of that epoch is not valid beyond it (KIP-320).
    pub(super) fn end_of_epoch(&self, epoch: i32) -> i64 {
        self.epochs.iter().find(|(each, _)| *each > epoch).map_or(self.end(), |(_, start)| *start)
    }

    /// Returns the offset at which fetching from this position begins.
    pub(super) fn resolve(&self, position: Position) -> i64 {
        let Position { offset, leader_epoch } = position;
        match offset {
            -1 => self.end(),
            ..0 => 0,
            _ if leader_epoch >= 0 => offset.min(self.end_of_epoch(leader_epoch)),
            _ if offset > self.end() => 0, // Out of range: `auto.offset.reset` is `earliest`.
            _ => offset,
        }
    }
}
