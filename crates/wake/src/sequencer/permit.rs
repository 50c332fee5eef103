//! The permit of an index that was taken.

use std::ops::Range;

use super::{Sequencer, Sink, Ticket};
use crate::Error;
use crate::clock::Deadline;

/// An index that its holder alone may fill. Dropped without an entry it becomes void, so it never leaves a gap.
#[must_use = "an index that is dropped is void"]
pub struct Permit<'a, T, S: Sink<T>> {
    sequencer: &'a Sequencer<T, S>,
    index: u64,
}

impl<'a, T, S: Sink<T>> Permit<'a, T, S> {
    pub(super) const fn new(sequencer: &'a Sequencer<T, S>, index: u64) -> Self {
        Self { sequencer, index }
    }

    /// Returns the index.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Returns the index and forgets the permit, which `permit_of` makes again.
    pub const fn into_index(self) -> u64 {
        let index = self.index;
        std::mem::forget(self);
        index
    }

    /// Deposits the entry. Never waits. May call the sink, because the thread that fills the gap appends for every
    /// thread.
    #[inline]
    pub fn deposit(self, entry: T) -> Ticket<'a, T, S> {
        let sequencer = self.sequencer;
        let index = self.into_index();
        sequencer.fill(index, entry);
        Ticket::new(sequencer, index)
    }

    /// Deposits the entry; if it was the missing one, the caller makes the run. Returns the indexes that the caller has
    /// appended: none, or its own and all that were waiting for it.
    #[inline]
    pub fn claim_run(self, entry: T) -> Range<u64> {
        let sequencer = self.sequencer;
        sequencer.fill(self.into_index(), entry)
    }

    /// Deposits the entry and waits until it has been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Closed`], [`Error::Poisoned`]. With the entry, if it was not appended; its index
    /// is void then. Without the entry, if another thread appends it at this moment, or has panicked over it.
    #[inline]
    pub fn append(self, entry: T, deadline: &Deadline) -> std::result::Result<(), (Error, Option<T>)> {
        let ticket = self.deposit(entry);
        ticket.wait(deadline).map_err(|error| (error, ticket.cancel()))
    }

    /// Marks the index as one without an entry: the run skips it. May call the sink, and never waits.
    pub fn void(self) {
        drop(self);
    }
}

impl<T, S: Sink<T>> Drop for Permit<'_, T, S> {
    fn drop(&mut self) {
        self.sequencer.void(self.index);
    }
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Makes the permit of an index that was taken before, and whose permit was forgotten by `into_index`.
    ///
    /// # Safety
    /// There is no other permit of this index, and none has ended in another way.
    pub const unsafe fn permit_of(&self, index: u64) -> Permit<'_, T, S> {
        Permit::new(self, index)
    }
}
