//! The moment at which a number of entries has been appended, as an object to wait for.

use std::time::Instant;

use super::{Registration, Sequencer, Sink};
use crate::clock::Deadline;
use crate::{Awaited, Error, Result, Waker};

/// The moment at which a number of entries has been appended or skipped.
pub struct Count<'a, T, S: Sink<T>> {
    sequencer: &'a Sequencer<T, S>,
    count: u64,
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Returns the moment at which this number of entries has been appended or skipped.
    pub const fn count(&self, count: u64) -> Count<'_, T, S> {
        Count { sequencer: self, count }
    }

    /// Returns the moment at which there is room for an index; `None` if there is room now.
    #[inline]
    pub fn room_for(&self, index: u64) -> Option<Count<'_, T, S>> {
        let is_full = index >= self.appended() + self.capacity();
        is_full.then(|| self.count(index - self.capacity() + 1))
    }
}

impl<T, S: Sink<T>> Count<'_, T, S> {
    /// Checks that the moment has come, for a wait that began at `began`. Does not block.
    ///
    /// # Errors
    /// As for `Sequencer::wait_for`.
    pub fn check(&self, began: Instant) -> Result<()> {
        match self.sequencer.wait_for(self.count, &Deadline::at(Instant::now())) {
            Err(Error::TimedOut { operation, .. }) => Err(Error::TimedOut { operation, waited: began.elapsed() }),
            other => other,
        }
    }
}

impl<T, S: Sink<T>> Awaited for Count<'_, T, S>
where
    Sequencer<T, S>: Sync,
{
    type Registration = Registration;

    fn is_ready(&self) -> bool {
        self.sequencer.appended() >= self.count || self.sequencer.check_open().is_err()
    }

    fn register(&self, waker: Waker) -> Option<Registration> {
        self.sequencer.register(self.count, waker)
    }

    fn unregister(&self, registration: Registration) {
        self.sequencer.unregister(registration);
    }

    fn block(&self, deadline: &Deadline) {
        // The caller checks again why the wait ended.
        drop(self.sequencer.wait_for(self.count, deadline));
    }
}
