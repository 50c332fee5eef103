//! Reads changelogs into tables, on a thread of its own, before the first message of their partitions.
//!
//! A table that others write is followed: its rows change as long as its partition is there.
//!
//! The end is where the changelog stood at the group's last commit, whose metadata tells it: a transaction of the owner
//! before may have been committed, and its markers may still be on their way. What is written behind that is of a
//! transaction that brokers refuse, because another process owns the partition. Where no commit tells it, the end is
//! where the changelog ended when its reading came there first. A changelog that ends before the commit says may have a
//! new leader, which does not know all yet; after a while it counts as truncated.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::{PartitionSettings, Read, Reader, StartAt};
use crate::clock::{self, Deadline};
use crate::events::{EventBox, What};
use crate::kafka::{ClientConfig, Code, TopicPartition};
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

/// The time that a leader has to tell of records that a commit knows.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

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
    /// Begins to read partitions, each up to the place that the group's last commit tells, if it does. Each function is
    /// called when the rows of its partition are there; none is, for a partition that was closed before. Does not wait
    /// for brokers.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property. [`Error::System`]: the thread did not start.
    pub(super) fn begin(
        config: &ClientConfig,
        tables: Vec<(Arc<TablePartition>, Option<i64>, OnRestored)>,
        events: &Arc<EventBox>,
    ) -> Result<Self> {
        let mut native = config.clone();
        for property in OF_MEMBERS {
            native.remove(property);
        }
        native.set("isolation.level", "read_committed");
        let starts: Vec<_> = tables.iter().map(|(table, ..)| (table.changelog().clone(), StartAt::Earliest)).collect();
        let reader = Reader::new(&native, &starts, &PartitionSettings::default(), Arc::clone(events))?;
        let reader = Arc::new(reader);
        let for_end = Arc::downgrade(&reader);
        let opened = tables.iter().map(|(table, ..)| Arc::clone(table)).collect();
        let reading = |(table, until, call): (Arc<TablePartition>, _, _)| {
            (table.changelog().clone(), Reading { table, until, end: None, short_since: None, call: Some(call) })
        };
        let restoring = Restoring { reader, left: tables.into_iter().map(reading).collect() };
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
    /// The partitions that are read.
    left: HashMap<TopicPartition, Reading>,
}

struct Reading {
    table: Arc<TablePartition>,
    /// One past the last record that belongs to the group's last commit; `None` where that does not tell it.
    until: Option<i64>,
    /// Where the changelog ended when reading came to its end first.
    end: Option<i64>,
    /// Since when it has been known to end before `until`.
    short_since: Option<Instant>,
    /// To be called once it is restored.
    call: Option<OnRestored>,
}

impl Reading {
    /// Notes that reading has come to an end. Returns whether all that belongs to the group's last commit has been
    /// read, and is decided. `position` is one past the last record that was read, `end` the end of the log.
    fn is_at_end(&mut self, position: i64, end: i64) -> bool {
        let first = *self.end.get_or_insert(end);
        match self.until {
            Some(until) if position >= until => true,
            Some(until) if end < until => {
                self.short_since.get_or_insert_with(clock::now);
                false
            }
            Some(_) => {
                self.short_since = None;
                false
            }
            None => position >= first || first == 0,
        }
    }
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
            let short = self.left.values().filter_map(|each| each.short_since).min();
            match self.reader.next(&Deadline::NEVER.or_earlier(short.map(|since| since + KNOWN_WITHIN)))? {
                None => self.give_up_short(),
                Some(Read::Batch(batch)) => {
                    if let Some(reading) = self.left.get(batch.topic_partition()) {
                        reading.table.restore(&batch);
                    }
                }
                Some(Read::EndOfPartition(at)) => self.note_end(&at)?,
                Some(Read::Closed) => return Ok(()),
            }
        }
        Ok(())
    }

    fn note_end(&mut self, at: &TopicPartition) -> Result<()> {
        let (position, end) = (self.reader.position(at).unwrap_or(0), self.reader.end_seen(at));
        let Some(reading) = self.left.get_mut(at) else { return Ok(()) };
        let unknown = || Error::Invalid { reason: format!("{at} has an end that is not known") };
        if reading.is_at_end(position, end.ok_or_else(unknown)?) {
            self.note_restored(at);
        }
        Ok(())
    }

    fn note_restored(&mut self, at: &TopicPartition) {
        let Some(reading) = self.left.get_mut(at) else { return };
        reading.short_since = None;
        reading.table.note_restored();
        reading.call.take().into_iter().for_each(|call| call());
        if reading.table.has_all() {
            self.left.remove(at);
        }
    }

    /// Goes on with the rows that there are, where a changelog has ended too early for all that time.
    fn give_up_short(&mut self) {
        let is_over = |since: Instant| clock::now() >= since + KNOWN_WITHIN;
        let short: Vec<_> = self
            .left
            .iter()
            .filter(|(_, each)| each.short_since.is_some_and(is_over))
            .map(|(at, _)| at.clone())
            .collect();
        for at in short {
            let end = self.reader.end_seen(&at).unwrap_or(0);
            let Some(reading) = self.left.get_mut(&at) else { continue };
            reading.short_since = None;
            let Some(until) = reading.until.filter(|until| end < *until) else { continue };
            let text = format!(
                "changelog {at} ends at {end}, and the group's last commit knows rows up to {until}: it was truncated \
                 or made again, and the rows behind that are lost"
            );
            self.reader.emit(What::Error { code: Code::INCONSISTENT, text, fatal: false });
            self.note_restored(&at);
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::state::Table;

    fn reading(until: Option<i64>) -> Reading {
        let table = Table::new("totals".into(), "shop.table.totals", false, None).open_partition(0);
        Reading { table, until, end: None, short_since: None, call: None }
    }

    #[test]
    fn where_a_commit_tells_the_end_nothing_behind_it_is_waited_for() {
        let mut reading = reading(Some(10));
        assert!(!reading.is_at_end(8, 20), "what was committed is not decided yet");
        assert!(reading.is_at_end(10, 20), "a transaction that is open behind it is of no concern");
    }

    #[test]
    fn a_changelog_that_ends_before_the_commit_is_waited_for() {
        let mut reading = reading(Some(10));
        assert!(!reading.is_at_end(8, 8) && reading.short_since.is_some());
        assert!(!reading.is_at_end(8, 12) && reading.short_since.is_none(), "the leader knows all now");
        assert!(reading.is_at_end(10, 12));
    }

    #[test]
    fn where_no_commit_tells_it_the_end_is_that_of_the_start() {
        let mut reading = reading(None);
        assert!(!reading.is_at_end(8, 10), "a transaction is open");
        assert!(reading.is_at_end(10, 15), "what came later is of others");
    }
}
