//! A parker: one thread sleeps in it until another thread wakes exactly this one.
//!
//! It has a token, as `std::thread::park` has: `unpark` leaves it, `park_until` takes it or waits for it. Unlike the
//! standard library's, the token belongs to the parker and not to the thread. So a stray `unpark` of other code cannot
//! end the wait, and a model can run it. Spurious wake-ups stay in the loop: only a token or the deadline ends the
//! wait.

use std::sync::PoisonError;

use crate::clock::Deadline;
use crate::sync::{Condvar, Mutex, lock};

/// A place where one thread sleeps until another thread wakes exactly this one.
#[derive(Debug)]
pub struct Parker {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_token: bool,
    /// The number of threads that wait for the token: one at most, but for a moment. Without one, `unpark` saves the
    /// system call.
    waiting: usize,
}

impl Default for Parker {
    fn default() -> Self {
        Self { state: Mutex::new(State::default()), arrived: Condvar::new() }
    }
}

impl Parker {
    /// Waits for the token and takes it. Returns `false` if the deadline passed first. Blocks the calling thread.
    pub fn park_until(&self, deadline: &Deadline) -> bool {
        let mut state = lock(&self.state);
        while !state.has_token {
            if deadline.has_passed() {
                return false;
            }
            state.waiting += 1;
            state = match deadline.remaining() {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.waiting -= 1;
        }
        state.has_token = false;
        true
    }

    /// Leaves the token, and wakes the waiting thread if there is one. Does not block.
    pub fn unpark(&self) {
        let mut state = lock(&self.state);
        state.has_token = true;
        let waiting = state.waiting;
        drop(state);
        if waiting > 0 {
            self.arrived.notify_one();
        }
    }

    /// Removes a token that came too late for the last wait, so that it does not end the next one.
    pub fn clear(&self) {
        lock(&self.state).has_token = false;
    }

    /// Wakes the thread to check its deadline, and leaves no token: a model's "time has passed".
    #[cfg(feature = "model")]
    pub fn recheck_deadline(&self) {
        let state = lock(&self.state);
        self.arrived.notify_one();
        drop(state);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn passed() -> Deadline {
        Deadline::after(Some(Duration::ZERO))
    }

    #[test]
    fn a_token_ends_one_wait() {
        let parker = Parker::default();
        parker.unpark();
        parker.unpark();
        assert!(parker.park_until(&passed()), "the token ends the wait even after the deadline");
        assert!(!parker.park_until(&passed()));
    }

    #[test]
    fn a_cleared_token_ends_no_wait() {
        let parker = Parker::default();
        parker.unpark();
        parker.clear();
        assert!(!parker.park_until(&passed()));
    }

    #[test]
    fn a_waiting_thread_is_woken() {
        let parker = Arc::new(Parker::default());
        let waiting = std::thread::spawn({
            let parker = Arc::clone(&parker);
            move || parker.park_until(&Deadline::NEVER)
        });
        while lock(&parker.state).waiting == 0 {
            std::thread::yield_now();
        }
        parker.unpark();
        assert!(waiting.join().expect("no panic"));
    }
}
