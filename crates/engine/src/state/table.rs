//! A table: a dictionary that survives. It has a partition for each partition of the topic of its route, and each of
//! these has a partition of the changelog, a compacted topic, behind it.
//!
//! A job writes into its own [`Writes`]; they travel as records of its transaction, and are added to the committed rows
//! when that has been committed. Meanwhile no other job writes rows of the same key: the partition, or the key's lane,
//! begins none before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::rows::Rows;
use super::writes::Written;
use crate::kafka::{Batch, TopicPartition};
use crate::produce::OwnedRecord;

/// Rows that are changed without letting others read in between.
const TOGETHER: usize = 64;

/// A table of an app.
pub struct Table {
    name: String,
    changelog: Arc<str>,
    /// Others write it: its partitions go on reading when they are restored.
    is_followed: bool,
    open: Mutex<HashMap<i32, Arc<TablePartition>>>,
}

/// A partition of a table, as long as its process has it.
pub struct TablePartition {
    changelog: TopicPartition,
    is_followed: bool,
    rows: Mutex<Rows>,
    /// All that was committed before it was opened is there.
    is_restored: AtomicBool,
    is_closed: AtomicBool,
}

impl Table {
    /// Makes a table whose changes go to this topic; or, `is_followed`, whose rows are those that others write there.
    pub fn new(name: String, changelog: &str, is_followed: bool) -> Self {
        Self { name, changelog: changelog.into(), is_followed, open: Mutex::default() }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a partition that this process has. Does not block.
    pub fn partition(&self, number: i32) -> Option<Arc<TablePartition>> {
        self.open().get(&number).cloned()
    }

    /// Returns the partitions that this process has, in order. Does not block.
    pub fn partitions(&self) -> Vec<Arc<TablePartition>> {
        let mut all: Vec<_> = self.open().values().cloned().collect();
        all.sort_by_key(|each| each.number());
        all
    }

    /// Opens a partition, which has no row yet.
    pub(crate) fn open_partition(&self, number: i32) -> Arc<TablePartition> {
        let opened = Arc::new(TablePartition {
            changelog: TopicPartition::new(Arc::clone(&self.changelog), number),
            is_followed: self.is_followed,
            rows: Mutex::default(),
            is_restored: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        if let Some(earlier) = self.open().insert(number, Arc::clone(&opened)) {
            earlier.close();
        }
        opened
    }

    /// Closes a partition: its rows are another process's from now on.
    pub(crate) fn close_partition(&self, partition: &Arc<TablePartition>) {
        partition.close();
        let mut open = self.open();
        if open.get(&partition.number()).is_some_and(|known| Arc::ptr_eq(known, partition)) {
            open.remove(&partition.number());
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<i32, Arc<TablePartition>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({})", self.name)
    }
}

impl TablePartition {
    /// Returns the number of the partition.
    pub const fn number(&self) -> i32 {
        self.changelog.partition
    }

    /// Returns its partition of the changelog.
    pub(crate) const fn changelog(&self) -> &TopicPartition {
        &self.changelog
    }

    /// Returns whether all that was committed before it was opened is there. Does not block.
    pub fn is_restored(&self) -> bool {
        self.is_restored.load(Ordering::Acquire)
    }

    /// Returns whether its rows are another process's. Does not block.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Calls `read` with the committed rows, which stay as they are meanwhile. Blocks while others do this.
    pub fn with_rows<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        read(&self.rows())
    }

    /// Returns whether nothing more is to be read into it. Does not block.
    pub(crate) fn has_all(&self) -> bool {
        self.is_closed() || (self.is_restored() && !self.is_followed)
    }

    /// Takes records of the changelog.
    pub(crate) fn restore(&self, batch: &Batch) {
        let mut rows = self.rows();
        for message in batch.iter() {
            if let Some(key) = message.key() {
                rows.set(key, message.value());
            }
        }
    }

    pub(crate) fn note_restored(&self) {
        self.is_restored.store(true, Ordering::Release);
    }

    /// Returns the records that bring written rows into the changelog.
    pub(crate) fn records(&self, written: Vec<Written>) -> impl Iterator<Item = OwnedRecord> {
        written.into_iter().map(|(key, value)| OwnedRecord {
            partition: Some(self.number()),
            ..OwnedRecord::plain(Arc::clone(&self.changelog.topic), value.map(Into::into), Some(key.into()))
        })
    }

    /// Adds the rows of records that were committed.
    pub(crate) fn commit(&self, records: &[OwnedRecord]) {
        for part in records.chunks(TOGETHER) {
            let mut rows = self.rows();
            for record in part {
                rows.set(record.key.as_deref().unwrap_or_default(), record.value.as_deref());
            }
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
