//! The ticket of an entry that was deposited.

use super::{Sequencer, Sink};
use crate::Result;
use crate::clock::Deadline;

/// A deposited entry, to wait until it has been appended or to take it back.
#[derive(Debug)]
pub struct Ticket<'a, T, S: Sink<T>> {
    sequencer: &'a Sequencer<T, S>,
    index: u64,
}

impl<'a, T, S: Sink<T>> Ticket<'a, T, S> {
    pub(super) const fn new(sequencer: &'a Sequencer<T, S>, index: u64) -> Self {
        Self { sequencer, index }
    }

    /// Returns the index of the entry.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Returns whether the entry has been appended. Does not block.
    pub fn is_appended(&self) -> bool {
        self.sequencer.appended() > self.index
    }

    /// Waits until the entry has been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut): not in time, but it may still be appended.
    /// [`Error::Closed`](crate::Error::Closed), [`Error::Poisoned`](crate::Error::Poisoned).
    #[inline]
    pub fn wait(&self, deadline: &Deadline) -> Result<()> {
        self.sequencer.wait_for(self.index + 1, deadline)
    }

    /// Takes the entry back and makes its index void; `None` if it has been appended, or is about to be.
    pub fn cancel(self) -> Option<T> {
        self.sequencer.withdraw(self.index)
    }
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Makes the ticket of an entry that was deposited.
    ///
    /// # Safety
    /// There is no other ticket of this entry.
    pub const unsafe fn ticket_of(&self, index: u64) -> Ticket<'_, T, S> {
        Ticket::new(self, index)
    }
}
