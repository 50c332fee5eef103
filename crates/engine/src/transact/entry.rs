//! The records and the offset of one job inside a shared transaction.

use std::ops::Range;
use std::sync::Arc;

use crate::consume::{PartitionQueue, SharedJob, ToCommit};
use crate::produce::{DeliveryHandle, OwnedRecord};
use crate::state::{TablePartition, Written};
use crate::wake::Completion;
use crate::{Error, Result};

/// The result of an entry, once its transaction has ended.
pub type Committed = Completion<Result<()>>;

/// Records how far the job of an entry is done.
pub(super) type RecordOffset = Box<dyn Fn() -> Result<()> + Send>;

/// The records and the offset of one job.
pub struct TransactionEntry {
    pub(super) partition: Arc<PartitionQueue>,
    pub(super) records: Vec<OwnedRecord>,
    /// The tables whose rows are among the records, with their places.
    rows: Vec<(Arc<TablePartition>, Range<usize>)>,
    record_offset: RecordOffset,
    /// False if only its rows and records tell what it does, and no offset.
    has_message: bool,
    pub(super) is_offset_recorded: bool,
    /// Why it cannot be committed any more: its job has ended, or its partition was revoked.
    pub(super) void: Option<Error>,
    /// It gets a transaction of its own: the broker refused a record of it, or of an entry beside it.
    pub(super) is_alone: bool,
    pub(super) committed: Arc<Committed>,
}

impl TransactionEntry {
    /// Makes an entry of records to send. `record_offset` records how far the job of this partition is done with them;
    /// it is called when all records are acknowledged, until it has succeeded.
    pub fn new(
        partition: Arc<PartitionQueue>,
        records: Vec<OwnedRecord>,
        record_offset: Box<dyn Fn() -> Result<()> + Send>,
    ) -> Self {
        Self {
            partition,
            records,
            rows: Vec::new(),
            record_offset,
            has_message: true,
            is_offset_recorded: false,
            void: None,
            is_alone: false,
            committed: Arc::default(),
        }
    }

    /// Adds the rows that the job has written in a table: they are in the table when the transaction is committed.
    pub fn add_rows(&mut self, table: Arc<TablePartition>, written: Vec<Written>) {
        let first = self.records.len();
        self.records.extend(table.records(written));
        self.rows.push((table, first..self.records.len()));
    }

    /// Makes an entry of the records that a job sends, and of its messages up to this offset; `None`: all of them.
    ///
    /// # Errors
    /// [`Error::Closed`]: the job has ended. Another one tries its messages again, so these records must not be seen.
    pub fn of_job(job: &SharedJob, records: Vec<OwnedRecord>, offset: Option<i64>) -> Result<Self> {
        let partition = job.partition()?;
        let count = job.with(|job| offset.map_or(job.end(), |offset| job.count_until(offset)))?;
        let job = job.clone();
        let record_offset = move || job.with(|job| job.done(count)).flatten();
        Ok(Self::new(partition, records, Box::new(record_offset)))
    }

    /// Makes an entry without records, for offsets that are stored already.
    pub fn of_stored_offset(partition: Arc<PartitionQueue>) -> Self {
        Self::new(partition, Vec::new(), Box::new(|| Ok(())))
    }

    /// Makes an entry of records that no message has caused, for a partition: its offsets are committed as they are, so
    /// that brokers refuse it from a process that has lost the partition.
    pub fn without_message(partition: Arc<PartitionQueue>, records: Vec<OwnedRecord>) -> Self {
        Self { has_message: false, ..Self::new(partition, records, Box::new(|| Ok(()))) }
    }

    /// Notes how far the changelogs of its rows go, now that its records have been sent.
    pub(super) fn note_sent(&self, handles: &[Arc<DeliveryHandle>]) {
        for (table, places) in &self.rows {
            let last = handles.get(places.clone()).and_then(<[_]>::last).and_then(|handle| handle.result());
            if let Some(Ok(delivery)) = last {
                self.partition.set_rows_until(table, delivery.offset + 1);
            }
        }
    }

    /// Returns what is to be committed of its partition; `None` for nothing.
    ///
    /// # Errors
    /// [`Error::Fenced`]: the assignment has ended. [`Error::Invalid`]: it is not known yet where the partition begins.
    pub(super) fn to_commit(&self) -> Result<Option<ToCommit>> {
        match self.partition.for_transaction()? {
            None if !self.has_message => {
                let unknown = || Error::Invalid { reason: "it is not known yet where the partition begins".into() };
                self.partition.for_transaction_without_message()?.ok_or_else(unknown).map(Some)
            }
            found => Ok(found),
        }
    }

    /// Records how far the job is done, once. An entry whose job has ended becomes void.
    pub(super) fn record_offset(&mut self) -> bool {
        if !self.is_offset_recorded {
            match (self.record_offset)() {
                Ok(()) => self.is_offset_recorded = true,
                Err(error) => self.void = Some(error),
            }
        }
        self.is_offset_recorded
    }

    /// Checks that the entry can still be committed: it is not void, and its partition is still assigned. Of a
    /// lost one, brokers refuse the offset each time, and its revocation would wait for this entry in vain.
    pub(super) fn check(&self) -> Result<()> {
        self.void.clone().map_or_else(|| self.partition.check_not_lost(), Err)
    }

    /// Brings its rows into the tables: they are committed.
    pub(super) fn commit_rows(&self) {
        for (table, places) in &self.rows {
            table.commit(&self.records[places.clone()]);
        }
    }

    pub(super) fn succeed(&self) {
        self.committed.complete(Ok(()));
    }

    pub(super) fn fail(&self, error: Error) {
        self.committed.complete(Err(error));
    }
}
