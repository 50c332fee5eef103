//! Reports of the missing index that later entries wait for.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Instant;

use super::slot::{FILLED, TAKEN, TOKEN};
use super::{Sequencer, Sink};
use crate::sync::lock;

/// An index that has not come though later ones have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The index.
    pub index: u64,
    /// The moment since when a later entry waits for it.
    pub since: Instant,
}

impl<T, S: Sink<T>> Sequencer<T, S> {
    /// Returns the index that has not come though later ones have, if there is one. Does not block.
    pub fn missing(&self) -> Option<Missing> {
        let index = self.appended();
        let (slot, lap) = self.slot(index);
        if slot.word.load(Acquire) & !TAKEN != lap | TOKEN {
            return None; // A run is under way.
        }
        let mut gap = lock(&self.gap);
        if let Some(noted) = gap.filter(|noted| noted.index == index) {
            return Some(noted);
        }
        let has_come = |later| {
            let (slot, lap) = self.slot(later);
            slot.word.load(Relaxed) == lap | TAKEN | FILLED
        };
        if (index + 1..index + self.capacity()).any(has_come) {
            *gap = Some(Missing { index, since: Instant::now() });
            return *gap;
        }
        None
    }

    /// Notes the time since when an index is missing; the first entry that arrives behind it calls this.
    #[inline]
    pub(super) fn note_gap(&self) {
        let resting = self.resting.load(Relaxed);
        if self.noted.load(Relaxed) != resting {
            self.noted.store(resting, Relaxed);
            *lock(&self.gap) = Some(Missing { index: resting, since: Instant::now() });
        }
    }
}
