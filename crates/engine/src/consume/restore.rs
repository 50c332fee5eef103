//! Reads changelogs into tables, on a thread of its own, before the first message of their partitions.
//!
//! A table that others write is followed: its rows change as long as its partition is there.
//!
//! The end is where the changelog ended when its reading came there first: a transaction of the owner before may have
//! been committed, and its markers may still be on their way. What is written behind that is of a transaction that
//! brokers refuse, because another process owns the partition.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::{PartitionSettings, Read, Reader, StartAt};
use crate::clock::Deadline;
use crate::events::{EventBox, What};
use crate::kafka::{ClientConfig, TopicPartition};
use crate::state::TablePartition;
use crate::wake::OwnThread;
use crate::{Error, Result};

/// Properties that are of a member of a group. A reader is none.
const OF_MEMBERS: [&str; 9] = [
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "auto.offset.reset",
];

/// What is called when a partition of a table is restored.
pub(super) type OnRestored = Box<dyn FnOnce() + Send>;

/// The restore of the tables of one assignment.
pub(super) struct Restore {
    /// Until its thread has ended.
    reader: Weak<Reader>,
    tables: Vec<Arc<TablePartition>>,
    thread: OwnThread,
}

impl Restore {
    /// Begins to read. Each function is called when the rows of its partition are there; none is, for a partition that
    /// was closed before. Does not wait for brokers.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property. [`Error::System`]: the thread did not start.
    pub(super) fn begin(
        config: &ClientConfig,
        tables: Vec<(Arc<TablePartition>, OnRestored)>,
        events: &Arc<EventBox>,
    ) -> Result<Self> {
        let mut native = config.clone();
        for property in OF_MEMBERS {
            native.remove(property);
        }
        native.set("isolation.level", "read_committed");
        let starts: Vec<_> = tables.iter().map(|(table, _)| (table.changelog().clone(), StartAt::Earliest)).collect();
        let reader = Reader::new(&native, &starts, &PartitionSettings::default(), Arc::clone(events))?;
        let reader = Arc::new(reader);
        let for_end = Arc::downgrade(&reader);
        let opened = tables.iter().map(|(table, _)| Arc::clone(table)).collect();
        let restoring = Restoring {
            reader,
            left: tables.into_iter().map(|(table, call)| (table.changelog().clone(), (table, Some(call)))).collect(),
            ends: HashMap::new(),
        };
        let thread = OwnThread::start("awoke-restore", "start the thread that restores tables", move || {
            restoring.run();
        })?;
        Ok(Self { reader: for_end, tables: opened, thread })
    }

    /// Returns whether no partition is left that this would be for.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished() || self.tables.iter().all(|table| table.has_all())
    }

    /// Ends the thread. Blocks until it has ended.
    pub(super) fn end(self) {
        if let Some(reader) = self.reader.upgrade() {
            reader.close();
        }
        self.thread.join();
    }
}

struct Restoring {
    reader: Arc<Reader>,
    /// The partitions that are read, each with the function to call once it is restored.
    left: HashMap<TopicPartition, (Arc<TablePartition>, Option<OnRestored>)>,
    /// Where the restore of a partition ends, once that is known.
    ends: HashMap<TopicPartition, i64>,
}

impl Restoring {
    fn run(self) {
        let reader = Arc::clone(&self.reader);
        if let Err(error) = self.read() {
            let (code, text) = (error.code(), format!("a table could not be restored: {error}"));
            reader.emit(What::Error { code, text, fatal: true });
        }
    }

    fn read(mut self) -> Result<()> {
        while !self.left.is_empty() {
            let Some(read) = self.reader.next(&Deadline::NEVER)? else { continue };
            match read {
                Read::Batch(batch) => {
                    if let Some((table, _)) = self.left.get(batch.topic_partition()) {
                        table.restore(&batch);
                    }
                }
                Read::EndOfPartition(at) => {
                    if self.is_at_end(&at)? {
                        self.note_restored(&at);
                    }
                }
                Read::Closed => return Ok(()),
            }
        }
        Ok(())
    }

    fn note_restored(&mut self, at: &TopicPartition) {
        let Some((table, call)) = self.left.get_mut(at) else { return };
        table.note_restored();
        call.take().into_iter().for_each(|call| call());
        if table.has_all() {
            self.left.remove(at);
        }
    }

    /// Returns whether all that was there at the start has been read, and is decided.
    fn is_at_end(&mut self, at: &TopicPartition) -> Result<bool> {
        let end = match (self.ends.get(at), self.reader.end_seen(at)) {
            (Some(end), _) => *end,
            (None, Some(seen)) => *self.ends.entry(at.clone()).or_insert(seen),
            (None, None) => return Err(Error::Invalid { reason: format!("{at} has an end that is not known") }),
        };
        Ok(self.reader.position(at).is_some_and(|position| position >= end) || end == 0)
    }
}
