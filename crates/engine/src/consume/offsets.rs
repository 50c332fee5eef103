//! Which offsets are stored (ready to be committed) and which the broker holds, by partition.
//!
//! An entry belongs to one assignment, its *generation*: a job that outlived its assignment finds another generation, or
//! none, and changes nothing. Offsets never go back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kafka::{Position, TopicPartition};
use crate::{Error, Result};

/// Stored and committed offsets of the partitions that are assigned.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<TopicPartition, Entry>,
    /// Somebody has been told that there is something to commit, and has not taken it yet.
    is_announced: bool,
}

#[derive(Debug)]
struct Entry {
    generation: u64,
    stored: Option<Position>,
    committed: Option<i64>,
    /// Stored, and in no commit yet.
    is_dirty: bool,
}

impl Offsets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an assignment of this partition.
    pub(super) fn open(&self, at: &TopicPartition, generation: u64) {
        self.state().entries.insert(at.clone(), Entry { generation, stored: None, committed: None, is_dirty: false });
    }

    /// Ends that assignment: later results of its jobs are refused.
    pub(super) fn close(&self, at: &TopicPartition, generation: u64) {
        let mut state = self.state();
        if state.entries.get(at).is_some_and(|entry| entry.generation == generation) {
            state.entries.remove(at);
        }
    }

    /// Stores the next offset to read; `true` when the committer is to be told that there is something for it again.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the assignment has ended.
    pub(super) fn store(&self, at: &TopicPartition, generation: u64, position: Position) -> Result<bool> {
        let mut state = self.state();
        let entry = state
            .entries
            .get_mut(at)
            .filter(|entry| entry.generation == generation)
            .ok_or_else(|| Error::Fenced { topic: at.topic.to_string(), partition: at.partition })?;
        if entry.stored.is_some_and(|stored| stored.offset >= position.offset) {
            return Ok(false);
        }
        entry.stored = Some(position);
        entry.is_dirty = true;
        Ok(!std::mem::replace(&mut state.is_announced, true))
    }

    /// Whether anything is to be committed.
    pub(super) fn is_dirty(&self) -> bool {
        self.state().entries.values().any(|entry| entry.is_dirty)
    }

    /// What is to be committed; it counts as clean from here on.
    pub(super) fn take_dirty(&self) -> Vec<(TopicPartition, Position)> {
        let mut state = self.state();
        state.is_announced = false;
        let dirty = state.entries.iter_mut().filter(|(_, entry)| entry.is_dirty);
        dirty
            .filter_map(|(at, entry)| {
                entry.is_dirty = false;
                entry.stored.map(|stored| (at.clone(), stored))
            })
            .collect()
    }

    /// The broker holds this offset now.
    pub(super) fn committed(&self, at: &TopicPartition, offset: i64) {
        if let Some(entry) = self.state().entries.get_mut(at) {
            entry.committed = entry.committed.max(Some(offset));
        }
    }

    /// The broker did not take it: the next commit brings it, or what has been stored since, again.
    pub(super) fn not_committed(&self, at: &TopicPartition) {
        if let Some(entry) = self.state().entries.get_mut(at) {
            entry.is_dirty = entry.stored.is_some();
        }
    }

    /// Stored and committed offset of a partition that is assigned.
    pub(super) fn of(&self, at: &TopicPartition) -> Option<(Option<i64>, Option<i64>)> {
        self.state().entries.get(at).map(|entry| (entry.stored.map(|stored| stored.offset), entry.committed))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn at() -> TopicPartition {
        TopicPartition::new("orders", 3)
    }

    fn position(offset: i64) -> Position {
        Position { offset, leader_epoch: -1 }
    }

    #[test]
    fn offsets_never_go_back() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1);
        assert!(offsets.store(&at(), 1, position(10)).expect("assigned"));
        assert!(!offsets.store(&at(), 1, position(5)).expect("assigned"));
        assert_eq!(offsets.take_dirty(), [(at(), position(10))]);
    }

    #[test]
    fn a_result_of_an_earlier_assignment_changes_nothing() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1);
        offsets.close(&at(), 1);
        offsets.open(&at(), 2);
        assert!(matches!(offsets.store(&at(), 1, position(10)), Err(Error::Fenced { .. })));
        assert!(!offsets.is_dirty());
    }

    #[test]
    fn what_the_broker_refused_is_brought_again() {
        let offsets = Offsets::default();
        offsets.open(&at(), 1);
        offsets.store(&at(), 1, position(10)).expect("assigned");
        offsets.take_dirty();
        assert!(!offsets.is_dirty());
        offsets.not_committed(&at());
        offsets.store(&at(), 1, position(12)).expect("assigned");
        assert_eq!(offsets.take_dirty(), [(at(), position(12))]);
    }
}
