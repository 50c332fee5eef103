//! The log of a partition: batches in the order of their offsets, which of them readers of committed messages may see,
//! and which of them belong to aborted transactions.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::batch::{self, Header};
use crate::producers::Producers;
use crate::records;

/// A batch at its place in the log.
#[derive(Debug)]
pub(crate) struct Placed {
    pub header: Header,
    pub bytes: Bytes,
}

/// A transaction of which the messages in the log count for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aborted {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
}

/// The part of a log that a reader gets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub records: Bytes,
    pub aborted: Vec<Aborted>,
}

/// The log of a partition.
#[derive(Debug, Default)]
pub(crate) struct Log {
    batches: VecDeque<Placed>,
    start: i64,
    end: i64,
    bytes: usize,
    aborted: Vec<Aborted>,
    pub producers: Producers,
    /// The leader's epochs and the first offset of each.
    epochs: Vec<(i32, i64)>,
}

impl Log {
    /// Returns the offset of the first message that is kept.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns the offset that the next message gets: the high watermark, as no replica lags.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Returns the bytes of all batches.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the offset before which all transactions are decided.
    pub fn last_stable(&self) -> i64 {
        self.producers.first_open().unwrap_or(self.end)
    }

    /// Returns the end for a reader: of all messages, or of committed ones only.
    pub fn end_for(&self, reads_committed: bool) -> i64 {
        if reads_committed { self.last_stable() } else { self.end }
    }

    /// Appends a batch that was checked, and returns the offset of its first message.
    pub fn append(&mut self, bytes: &[u8], leader_epoch: i32, append_time: Option<i64>) -> i64 {
        let base_offset = self.end;
        let bytes = batch::place(bytes, base_offset, leader_epoch, append_time);
        let header = Header::read(&bytes).expect("a batch is checked before it is appended");
        self.producers.note(&header);
        if self.epochs.last().is_none_or(|(epoch, _)| *epoch < leader_epoch) {
            self.epochs.push((leader_epoch, base_offset));
        }
        self.end = header.last_offset() + 1;
        self.bytes += bytes.len();
        self.batches.push_back(Placed { header, bytes });
        base_offset
    }

    /// Ends a producer's transaction with a marker. One that has written nothing here gets a marker, too, as in Kafka.
    pub fn end_transaction(&mut self, producer_id: i64, epoch: i16, commits: bool, leader_epoch: i32, now_ms: i64) {
        let first_offset = self.producers.transaction_start(producer_id);
        let marker = batch::marker(producer_id, epoch, commits, now_ms);
        let last_offset = self.append(&marker, leader_epoch, None);
        if let Some(first_offset) = first_offset.filter(|_| !commits) {
            self.aborted.push(Aborted { producer_id, first_offset, last_offset });
        }
    }

    /// Reads whole batches from the one that contains the offset on. The first is read whatever its size where
    /// `at_least_one`.
    pub fn read(&self, offset: i64, max_bytes: usize, reads_committed: bool, at_least_one: bool) -> Slice {
        let end = self.end_for(reads_committed);
        let first = self.index_of(offset);
        let (mut size, mut next) = (0, offset);
        let mut taken = first;
        for placed in self.batches.range(first..) {
            let fits = size + placed.bytes.len() <= max_bytes || (at_least_one && size == 0);
            if placed.header.base_offset >= end || !fits {
                break;
            }
            size += placed.bytes.len();
            next = placed.header.last_offset() + 1;
            taken += 1;
        }
        let records = match taken - first {
            0 => Bytes::new(),
            1 => self.batches[first].bytes.clone(),
            _ => {
                let mut records = BytesMut::with_capacity(size);
                self.batches.range(first..taken).for_each(|placed| records.extend_from_slice(&placed.bytes));
                records.freeze()
            }
        };
        let overlaps = |aborted: &&Aborted| aborted.first_offset < next && aborted.last_offset >= offset;
        let aborted = if reads_committed && size > 0 {
            self.aborted.iter().filter(overlaps).copied().collect()
        } else {
            Vec::new()
        };
        Slice { records, aborted }
    }

    /// Returns how many bytes a reader at the offset could get; counts no further than to what is enough.
    pub fn readable(&self, offset: i64, reads_committed: bool, enough: usize) -> usize {
        let end = self.end_for(reads_committed);
        let mut size = 0;
        for placed in self.batches.range(self.index_of(offset)..) {
            if size >= enough || placed.header.base_offset >= end {
                break;
            }
            size += placed.bytes.len();
        }
        size
    }

    /// Returns the newest timestamp and the offset of its message.
    pub fn newest(&self) -> Option<(i64, i64)> {
        let newest = self.batches.iter().rev().max_by_key(|placed| placed.header.max_timestamp)?;
        self.since(newest, newest.header.max_timestamp)
    }

    /// Returns the first message that is not older: its timestamp and its offset.
    pub fn first_since(&self, timestamp: i64) -> Option<(i64, i64)> {
        let placed = self.batches.iter().find(|placed| placed.header.max_timestamp >= timestamp)?;
        self.since(placed, timestamp)
    }

    fn since(&self, placed: &Placed, timestamp: i64) -> Option<(i64, i64)> {
        let (timestamp, offset) = records::first_since(&placed.header, &placed.bytes, timestamp)?;
        Some((timestamp, offset.max(self.start)))
    }

    /// Returns the batches in order.
    #[cfg(test)]
    pub fn batches(&self) -> impl Iterator<Item = &Placed> {
        self.batches.iter()
    }

    /// Deletes the messages before an offset; batches that contain a later one stay.
    pub fn delete_before(&mut self, offset: i64) {
        self.start = self.start.max(offset.min(self.end));
        while self.batches.front().is_some_and(|placed| placed.header.last_offset() < self.start) {
            let gone = self.batches.pop_front();
            self.bytes -= gone.map_or(0, |placed| placed.bytes.len());
        }
        self.aborted.retain(|aborted| aborted.last_offset >= self.start);
    }

    /// Drops the batches that contain an offset or a later one, and all knowledge of them.
    pub fn truncate(&mut self, offset: i64) {
        let kept = self.index_of(offset);
        if let Some(first) = self.batches.get(kept) {
            self.end = first.header.base_offset.max(self.start);
        }
        self.bytes -= self.batches.drain(kept..).map(|placed| placed.bytes.len()).sum::<usize>();
        self.aborted.retain(|aborted| aborted.last_offset < self.end);
        self.epochs.retain(|(_, start)| *start < self.end);
        self.producers = Producers::default();
        self.batches.iter().for_each(|placed| self.producers.note(&placed.header));
    }

    /// Returns the epoch at or before the asked one, and the offset at which it ended.
    pub fn end_of_epoch(&self, asked: i32, current: i32) -> Option<(i32, i64)> {
        if asked == current {
            return Some((current, self.end));
        }
        let at = self.epochs.iter().rposition(|(epoch, _)| *epoch <= asked)?;
        let end = self.epochs.get(at + 1).map_or(self.end, |(_, start)| *start);
        Some((self.epochs[at].0, end))
    }

    fn index_of(&self, offset: i64) -> usize {
        self.batches.partition_point(|placed| placed.header.last_offset() < offset)
    }
}
