//! The stored and committed offsets of one assignment.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::PartitionQueue;
use super::seek::CRASH_RECORD;
use crate::Result;
use crate::consume::finished::{split_metadata, split_rows, split_topic};
use crate::consume::offsets::ToCommit;
use crate::kafka::{CommittedOffset, Position};
use crate::state::TablePartition;

impl PartitionQueue {
    /// Goes on after the group's last commit.
    pub(in crate::consume) fn resume_from(&self, committed: &CommittedOffset) {
        let position = Position { offset: committed.offset, leader_epoch: committed.leader_epoch };
        self.history().begin(position.offset);
        let (rows, _) = split_rows(split_topic(committed.metadata.as_deref().unwrap_or_default()).1);
        self.context.offsets.resume_from(&self.at, self.generation, position, rows);
        self.note_committed(position.offset, committed.metadata.clone());
        if position.offset > 0 && position.leader_epoch >= 0 {
            self.start.set(position);
        }
        let Some(lanes) = &self.lanes else { return };
        let (note, earlier) = split_metadata(position.offset, committed.metadata.as_deref().unwrap_or_default());
        let is_careful = note.is_some_and(|note| note.starts_with(CRASH_RECORD));
        lanes.resume_from(position.offset, earlier, is_careful);
    }

    /// Returns the stored and the committed offset, as long as the partition is assigned.
    pub fn stored_and_committed(&self) -> (Option<i64>, Option<i64>) {
        self.context.offsets.of(&self.at).unwrap_or_default()
    }

    /// Returns the first offset at or after a time, in milliseconds since 1970; -1 for the end. Blocks the calling
    /// thread.
    ///
    /// # Errors
    /// [`crate::Error::Kafka`]: the broker did not answer.
    pub fn offset_at(&self, timestamp_ms: i64) -> Result<i64> {
        self.context.client.offset_at(&self.at, timestamp_ms)
    }

    /// Returns what the group has committed, with the text that user code wrote beside it. Blocks the calling thread.
    ///
    /// # Errors
    /// [`crate::Error::Kafka`]: the broker did not answer.
    pub fn committed(&self) -> Result<Option<CommittedOffset>> {
        let committed = self.context.client.committed(std::slice::from_ref(&self.at))?.pop().flatten();
        Ok(committed.map(|CommittedOffset { offset, leader_epoch, metadata }| {
            let note = metadata.as_deref().and_then(|text| split_metadata(offset, text).0).map(Arc::from);
            CommittedOffset { offset, leader_epoch, metadata: note }
        }))
    }

    /// Stores the next offset to read.
    pub(in crate::consume) fn store(&self, position: Position) -> Result<()> {
        let is_first = self.context.offsets.store(&self.at, self.generation, position)?;
        self.wake_committer(is_first);
        Ok(())
    }

    /// Stores the next offset to read with a text beside it, which replaces another one at the same offset.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended. [`crate::Error::Forked`].
    pub fn annotate(&self, offset: i64, metadata: Option<Arc<str>>) -> Result<()> {
        self.check_process()?;
        // Where messages end in any order, the text goes with the watermark.
        let offset = self.lanes.as_ref().and_then(|lanes| lanes.offset()).unwrap_or(offset);
        let is_first = self.context.offsets.annotate(&self.at, self.generation, offset, metadata)?;
        self.wake_committer(is_first);
        Ok(())
    }

    /// Notes that lanes have more to commit.
    pub(super) fn touch(&self) {
        // An assignment that has ended has nothing to commit.
        if let Ok(is_first) = self.context.offsets.touch(&self.at, self.generation) {
            self.wake_committer(is_first);
        }
    }

    /// Wakes the committer for the first offset since its last commit.
    pub(super) fn wake_committer(&self, is_first: bool) {
        if is_first {
            (self.context.wake_owner)();
        }
    }

    /// Returns what a transaction has to commit; `None` when nothing is stored.
    pub(crate) fn for_transaction(&self) -> Result<Option<ToCommit>> {
        self.context.offsets.for_transaction(&self.at, self.generation)
    }

    /// Returns what a transaction has to commit while nothing is stored: what the group has committed, or else where it
    /// begins; `None` while that is not known.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`]: the assignment has ended.
    pub(crate) fn for_transaction_without_message(&self) -> Result<Option<ToCommit>> {
        let text = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone().and_then(|(_, text)| text);
        let rest =
            text.map(|text| split_rows(split_topic(&text).1).1.into()).filter(|rest: &Arc<str>| !rest.is_empty());
        self.context.offsets.again(&self.at, self.generation, self.client_position(), rest)
    }

    /// Returns how far the changelog of a table went at the group's last commit, if that tells it.
    pub(in crate::consume) fn rows_until(&self, table: &TablePartition) -> Option<i64> {
        self.context.offsets.rows_until(&self.at, table.mark())
    }

    /// Notes how far the changelog of a table goes now.
    pub(crate) fn set_rows_until(&self, table: &TablePartition, until: i64) {
        self.context.offsets.set_rows_until(&self.at, self.generation, table.mark(), until);
    }

    /// Notes that the broker holds this offset, with a text beside it.
    pub(crate) fn note_committed(&self, offset: i64, metadata: Option<Arc<str>>) {
        self.context.offsets.committed(&self.at, offset);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some((offset, metadata));
    }

    /// Returns whether the broker holds this already, as it may after a seek.
    pub(crate) fn is_held(&self, to_commit: &ToCommit) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(|(offset, text)| (*offset, text) == (to_commit.position.offset, &to_commit.metadata))
    }

    /// Notes that control records are after the last message that was pulled, when all there was has been pulled.
    pub(super) fn find_end(&self, is_exhausted: bool) {
        let is_wrong = self.is_position_wrong.load(Ordering::Relaxed);
        if !is_exhausted || self.context.tells_end || is_wrong || self.is_seek_due() {
            return;
        }
        let Some(next) = self.next_offset() else { return };
        let position = self.client_position().filter(|position| position.offset > next);
        if let Some(position) = position {
            self.end_epoch.store(position.leader_epoch, Ordering::Relaxed);
            self.end.store(position.offset, Ordering::Relaxed);
        }
    }

    /// Stores the offset after control records at the partition's end, as Java's consumer does: the lag is 0 then.
    pub(super) fn store_end(&self) {
        let end = self.end.swap(-1, Ordering::Relaxed);
        if end < 0 || self.flow.stores_by_hand {
            return;
        }
        let end = Position { offset: end, leader_epoch: self.end_epoch.load(Ordering::Relaxed) };
        let is_later = match &self.lanes {
            Some(lanes) => lanes.note_end(end),
            None => self.context.offsets.store_end(&self.at, self.generation, end).unwrap_or(false),
        };
        self.commit_without_job(is_later);
    }

    /// Has an offset committed, if there is one, that no job of the partition brings.
    pub(super) fn commit_without_job(&self, has_commit: bool) {
        match (has_commit, self.is_transactional) {
            (true, true) => self.context.open_partitions.commit_in_transaction(&self.at),
            (true, false) => self.touch(),
            (false, _) => (),
        }
    }
}
