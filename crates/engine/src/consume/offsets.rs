//! The stored offsets (next to commit) and the committed ones (held by the broker), by partition.
//!
//! An entry belongs to one assignment, its *generation*: a job that outlived its assignment finds another generation,
//! or none, and changes nothing. Stored offsets go back only in `rewind`: after a seek, or when the log went back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CommitGap;
use super::finished::{RowsUntil, with_heads};
use super::lanes::Lanes;
use crate::kafka::{Position, TopicId, TopicPartition};
use crate::{Error, Result};

/// Stored and committed offsets of the partitions that are assigned.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<TopicPartition, Entry>,
    /// The committer was woken for stored offsets, and has not taken them yet.
    is_announced: bool,
}

/// The progress of a partition.
pub(super) struct Progress {
    pub(super) at: TopicPartition,
    pub(super) stored: Option<i64>,
    pub(super) committed: Option<i64>,
    pub(super) begun: Option<i64>,
    pub(super) commit_gap: Option<CommitGap>,
}

/// The position to commit of a partition.
pub(crate) struct ToCommit {
    pub(crate) position: Position,
    /// The text to commit beside it.
    pub(crate) metadata: Option<Arc<str>>,
    /// True if position and text name all messages that are done: others are processed again after a restart.
    pub(crate) is_whole: bool,
}

#[derive(Debug)]
struct Entry {
    generation: u64,
    stored: Option<Position>,
    /// The text to commit beside the stored offset.
    metadata: Option<Arc<str>>,
    committed: Option<i64>,
    /// The group's last commit at the start.
    start: Option<Position>,
    /// The first message that was pulled, where the group had committed nothing.
    begun: Option<i64>,
    /// Stored, and in no commit yet.
    is_dirty: bool,
    /// The lanes of a partition whose messages end in any order: they know the stored offset. `stored` is then the
    /// place of a note, or where a seek went, as long as no message is done.
    lanes: Option<Arc<Lanes>>,
    /// The id of the topic, which goes with each commit.
    topic: Option<TopicId>,
    /// How far the changelogs of the route's tables go, which goes with each commit, too.
    rows: Vec<RowsUntil>,
    /// Committed in transactions only, with the records that go with it: the committer ignores it.
    is_transactional: bool,
}

impl State {
    fn entry(&mut self, at: &TopicPartition, generation: u64) -> Result<&mut Entry> {
        let entry = self.entries.get_mut(at).filter(|entry| entry.generation == generation);
        entry.ok_or_else(|| Error::Fenced { topic: at.topic.to_string(), partition: at.partition })
    }

    /// Forgets that the committer was woken, if it has nothing to take: the stored offset was lost, or a seek dropped
    /// it. Without this the next store would take the committer for woken, and it would never be.
    fn end_announcement(&mut self) {
        self.is_announced &= self.entries.values().any(Entry::is_due);
    }

    /// Returns whether the committer has to be woken.
    const fn announce(&mut self) -> bool {
        !std::mem::replace(&mut self.is_announced, true)
    }
}

impl Entry {
    const fn new(generation: u64, lanes: Option<Arc<Lanes>>, is_transactional: bool) -> Self {
        Self {
            generation,
            stored: None,
            metadata: None,
            committed: None,
            start: None,
            begun: None,
            is_dirty: false,
            lanes,
            topic: None,
            rows: Vec::new(),
            is_transactional,
        }
    }

    /// Returns whether the committer has something to do.
    const fn is_due(&self) -> bool {
        self.is_dirty && !self.is_transactional
    }

    /// Returns the position to commit.
    fn current(&self) -> Option<ToCommit> {
        let ToCommit { position, metadata, is_whole } = self.position()?;
        Some(ToCommit { position, metadata: self.with_heads(metadata), is_whole })
    }

    fn with_heads(&self, metadata: Option<Arc<str>>) -> Option<Arc<str>> {
        with_heads(self.topic.as_ref(), &self.rows, metadata)
    }

    fn position(&self) -> Option<ToCommit> {
        let Some(lanes) = &self.lanes else {
            return Some(ToCommit { position: self.stored?, metadata: self.metadata.clone(), is_whole: true });
        };
        let note = self.stored.zip(self.metadata.as_deref());
        let sought = || Some(ToCommit { position: self.sought()?, metadata: self.metadata.clone(), is_whole: true });
        lanes.position(note.map(|(at, text)| (at.offset, text))).or_else(sought)
    }

    /// Returns what to commit of lanes of which no message is done.
    fn sought(&self) -> Option<Position> {
        self.stored.filter(|_| !self.is_transactional)
    }

    fn stored(&self) -> Option<i64> {
        let Some(lanes) = &self.lanes else { return self.stored.map(|stored| stored.offset) };
        lanes.stored().or_else(|| self.sought().map(|sought| sought.offset))
    }

