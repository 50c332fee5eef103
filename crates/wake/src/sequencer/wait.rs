//! Waits for room in the ring, and for entries to be appended.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::Instant;

use super::{OPEN, Registration, Sequencer, Sink};
use crate::clock::Deadline;
use crate::{Error, Result};
use crate::{Parker, Waker};

impl<T, S: Sink<T>> Sequencer<T, S> {
    #[cold]
    pub(super) fn wait_for_room(&self, parker: &Arc<Parker>, index: u64, deadline: &Deadline) -> Result<()> {
        self.wait_on(parker, index + 1 - self.capacity(), deadline).map_err(|error| match error {
            Error::TimedOut { waited, .. } => {
                let operation = format!("take index {index} of a full ring of {}{}", self.capacity(), self.because());
                Error::TimedOut { operation, waited }
            }
            other => other,
        })
    }

    /// Waits until `count` entries have been appended. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Closed`], [`Error::Poisoned`].
    #[inline]
    pub fn wait_for(&self, count: u64, deadline: &Deadline) -> Result<()> {
        if self.appended() >= count { Ok(()) } else { self.wait_on(&Arc::default(), count, deadline) }
    }

    /// Waits as `wait_for`, with a parker that was not used before.
    ///
    /// # Errors
    /// As for `wait_for`.
    pub fn wait_on(&self, parker: &Arc<Parker>, count: u64, deadline: &Deadline) -> Result<()> {
        let began = Instant::now();
        if let Some(registration) = self.register(count, Waker::Parker(Arc::clone(parker)))
            && !parker.park_until(deadline)
        {
            self.waits.unregister(registration);
        }
        if self.appended() >= count {
            return Ok(());
        }
        self.check_open()?;
        let operation = format!("wait for entry {}{}", count - 1, self.because());
        Err(Error::TimedOut { operation, waited: began.elapsed() })
    }

    fn because(&self) -> String {
        self.missing().map_or_else(String::new, |missing| {
            format!(" (entry {} has been missing for {:.3} s)", missing.index, missing.since.elapsed().as_secs_f64())
        })
    }

    /// Registers a waker, to be woken when `count` entries have been appended or the sequencer has ended. Returns
    /// `None` if that is so now. Does not block.
    pub fn register(&self, count: u64, waker: Waker) -> Option<Registration> {
        let registration = self.waits.register(count, waker);
        if self.appended() < count && self.state.load(Acquire) == OPEN {
            return Some(registration);
        }
        self.waits.unregister(registration);
        None
    }

    /// Removes a registration. Does not block.
    pub fn unregister(&self, registration: Registration) {
        self.waits.unregister(registration);
    }
}
