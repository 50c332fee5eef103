//! A fair weighted semaphore: bounds the messages and bytes that are under way.
//!
//! First come, first served. A release gives the budget to the first waiter itself. So each wake-up lets one thread
//! continue, and no threads compete. A report thread releases once for each batch of reports.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Parker;
use crate::clock::{self, Deadline};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::{Error, Result};

/// A fair weighted semaphore over messages and bytes.
#[derive(Debug)]
pub struct Budget {
    state: Mutex<State>,
    messages_max: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    messages: usize,
    bytes: usize,
    waiting: VecDeque<Arc<Waiter>>,
    /// Unparked when nothing is under way any more.
    emptied: Option<Arc<Parker>>,
    is_closed: bool,
}

/// A waiting thread.
#[derive(Debug)]
struct Waiter {
    bytes: usize,
    parker: Arc<Parker>,
}

impl Budget {
    /// Makes a budget of this number of messages and bytes.
    pub fn new(messages_max: usize, bytes_max: usize) -> Self {
        Self { state: Mutex::new(State::default()), messages_max, bytes_max }
    }

    /// Acquires the budget for one message. Returns `false` if it is exhausted, or other threads wait. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: the budget is closed.
    pub fn try_acquire(&self, bytes: usize) -> Result<bool> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Closed { what: "producer" });
        }
        let fits = state.waiting.is_empty() && self.fits(&state, bytes);
        if fits {
            state.admit(bytes);
        }
        Ok(fits)
    }

    /// Acquires the budget for messages in order, until it is exhausted. Returns for how many. Does not block.
    ///
    /// # Errors
    /// [`Error::Closed`]: the budget is closed.
    pub fn try_acquire_many(&self, bytes: impl Iterator<Item = usize>) -> Result<usize> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Closed { what: "producer" });
        }
        if !state.waiting.is_empty() {
            return Ok(0);
        }
        let before = state.messages;
        for bytes in bytes {
            if !self.fits(&state, bytes) {
                break;
            }
            state.admit(bytes);
        }
        Ok(state.messages - before)
    }

    /// Acquires the budget for one message. Blocks the calling thread until there is room.
    ///
    /// # Errors
    /// [`Error::BudgetExhausted`]: the deadline passed first. [`Error::Closed`]: the budget was closed.
    pub fn acquire(&self, bytes: usize, deadline: &Deadline) -> Result<()> {
        self.acquire_on(&Arc::default(), bytes, deadline)
    }

    /// Acquires the budget as `acquire`, with a parker that was not used before.
    ///
    /// # Errors
    /// As for `acquire`.
    pub fn acquire_on(&self, parker: &Arc<Parker>, bytes: usize, deadline: &Deadline) -> Result<()> {
        let since = clock::real_now();
        if self.try_acquire(bytes)? {
            return Ok(());
        }
        let waiter = Arc::new(Waiter { bytes, parker: Arc::clone(parker) });
        {
            let mut state = lock(&self.state);
            if state.is_closed {
                // Closed since the check above: no thread would wake this one.
                return Err(Error::Closed { what: "producer" });
            }
            state.waiting.push_back(Arc::clone(&waiter));
            self.admit_waiting(state);
        }
        parker.park_until(deadline);
        let mut state = lock(&self.state);
        let index = state.waiting.iter().position(|each| Arc::ptr_eq(each, &waiter));
        match index {
            // The thread that removed this waiter has admitted it, even if the deadline passed meanwhile.
            None => Ok(()),
            Some(index) => {
                state.waiting.remove(index);
                if state.is_closed {
                    return Err(Error::Closed { what: "producer" });
                }
                let (messages, bytes) = (state.messages, state.bytes);
                // A large message in front may have held up smaller ones that fit.
                self.admit_waiting(state);
                Err(Error::BudgetExhausted { waited: clock::real_since(since), messages, bytes })
            }
        }
    }

    /// Releases the budget of messages, and admits waiters. Does not block.
    pub fn release(&self, messages: usize, bytes: usize) {
        let mut state = lock(&self.state);
        let is_acquired = messages <= state.messages && bytes <= state.bytes;
        assert!(is_acquired || !cfg!(any(debug_assertions, feature = "simulated")), "released more than was acquired");
        state.messages -= messages;
        state.bytes -= bytes;
        let emptied = if state.messages == 0 { state.emptied.take() } else { None };
        self.admit_waiting(state);
        if let Some(parker) = emptied {
            parker.unpark();
        }
    }

    /// Fails all acquisitions, now and later. A waiter that was admitted before goes on.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let waiting: Vec<_> = state.waiting.iter().map(Arc::clone).collect();
        drop(state);
        waiting.iter().for_each(|waiter| waiter.parker.unpark());
    }

    /// Waits until nothing is under way: after `close`, for those who acquired before. Returns `false` if the deadline
    /// passed first. Blocks the calling thread; one thread at a time.
    pub fn wait_empty(&self, deadline: &Deadline) -> bool {
        let parker = Arc::<Parker>::default();
        {
            let mut state = lock(&self.state);
            if state.messages == 0 {
                return true;
            }
            state.emptied = Some(Arc::clone(&parker));
        }
        parker.park_until(deadline)
    }

    /// Returns the messages and bytes that are under way.
    pub fn used(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.messages, state.bytes)
    }

    /// Returns whether a message fits. One larger than the whole budget fits when it is alone.
    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.messages < self.messages_max && (state.messages == 0 || state.bytes + bytes <= self.bytes_max)
    }

    /// Admits the first waiters that fit. Wakes them after the lock is released, because they take it at once.
    fn admit_waiting(&self, mut state: MutexGuard<'_, State>) {
        let mut admitted = Vec::new();
        while !state.is_closed && state.waiting.front().is_some_and(|waiter| self.fits(&state, waiter.bytes)) {
            let waiter = state.waiting.pop_front().expect("there is a first waiter");
            state.admit(waiter.bytes);
            admitted.push(waiter);
        }
        drop(state);
        admitted.iter().for_each(|waiter| waiter.parker.unpark());
    }
}

