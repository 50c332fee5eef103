//! A table: a dictionary that survives. It has a partition for each partition of the topic of its route, and each of
//! these has a partition of the changelog, a compacted topic, behind it.
//!
//! A job writes into its own [`Writes`]; they travel as records of its transaction, and are added to the committed rows
//! when that has been committed. Meanwhile no other job writes rows of the same key: the partition, or the key's lane,
//! begins none before.
//!
//! The rows of a table with a time to live have their time before their value; that of a record in the changelog is the
//! record's own. A row that is too old is none, wherever it is read, and each change looks for some to forget.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rows::Rows;
use super::writes::Written;
use crate::clock;
use crate::kafka::{Batch, TopicPartition};
use crate::produce::OwnedRecord;

/// Rows that are changed without letting others read in between.
const TOGETHER: usize = 64;
/// The bytes of a row's time.
const TIME: usize = 8;
/// The rows that each change of a table with a time to live looks at: more than one, so that none stays for long.
const LOOKS: usize = 2;

/// A table of an app.
pub struct Table {
    name: String,
    changelog: Arc<str>,
    /// Names the changelog in the metadata of commits.
    mark: u64,
    /// Others write it: its partitions go on reading when they are restored.
    is_followed: bool,
    ttl_ms: Option<i64>,
    open: Mutex<HashMap<i32, Arc<TablePartition>>>,
}

/// A partition of a table, as long as its process has it.
pub struct TablePartition {
    changelog: TopicPartition,
    mark: u64,
    is_followed: bool,
    ttl_ms: Option<i64>,
    rows: Mutex<Rows>,
    /// All that was committed before it was opened is there.
    is_restored: AtomicBool,
    is_closed: AtomicBool,
}

impl Table {
    /// Makes a table whose changes go to this topic; or, `is_followed`, whose rows are those that others write there. A
    /// row is gone this time after it was written; `None`: never.
    pub fn new(name: String, changelog: &str, is_followed: bool, ttl: Option<Duration>) -> Self {
        let ttl_ms = ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        Self {
            name,
            changelog: changelog.into(),
            mark: mark_of(changelog),
            is_followed,
            ttl_ms,
            open: Mutex::default(),
        }
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
            mark: self.mark,
            is_followed: self.is_followed,
            ttl_ms: self.ttl_ms,
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

fn now_ms() -> i64 {
    clock::wall().as_millis() as i64
}

const fn is_old(time_ms: [u8; TIME], ttl_ms: i64, now_ms: i64) -> bool {
    i64::from_le_bytes(time_ms).saturating_add(ttl_ms) <= now_ms
}

/// Returns a number for a name, the same in each process: FNV-1a, of 64 bits.
fn mark_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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

    /// Returns what names its changelog in the metadata of commits.
    pub(crate) const fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns whether all that was committed before it was opened is there. Does not block.
    pub fn is_restored(&self) -> bool {
        self.is_restored.load(Ordering::Acquire)
    }

    /// Returns whether its rows are another process's. Does not block.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Calls `read` with the committed value of a key; `None` where there is none. Blocks while others read or write.
    pub fn get<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let rows = self.rows();
        self.fresh(rows.get(key)?, now_ms).map(read)
    }

    /// Calls `read` with each committed row, in no order. Blocks while others read or write; they wait meanwhile.
    pub fn each(&self, mut read: impl FnMut(&[u8], &[u8])) {
        let now_ms = self.ttl_ms.map_or(0, |_| now_ms());
        for (key, value) in self.rows().iter() {
            if let Some(value) = self.fresh(value, || now_ms) {
                read(key, value);
            }
        }
    }

    /// Returns how many rows there are, the bytes of their keys and values, and the memory that they take. Some may be
    /// too old to be read. Blocks while others read or write.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let rows = self.rows();
        (rows.len(), rows.size_bytes(), rows.memory_bytes())
    }

    /// Returns the value of a row as it is kept; `None` for one that is too old.
    fn fresh<'a>(&self, kept: &'a [u8], now_ms: impl FnOnce() -> i64) -> Option<&'a [u8]> {
        let Some(ttl_ms) = self.ttl_ms else { return Some(kept) };
        let (time_ms, value) = kept.split_first_chunk::<TIME>()?;
        (!is_old(*time_ms, ttl_ms, now_ms())).then_some(value)
    }

    /// Gives a key the value that it was given at this time; `None` deletes its row.
    fn set(&self, rows: &mut Rows, key: &[u8], value: Option<&[u8]>, time_ms: i64) {
        let Some(ttl_ms) = self.ttl_ms else { return rows.set(key, value) };
        let now_ms = now_ms();
        let value = value.filter(|_| !is_old(time_ms.to_le_bytes(), ttl_ms, now_ms));
        rows.set(key, value.map(|value| [&time_ms.to_le_bytes(), value].concat()).as_deref());
        rows.sweep(LOOKS, |kept| kept.first_chunk().is_none_or(|time_ms| is_old(*time_ms, ttl_ms, now_ms)));
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
                self.set(&mut rows, key, message.value(), message.timestamp().0);
            }
        }
    }

    pub(crate) fn note_restored(&self) {
        self.is_restored.store(true, Ordering::Release);
    }

    /// Returns the records that bring written rows into the changelog.
    pub(crate) fn records(&self, written: Vec<Written>) -> impl Iterator<Item = OwnedRecord> {
        let timestamp_ms = self.ttl_ms.map(|_| now_ms());
        written.into_iter().map(move |(key, value)| OwnedRecord {
            partition: Some(self.number()),
            timestamp_ms,
            ..OwnedRecord::plain(Arc::clone(&self.changelog.topic), value.map(Into::into), Some(key.into()))
        })
    }

    /// Adds the rows of records that were committed.
    pub(crate) fn commit(&self, records: &[OwnedRecord]) {
        for part in records.chunks(TOGETHER) {
            let mut rows = self.rows();
            for record in part {
                let key = record.key.as_deref().unwrap_or_default();
                self.set(&mut rows, key, record.value.as_deref(), record.timestamp_ms.unwrap_or(0));
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
