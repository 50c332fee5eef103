//! Those who wait until a count has come far enough, each for its own number, and woken when that is reached and not before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::AcqRel;

use crate::Waker;
use crate::sync::{AtomicU64, Mutex, lock};

/// Names who waits, as long as it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Registration {
    count: u64,
    number: u64,
}

/// Those who wait until a count has come far enough.
#[derive(Debug)]
pub(super) struct Waits {
    /// The least that anybody waits for, half of what is left of the count's range when nobody does. Changed under the lock,
    /// and always by a read-modify-write, as is every look at it: so a look that comes second sees the first one's past.
    lowest: AtomicU64,
    /// How many indexes are abandoned.
    abandoned: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Registration, Waker>,
    numbers: u64,
    /// Indexes whose owners gave up before there was room for them.
    abandoned: BTreeSet<u64>,
}

impl State {
    fn lowest(&self) -> u64 {
        self.waiting.first_key_value().map_or(u64::MAX, |(first, _)| first.count)
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self { lowest: AtomicU64::new(u64::MAX), abandoned: AtomicU64::new(0), state: Mutex::new(State::default()) }
    }
}

impl Waits {
    /// Has a waker woken when the count has come so far. The caller then looks at the count: it may have come there before.
    pub(super) fn register(&self, count: u64, waker: Waker) -> Registration {
        let mut state = lock(&self.state);
        state.numbers += 1;
        let registration = Registration { count, number: state.numbers };
        state.waiting.insert(registration, waker);
        self.lowest.swap(state.lowest(), AcqRel);
        registration
    }

    /// Takes a registration back, if it is still there.
    pub(super) fn unregister(&self, registration: Registration) {
        let mut state = lock(&self.state);
        if state.waiting.remove(&registration).is_some() {
            self.lowest.swap(state.lowest(), AcqRel);
        }
    }

    /// Wakes all who wait for no more than this count, which has been published.
    #[inline]
    pub(super) fn wake(&self, count: u64) {
        if self.lowest.fetch_add(0, AcqRel) <= count {
            self.wake_up_to(count);
        }
    }

    pub(super) fn wake_all(&self) {
        self.wake_up_to(u64::MAX);
    }

    #[cold]
    fn wake_up_to(&self, count: u64) {
        let mut state = lock(&self.state);
        let beyond = count.saturating_add(1);
        let later = state.waiting.split_off(&Registration { count: beyond, number: 0 });
        let due = std::mem::replace(&mut state.waiting, later);
        self.lowest.swap(state.lowest(), AcqRel);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    /// Notes an index whose owner gave up before there was room for it.
    pub(super) fn abandon(&self, index: u64) {
        let mut state = lock(&self.state);
        state.abandoned.insert(index);
        self.abandoned.swap(state.abandoned.len() as u64, AcqRel);
    }

    /// Whether there are such indexes.
    #[inline]
    pub(super) fn has_abandoned(&self) -> bool {
        self.abandoned.fetch_add(0, AcqRel) > 0
    }

    /// Takes the first such index before a limit.
    pub(super) fn abandoned_before(&self, limit: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let first = *state.abandoned.first().filter(|first| **first < limit)?;
        state.abandoned.remove(&first);
        self.abandoned.swap(state.abandoned.len() as u64, AcqRel);
        Some(first)
    }
}
