//! Registrations of waiters for a count. Each waits for its own number, and is woken when that is reached, not earlier.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::AcqRel;

use crate::Waker;
use crate::sync::{AtomicU64, Mutex, lock};

/// A waker's registration, by which it is removed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Registration {
    count: u64,
    number: u64,
}

/// The waiters for a count, and the abandoned indexes.
#[derive(Debug)]
pub(super) struct Waits {
    /// The lowest count that is waited for, `u64::MAX` if there is no waiter. Changed under the lock. Each change and
    /// each read is a read-modify-write, so the second of two accesses sees what happened before the first.
    lowest: AtomicU64,
    /// The number of abandoned indexes.
    abandoned: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Registration, Waker>,
    numbers: u64,
    /// Indexes whose claims timed out before there was room for them.
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
    /// Registers a waker for a count. The caller then checks the count, which may have been reached before.
    pub(super) fn register(&self, count: u64, waker: Waker) -> Registration {
        let mut state = lock(&self.state);
        state.numbers += 1;
        let registration = Registration { count, number: state.numbers };
        state.waiting.insert(registration, waker);
        self.lowest.swap(state.lowest(), AcqRel);
        registration
    }

    /// Removes a registration, if it is still there.
    pub(super) fn unregister(&self, registration: Registration) {
        let mut state = lock(&self.state);
        if state.waiting.remove(&registration).is_some() {
            self.lowest.swap(state.lowest(), AcqRel);
        }
    }

    /// Wakes all waiters for this count or a lower one; the count has been published.
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

    /// Notes an index whose claim timed out before there was room for it.
    pub(super) fn abandon(&self, index: u64) {
        let mut state = lock(&self.state);
        state.abandoned.insert(index);
        self.abandoned.swap(state.abandoned.len() as u64, AcqRel);
    }

    /// Returns whether there are abandoned indexes.
    #[inline]
    pub(super) fn has_abandoned(&self) -> bool {
        self.abandoned.fetch_add(0, AcqRel) > 0
    }

    /// Takes the first abandoned index before a limit.
    pub(super) fn abandoned_before(&self, limit: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        let first = *state.abandoned.first().filter(|first| **first < limit)?;
        state.abandoned.remove(&first);
        self.abandoned.swap(state.abandoned.len() as u64, AcqRel);
        Some(first)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::Parker;
    use crate::clock::Deadline;

    fn is_woken(parker: &Parker) -> bool {
        parker.park_until(&Deadline::after(Some(Duration::ZERO)))
    }

    #[test]
    fn a_waiter_is_woken_at_its_count_and_once() {
        let (waits, parkers) = (Waits::default(), [Arc::new(Parker::default()), Arc::new(Parker::default())]);
        for (parker, count) in parkers.iter().zip([3, 5]) {
            waits.register(count, Waker::Parker(Arc::clone(parker)));
        }
        waits.wake(2);
        assert!(!is_woken(&parkers[0]));
        waits.wake(3);
        assert_eq!([is_woken(&parkers[0]), is_woken(&parkers[1])], [true, false]);
        waits.wake_all();
        assert_eq!([is_woken(&parkers[0]), is_woken(&parkers[1])], [false, true]);
    }

    #[test]
    fn a_removed_registration_is_not_woken() {
        let (waits, parker) = (Waits::default(), Arc::new(Parker::default()));
        let registration = waits.register(1, Waker::Parker(Arc::clone(&parker)));
        waits.unregister(registration);
        waits.wake(1);
        assert!(!is_woken(&parker));
    }

    #[test]
    fn abandoned_indexes_come_in_order_once_they_have_room() {
        let waits = Waits::default();
        waits.abandon(7);
        waits.abandon(4);
        assert!(waits.has_abandoned());
        assert_eq!([waits.abandoned_before(4), waits.abandoned_before(8)], [None, Some(4)]);
        assert_eq!([waits.abandoned_before(8), waits.abandoned_before(8)], [Some(7), None]);
        assert!(!waits.has_abandoned());
    }
}
