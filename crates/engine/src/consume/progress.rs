//! The progress of a worker that handles the messages of a job one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{SharedJob, Turn};

/// The progress of a worker through the messages of a job. The worker moves it on, any thread reads it, and a thread
/// that takes lanes of the job away limits it.
pub(super) struct Progress {
    /// `given` and `limit`, so that both change together.
    state: AtomicU64,
    /// The turn has ended before the last message.
    is_over: AtomicBool,
    /// The place of the job's first message in the batch.
    first: usize,
    /// The places in the job of the messages that are given; `None` if they are all of its messages.
    picked: Option<Arc<[usize]>>,
}

/// The number of messages that were given, and the most that may be.
#[derive(Clone, Copy)]
struct Given {
    given: u32,
    limit: u32,
}

impl Given {
    const fn of(state: u64) -> Self {
        Self { given: (state >> 32) as u32, limit: state as u32 }
    }

    const fn state(self) -> u64 {
        (self.given as u64) << 32 | self.limit as u64
    }
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
        let state = AtomicU64::new(Given { given: 0, limit: u32::MAX }.state());
        Self { state, is_over: AtomicBool::new(false), first, picked }
    }

    fn next(&self, messages: usize, turn: &Turn) -> Step {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let Given { given, limit } = Given::of(state);
            let index = given as usize;
            if index >= messages.min(limit as usize) {
                return Step::End;
            }
            if index > 0 && turn.is_over(index) {
                self.is_over.store(true, Ordering::Release);
                return Step::Leave(index);
            }
            let next = Given { given: given + 1, limit }.state();
            // The effects of the handler come before it.
            match self.state.compare_exchange_weak(state, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Step::Handle(index),
                Err(now) => state = now,
            }
        }
    }

    /// Returns how many messages of the batch are done: those before the one that was given last. 0 at the end of a
    /// turn, where the worker records it.
    pub(super) fn passed(&self) -> usize {
        let given = Given::of(self.state.load(Ordering::Acquire)).given as usize;
        match given.checked_sub(2).filter(|_| !self.is_over.load(Ordering::Acquire)) {
            None => 0,
            Some(last) => self.place(last) + 1,
        }
    }

    /// Ends the worker's messages at `end_of` the place in the batch of the one that it handles now. Returns that end.
    pub(super) fn limit(&self, end_of: impl Fn(usize) -> usize) -> usize {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            let Given { given, .. } = Given::of(state);
            let end = end_of(self.place((given as usize).saturating_sub(1)));
            let limit = self.picked.as_ref().map_or(end.saturating_sub(self.first), |picked| {
                picked.partition_point(|place| self.first + place < end)
            });
            let next = Given { given, limit: u32::try_from(limit).unwrap_or(u32::MAX) }.state();
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return end,
                Err(now) => state = now,
            }
        }
    }

    /// Returns the place in the batch of a message that is given.
    fn place(&self, index: usize) -> usize {
        self.first + self.picked.as_ref().map_or(index, |picked| picked.get(index).copied().unwrap_or(index))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn given(progress: &Progress, count: u32) {
        let Given { limit, .. } = Given::of(progress.state.load(Ordering::Relaxed));
        progress.state.store(Given { given: count, limit }.state(), Ordering::Relaxed);
    }

    fn limit_of(progress: &Progress) -> u32 {
        Given::of(progress.state.load(Ordering::Relaxed)).limit
    }

    #[test]
    fn the_message_that_was_given_last_is_not_passed() {
        let progress = Progress::new(10, None);
        assert_eq!(progress.passed(), 0);
        given(&progress, 3);
        assert_eq!(progress.passed(), 12);
    }

    #[test]
    fn of_picked_messages_the_places_count() {
        let progress = Progress::new(10, Some(Arc::from([0, 4, 5])));
        given(&progress, 3);
        assert_eq!(progress.passed(), 15);
    }

    #[test]
    fn a_worker_is_limited_to_the_end_of_the_lane_that_it_is_in() {
        let progress = Progress::new(10, None);
        given(&progress, 3);
        let end = progress.limit(|place| {
            assert_eq!(place, 12);
            15
        });
        assert_eq!((end, limit_of(&progress)), (15, 5));
    }

    #[test]
    fn a_limit_counts_the_picked_messages_before_it() {
        let progress = Progress::new(10, Some(Arc::from([0, 4, 5, 9])));
        given(&progress, 1);
        assert_eq!(progress.limit(|_| 15), 15);
        assert_eq!(limit_of(&progress), 2);
    }
}