    fn put(&mut self, position: Position, metadata: Option<Arc<str>>) {
        self.stored = Some(position);
        self.metadata = metadata;
        self.is_dirty = true;
    }
}

impl Offsets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an assignment of a partition.
    pub(super) fn open(&self, at: &TopicPartition, generation: u64, lanes: Option<Arc<Lanes>>, is_transactional: bool) {
        self.state().entries.insert(at.clone(), Entry::new(generation, lanes, is_transactional));
    }

    /// Ends an assignment: later results of its jobs are refused.
    pub(super) fn close(&self, at: &TopicPartition, generation: u64) {
        let mut state = self.state();
        if state.entries.get(at).is_some_and(|entry| entry.generation == generation) {
            state.entries.remove(at);
        }
        state.end_announcement();
    }

    /// Stores the next offset to read. Returns whether the committer has to be woken.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn store(&self, at: &TopicPartition, generation: u64, position: Position) -> Result<bool> {
        let mut state = self.state();
        let entry = state.entry(at, generation)?;
        if entry.stored.is_some_and(|stored| stored.offset >= position.offset) {
            return Ok(false);
        }
        entry.put(position, None);
        let is_due = entry.is_due();
        Ok(is_due && state.announce())
    }

    /// Stores the end of a partition all of whose messages are done. Returns whether it is after the stored offset.
    /// Before the first message it stores nothing.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn store_end(&self, at: &TopicPartition, generation: u64, end: Position) -> Result<bool> {
        let mut state = self.state();
        let entry = state.entry(at, generation)?;
        let is_later = entry.stored.is_some_and(|stored| stored.offset < end.offset);
        if is_later {
            entry.put(end, None);
        }
        Ok(is_later)
    }

    /// Notes that lanes have more to commit. Returns whether the committer has to be woken.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn touch(&self, at: &TopicPartition, generation: u64) -> Result<bool> {
        let mut state = self.state();
        let entry = state.entry(at, generation)?;
        entry.is_dirty = true;
        let is_due = entry.is_due();
        Ok(is_due && state.announce())
    }

    /// Stores an offset as `store`, with a text beside it, which replaces another one at the same offset.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn annotate(
        &self,
        at: &TopicPartition,
        generation: u64,
        offset: i64,
        metadata: Option<Arc<str>>,
    ) -> Result<bool> {
        let mut state = self.state();
        let entry = state.entry(at, generation)?;
        let is_later = entry
            .stored
            .is_none_or(|stored| stored.offset < offset || (stored.offset == offset && entry.metadata != metadata));
        if !is_later {
            return Ok(false);
        }
        // The leader epoch of the offset stays beside it: without it the next process misses a truncated log.
        let known = entry.stored.into_iter().chain(entry.start).find(|known| known.offset == offset);
        entry.put(known.unwrap_or(Position { offset, leader_epoch: -1 }), metadata);
        let is_due = entry.is_due();
        Ok(is_due && state.announce())
    }

    /// Forgets the stored offset, because reading goes on from another one (negative: not known yet), which is stored
    /// in its place. Returns whether the committer has to be woken.
    pub(super) fn rewind(&self, at: &TopicPartition, generation: u64, to: Position) -> bool {
        let mut state = self.state();
        let Ok(entry) = state.entry(at, generation) else { return false };
        let (topic, rows) = (entry.topic.take(), std::mem::take(&mut entry.rows));
        *entry = Entry { topic, rows, ..Entry::new(generation, entry.lanes.take(), entry.is_transactional) };
        if to.offset >= 0 {
            entry.put(to, None);
        }
        let is_due = entry.is_due();
        state.end_announcement();
        is_due && state.announce()
    }

    /// Sets the id of a partition's topic; `None` while it is not known.
    pub(super) fn set_topic(&self, at: &TopicPartition, id: Option<TopicId>) {
        if let Some(entry) = self.state().entries.get_mut(at) {
            entry.topic = id;
        }
    }

    /// Refuses when the assignment has ended.
    pub(super) fn check_current(&self, at: &TopicPartition, generation: u64) -> Result<()> {
        self.state().entry(at, generation).map(drop)
    }

    /// Returns whether there is anything to commit.
    pub(super) fn is_dirty(&self) -> bool {
        self.state().entries.values().any(Entry::is_due)
    }

    /// Takes the positions to commit; they count as committed from here on.
    pub(super) fn take_dirty(&self) -> Vec<(TopicPartition, Position, Option<Arc<str>>)> {
        let mut state = self.state();
        state.is_announced = false;
        let dirty = state.entries.iter_mut().filter(|(_, entry)| entry.is_due());
        dirty
            .filter_map(|(at, entry)| {
                entry.is_dirty = false;
                entry.current().map(|ToCommit { position, metadata, .. }| (at.clone(), position, metadata))
            })
            .collect()
    }

    /// Notes where the group's last commit stands at the start, and how far changelogs went.
    pub(super) fn resume_from(&self, at: &TopicPartition, generation: u64, position: Position, rows: Vec<RowsUntil>) {
        if let Ok(entry) = self.state().entry(at, generation) {
            (entry.start, entry.rows) = (Some(position), rows);
        }
    }

    /// Returns how far a changelog went at the group's last commit, if that tells it.
    pub(super) fn rows_until(&self, at: &TopicPartition, mark: u64) -> Option<i64> {
        let state = self.state();
        let rows = &state.entries.get(at)?.rows;
        rows.iter().find(|(known, _)| *known == mark).map(|(_, until)| *until)
    }

    /// Notes how far a changelog goes now.
    pub(super) fn set_rows_until(&self, at: &TopicPartition, generation: u64, mark: u64, until: i64) {
        let mut state = self.state();
        let Ok(entry) = state.entry(at, generation) else { return };
        match entry.rows.iter_mut().find(|(known, _)| *known == mark) {
            // It may go back: the changelog was made again.
            Some((_, before)) => *before = until,
            None => entry.rows.push((mark, until)),
        }
    }

    /// Returns what a transaction has to commit of an assignment; `None` where nothing is stored.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn for_transaction(&self, at: &TopicPartition, generation: u64) -> Result<Option<ToCommit>> {
        Ok(self.state().entry(at, generation)?.current())
    }

    /// Returns what a transaction has to commit of an assignment of which nothing is stored, so that brokers learn its
    /// generation: the group's last commit with this text beside it, or else the first message, or else `next`; `None`
    /// where there is none of these.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn again(
        &self,
        at: &TopicPartition,
        generation: u64,
        next: Option<Position>,
        text: Option<Arc<str>>,
    ) -> Result<Option<ToCommit>> {
        let mut state = self.state();
        let entry = state.entry(at, generation)?;
        let begun = entry.begun.map(|offset| Position { offset, leader_epoch: -1 });
        let (first, text) = match entry.start {
            Some(start) => (Some(start), text),
            None => (begun.or(next), None),
        };
        let to_commit = |position| ToCommit { position, metadata: entry.with_heads(text), is_whole: true };
        Ok(first.filter(|first| first.offset >= 0).map(to_commit))
    }

    /// Notes that the broker holds this offset.
    pub(super) fn committed(&self, at: &TopicPartition, offset: i64) {
        if let Some(entry) = self.state().entries.get_mut(at) {
            // Answers come in the order of the commits, and a log that went back takes the committed offset with it.
            entry.committed = Some(offset);
        }
    }

    /// Notes the first message that was pulled.
    pub(super) fn begin(&self, at: &TopicPartition, generation: u64, first: i64) {
        if let Ok(entry) = self.state().entry(at, generation) {
            entry.begun = Some(first);
        }
    }

    /// Notes that the broker refused the offset: the next commit brings it, or a later one, again.
    pub(super) fn not_committed(&self, at: &TopicPartition) {
        if let Some(entry) = self.state().entries.get_mut(at) {
            entry.is_dirty = entry.stored.is_some() || entry.lanes.is_some();
        }
    }

    /// Has all stored offsets committed again.
    pub(super) fn renew(&self) {
        for entry in self.state().entries.values_mut() {
            entry.is_dirty |= entry.stored().is_some();
        }
    }

    /// Returns whether an offset of a partition is stored.
    pub(super) fn has_stored(&self, at: &TopicPartition) -> bool {
        self.state().entries.get(at).is_none_or(|entry| entry.stored().is_some())
    }

    /// Returns the progress of every partition that is assigned.
    pub(super) fn all(&self) -> Vec<Progress> {
        let state = self.state();
        let progress = |(at, entry): (&TopicPartition, &Entry)| Progress {
            at: at.clone(),
            stored: entry.stored(),
            committed: entry.committed,
            begun: entry.begun,
            commit_gap: entry.lanes.as_ref().and_then(|lanes| lanes.commit_gap()),
        };
        state.entries.iter().map(progress).collect()
    }

    /// Returns the stored and the committed offset of a partition that is assigned.
    pub(super) fn of(&self, at: &TopicPartition) -> Option<(Option<i64>, Option<i64>)> {
        self.state().entries.get(at).map(|entry| (entry.stored(), entry.committed))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn end(offset: i64) -> Position {
        Position { offset, leader_epoch: 4 }
    }

    fn at() -> TopicPartition {
        TopicPartition::new("orders", 3)
    }

    fn position(offset: i64) -> Position {
        Position { offset, leader_epoch: -1 }
    }

    #[test]
    fn offsets_never_go_back() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        assert!(offsets.store(&at(), 1, position(10)).expect("assigned"));
        assert!(!offsets.store(&at(), 1, position(5)).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(10), None)]);
    }

    #[test]
    fn the_end_of_a_changelog_goes_with_each_commit_and_back_with_one_that_was_made_again() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, true);
        offsets.resume_from(&at(), 1, end(10), vec![(7, 500)]);
        assert_eq!((offsets.rows_until(&at(), 7), offsets.rows_until(&at(), 8)), (Some(500), None));
        offsets.store(&at(), 1, position(11)).expect("assigned");
        offsets.set_rows_until(&at(), 1, 7, 3);
        let to_commit = offsets.for_transaction(&at(), 1).expect("assigned").expect("it is stored");
        assert_eq!(to_commit.metadata.as_deref(), Some("awoke:rows=7:3;"));
        offsets.rewind(&at(), 1, position(5));
        assert_eq!(offsets.rows_until(&at(), 7), Some(3), "a seek does not change the changelog");
    }

    #[test]
    fn a_result_of_an_earlier_assignment_changes_nothing() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        offsets.close(&at(), 1);
        offsets.open(&at(), 2, None, false);
        assert!(matches!(offsets.store(&at(), 1, position(10)), Err(Error::Fenced { .. })));
        assert!(!offsets.is_dirty());
    }

    #[test]
    fn the_end_after_control_records_is_stored_after_a_message_only() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        assert!(!offsets.store_end(&at(), 1, end(12)).expect("assigned"), "nothing was read");
        offsets.store(&at(), 1, position(10)).expect("assigned");
        assert!(offsets.store_end(&at(), 1, end(12)).expect("assigned"));
        assert!(!offsets.store_end(&at(), 1, end(11)).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), end(12), None)]);
    }

    #[test]
    fn a_store_after_a_seek_to_the_first_message_wakes_the_committer() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        assert!(offsets.store(&at(), 1, position(10)).expect("assigned"));
        offsets.rewind(&at(), 1, position(-2));
        assert!(offsets.store(&at(), 1, position(1)).expect("assigned"));
    }

    #[test]
    fn a_store_after_a_lost_partition_wakes_the_committer() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        assert!(offsets.store(&at(), 1, position(10)).expect("assigned"));
        offsets.close(&at(), 1);
        offsets.open(&at(), 2, None, false);
        assert!(offsets.store(&at(), 2, position(10)).expect("assigned"));
    }

    #[test]
    fn an_offset_that_the_broker_refused_is_committed_again() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        offsets.store(&at(), 1, position(10)).expect("assigned");
        offsets.take_dirty();
        assert!(!offsets.is_dirty());
        offsets.not_committed(&at());
        offsets.store(&at(), 1, position(12)).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), position(12), None)]);
    }

    #[test]
    fn a_text_beside_an_offset_goes_with_it_and_no_farther() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        let text: Arc<str> = "began".into();
        assert!(offsets.annotate(&at(), 1, 10, Some(Arc::clone(&text))).expect("assigned"));
        assert!(!offsets.annotate(&at(), 1, 10, Some(Arc::clone(&text))).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(10), Some(text))]);
        assert!(offsets.annotate(&at(), 1, 10, None).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(10), None)]);
        offsets.store(&at(), 1, position(11)).expect("assigned");
        assert!(!offsets.annotate(&at(), 1, 10, None).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(11), None)]);
    }

    #[test]
    fn a_text_keeps_the_leader_epoch_that_is_known_of_its_offset() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        let text: Arc<str> = "began".into();
        offsets.resume_from(&at(), 1, end(10), Vec::new());
        offsets.annotate(&at(), 1, 10, Some(Arc::clone(&text))).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), end(10), Some(Arc::clone(&text)))]);
        offsets.store(&at(), 1, end(12)).expect("assigned");
        offsets.annotate(&at(), 1, 12, Some(Arc::clone(&text))).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), end(12), Some(Arc::clone(&text)))]);
        offsets.annotate(&at(), 1, 15, Some(Arc::clone(&text))).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), position(15), Some(text))]);
    }

    #[test]
    fn the_id_of_the_topic_goes_with_each_commit() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        offsets.set_topic(&at(), Some(TopicId("4Xw".into())));
        offsets.store(&at(), 1, position(10)).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), position(10), Some("awoke:topic=4Xw;".into()))]);
        offsets.rewind(&at(), 1, position(3));
        offsets.annotate(&at(), 1, 3, Some("began".into())).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), position(3), Some("awoke:topic=4Xw;began".into()))]);
    }

    #[test]
    fn a_seek_may_go_back() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1, None, false);
        offsets.store(&at(), 1, position(10)).expect("assigned");
        assert!(!offsets.rewind(&at(), 1, position(3)), "the committer was woken for the offset before");
        assert!(!offsets.store(&at(), 1, position(4)).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(4), None)]);
    }
}
