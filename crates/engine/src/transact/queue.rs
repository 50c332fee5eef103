//! The entries that wait for a transaction, first come, first served.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::entry::TransactionEntry;
use crate::Error;

/// An entry, as far as the queue looks at it.
pub(super) trait Queued {
    /// Returns how many records it has.
    fn records(&self) -> usize;
    /// Returns whether it gets a transaction of its own.
    fn is_alone(&self) -> bool;
    /// Gives it a transaction of its own.
    fn separate(&mut self);
    /// Returns whether its offset is recorded, which cannot be taken back.
    fn is_offset_recorded(&self) -> bool;
    /// Fails it.
    fn fail(&self, error: Error);
}

impl Queued for TransactionEntry {
    fn records(&self) -> usize {
        self.records.len()
    }

    fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn separate(&mut self) {
        self.is_alone = true;
    }

    fn is_offset_recorded(&self) -> bool {
        self.is_offset_recorded
    }

    fn fail(&self, error: Error) {
        Self::fail(self, error);
    }
}

/// The entries that wait for a transaction.
pub(super) struct EntryQueue<E = TransactionEntry> {
    waiting: Mutex<VecDeque<E>>,
    /// A transaction takes no further entry when it has this number of records.
    records_max: usize,
}

impl<E: Queued> EntryQueue<E> {
    pub(super) fn new(records_max: usize) -> Self {
        Self { waiting: Mutex::default(), records_max }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<E>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entries of the next transaction: those that wait, up to the limit.
    pub(super) fn take(&self) -> Vec<E> {
        let mut waiting = self.lock();
        let (mut taken, mut records) = (Vec::new(), 0);
        while let Some(entry) = waiting.front() {
            let is_alone = entry.is_alone();
            if !taken.is_empty() && (is_alone || records >= self.records_max) {
                break;
            }
            records += entry.records();
            taken.extend(waiting.pop_front());
            if is_alone {
                break;
            }
        }
        taken
    }

    /// Fails an entry whose record was refused. Where there are several entries, each that was refused gets a
    /// transaction of its own first, because a refusal may fail its neighbours. Returns the entries to go on with.
    pub(super) fn separate(&self, entries: Vec<E>, mut refused: HashMap<usize, Error>) -> Vec<E> {
        let is_certain = entries.len() == 1;
        let mut rest = Vec::new();
        let mut alone = Vec::new();
        for (index, mut entry) in entries.into_iter().enumerate() {
            match refused.remove(&index) {
                None => rest.push(entry),
                // A recorded offset cannot be taken back: the entry is tried until the broker takes it, or the
                // partition is revoked.
                Some(_) if entry.is_offset_recorded() => rest.push(entry),
                Some(error) if is_certain => entry.fail(error),
                Some(_) => {
                    entry.separate();
                    alone.push(entry);
                }
            }
        }
        let mut waiting = self.lock();
        alone.into_iter().rev().for_each(|entry| waiting.push_front(entry));
        rest
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Default)]
    struct Fake {
        name: &'static str,
        records: usize,
        is_alone: bool,
        is_offset_recorded: bool,
        has_failed: Cell<bool>,
    }

    impl Queued for Fake {
        fn records(&self) -> usize {
            self.records
        }

        fn is_alone(&self) -> bool {
            self.is_alone
        }

        fn separate(&mut self) {
            self.is_alone = true;
        }

        fn is_offset_recorded(&self) -> bool {
            self.is_offset_recorded
        }

        fn fail(&self, _error: Error) {
            assert!(!self.has_failed.replace(true), "an entry fails once");
            FAILED.with_borrow_mut(|failed| failed.push(self.name));
        }
    }

    thread_local! {
        static FAILED: std::cell::RefCell<Vec<&'static str>> = const { std::cell::RefCell::new(Vec::new()) };
    }

    fn entry(name: &'static str, records: usize) -> Fake {
        Fake { name, records, ..Fake::default() }
    }

    fn queue(entries: impl IntoIterator<Item = Fake>) -> EntryQueue<Fake> {
        let queue = EntryQueue::new(3);
        queue.lock().extend(entries);
        queue
    }

    fn names(entries: &[Fake]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.name).collect()
    }

    fn refused(indexes: impl IntoIterator<Item = usize>) -> HashMap<usize, Error> {
        indexes.into_iter().map(|index| (index, Error::Invalid { reason: "too large".into() })).collect()
    }

    #[test]
    fn a_transaction_takes_the_entries_that_wait_up_to_its_limit_of_records() {
        let queue = queue([entry("a", 2), entry("b", 2), entry("c", 1), entry("d", 9)]);
        assert_eq!(names(&queue.take()), ["a", "b"]);
        assert_eq!(names(&queue.take()), ["c", "d"], "an entry is not divided");
        assert!(queue.take().is_empty());
    }

    #[test]
    fn an_entry_that_is_alone_gets_a_transaction_of_its_own() {
        let alone = Fake { is_alone: true, ..entry("b", 1) };
        let queue = queue([entry("a", 1), alone, entry("c", 1)]);
        assert_eq!(names(&queue.take()), ["a"]);
        assert_eq!(names(&queue.take()), ["b"]);
        assert_eq!(names(&queue.take()), ["c"]);
    }

    #[test]
    fn of_several_entries_those_that_were_refused_are_tried_alone_and_before_others() {
        let queue = queue([entry("later", 1)]);
        let rest = queue.separate(vec![entry("a", 1), entry("b", 1), entry("c", 1)], refused([0, 2]));
        assert_eq!(names(&rest), ["b"]);
        assert_eq!(names(&queue.take()), ["a"]);
        assert_eq!(names(&queue.take()), ["c"]);
        assert_eq!(names(&queue.take()), ["later"]);
    }

    #[test]
    fn an_entry_that_was_refused_alone_fails() {
        let queue = queue([]);
        assert!(queue.separate(vec![entry("a", 1)], refused([0])).is_empty());
        assert_eq!(FAILED.take(), ["a"]);
        assert!(queue.take().is_empty());
    }

    #[test]
    fn an_entry_whose_offset_is_recorded_is_tried_again() {
        let recorded = Fake { is_offset_recorded: true, ..entry("a", 1) };
        assert_eq!(names(&queue([]).separate(vec![recorded], refused([0]))), ["a"]);
    }
}
