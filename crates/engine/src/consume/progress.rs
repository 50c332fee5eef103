//! The progress of a worker that handles the messages of a job one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{SharedJob, Turn};

/// The number of messages after a turn that has ended early.
const OVER: usize = usize::MAX;

/// The progress of a worker through the messages of a job. The worker moves it on, any thread reads it.
pub(super) struct Progress {
    /// The number of messages that were given; `OVER` when the turn has ended before the last one.
    given: AtomicUsize,
    /// The place of the job's first message in the batch.
    first: usize,
    /// The places in the job of the messages that are given; `None` if they are all of its messages.
    picked: Option<Arc<[usize]>>,
}

/// The turn of a worker that handles the messages of a job one by one.
pub struct Turns {
    job: SharedJob,
    turn: Turn,
    progress: Arc<Progress>,
}

impl Turns {
    pub(super) const fn new(job: SharedJob, turn: Turn, progress: Arc<Progress>) -> Self {
        Self { job, turn, progress }
    }

    /// Returns what the worker does next with this number of messages. Only the job's worker calls it.
    pub fn next(&self, messages: usize) -> Step {
        self.progress.next(messages, &self.turn)
    }

    /// Leaves the messages from this offset on to a later job.
    pub fn leave_from(&self, offset: i64) {
        self.job.leave_from(offset);
    }
}

/// The next step of a worker.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Handle the message at this place.
    Handle(usize),
    /// Leave the messages from this place on to a later job.
    Leave(usize),
    /// All messages were given, or left.
    End,
}

impl Progress {
    /// Begins at a job's first message, which has this place in its batch.
    pub(super) const fn new(first: usize, picked: Option<Arc<[usize]>>) -> Self {
        Self { given: AtomicUsize::new(0), first, picked }
    }

    fn next(&self, messages: usize, turn: &Turn) -> Step {
        let index = self.given.load(Ordering::Relaxed);
        if index >= messages {
            return Step::End;
        }
        if index > 0 && turn.is_over(index) {
            self.given.store(OVER, Ordering::Relaxed);
            return Step::Leave(index);
        }
        self.given.store(index + 1, Ordering::Release); // The effects of the handler come before it.
        Step::Handle(index)
    }

    /// Returns how many messages of the batch are done: those before the one that was given last. 0 at the end of a
    /// turn, where the worker records it.
    pub(super) fn passed(&self) -> usize {
        let given = self.given.load(Ordering::Acquire);
        match given.checked_sub(2).filter(|_| given != OVER) {
            None => 0,
            Some(last) => self.first + self.picked.as_ref().map_or(last, |picked| picked[last]) + 1,
        }
    }
}