impl State {
    const fn admit(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn passed() -> Deadline {
        Deadline::after(Some(Duration::ZERO))
    }

    #[test]
    fn an_exhausted_budget_refuses_and_tells_its_use() {
        let budget = Budget::new(2, 100);
        assert!(budget.try_acquire(10).expect("open") && budget.try_acquire(10).expect("open"));
        match budget.acquire(10, &passed()) {
            Err(Error::BudgetExhausted { messages: 2, bytes: 20, .. }) => (),
            other => panic!("{other:?}"),
        }
        budget.release(1, 10);
        assert!(budget.try_acquire(10).expect("open"));
    }

    #[test]
    fn bytes_are_bounded_too_and_a_giant_is_admitted_alone() {
        let budget = Budget::new(10, 100);
        assert!(budget.try_acquire(1_000).expect("open"));
        assert!(!budget.try_acquire(1).expect("open"));
        budget.release(1, 1_000);
        assert!(budget.try_acquire(100).expect("open"));
        assert!(!budget.try_acquire(1).expect("open"));
    }

    #[test]
    fn of_many_messages_those_are_admitted_that_fit() {
        let budget = Budget::new(4, 100);
        assert_eq!(budget.try_acquire_many([10, 10].into_iter()).expect("open"), 2);
        assert_eq!(budget.try_acquire_many([10, 80, 10].into_iter()).expect("open"), 1);
        assert_eq!(budget.used(), (3, 30));
        assert_eq!(budget.try_acquire_many([10; 3].into_iter()).expect("open"), 1);
        assert_eq!(budget.try_acquire_many([10; 3].into_iter()).expect("open"), 0);
        budget.close();
        assert!(matches!(budget.try_acquire_many([10].into_iter()), Err(Error::Closed { .. })));
    }

    #[test]
    fn what_is_under_way_at_the_close_is_waited_for() {
        let budget = Arc::new(Budget::new(10, 100));
        assert!(budget.wait_empty(&passed()), "nothing is under way");
        assert_eq!(budget.try_acquire_many([10, 10].into_iter()).expect("open"), 2);
        budget.close();
        assert!(!budget.wait_empty(&passed()));
        let other = Arc::clone(&budget);
        let waiting = std::thread::spawn(move || other.wait_empty(&Deadline::NEVER));
        budget.release(1, 10);
        assert!(!waiting.is_finished(), "one is left");
        budget.release(1, 10);
        assert!(waiting.join().expect("no panic"));
    }

    #[test]
    fn waiters_are_admitted_in_the_order_in_which_they_came() {
        let budget = Arc::new(Budget::new(1, 100));
        budget.acquire(1, &passed()).expect("empty");
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..5)
            .map(|index| {
                let (budget_of_thread, order) = (Arc::clone(&budget), Arc::clone(&order));
                let thread = std::thread::spawn(move || {
                    budget_of_thread.acquire(1, &Deadline::NEVER).expect("open");
                    order.lock().expect("no panic").push(index);
                    budget_of_thread.release(1, 1);
                });
                while lock(&budget.state).waiting.len() <= index {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        budget.release(1, 1);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(*order.lock().expect("no panic"), [0, 1, 2, 3, 4]);
        assert_eq!(budget.used(), (0, 0));
    }

    #[test]
    fn closing_fails_those_that_wait() {
        let budget = Arc::new(Budget::new(0, 0));
        let waiting = std::thread::spawn({
            let budget = Arc::clone(&budget);
            move || budget.acquire(1, &Deadline::NEVER)
        });
        budget.close();
        assert!(matches!(waiting.join().expect("no panic"), Err(Error::Closed { .. })));
    }
}
