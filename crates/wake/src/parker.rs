//! A place where one thread sleeps until somebody means exactly that thread.
//!
//! A token, as in `std::thread::park`: `unpark` leaves it, `park_until` takes it or waits for it. Unlike the standard
//! library's, the token belongs to the place and not to the thread, so a stray `unpark` of other code can't be mistaken
//! for ours, and a model can run it. Spurious wake-ups end in the loop; only a token or the deadline ends the wait.

use std::sync::PoisonError;

use crate::clock::Deadline;
use crate::sync::{Condvar, Mutex, lock};

/// A place where one thread sleeps until somebody means exactly that thread.
#[derive(Debug)]
pub struct Parker {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_token: bool,
    /// How many threads wait for it: one at most, but for a moment; where none does, to wake it would be a system call for nothing.
    waiting: usize,
}

impl Default for Parker {
    fn default() -> Self {
        Self { state: Mutex::new(State::default()), arrived: Condvar::new() }
    }
}

impl Parker {
    /// Waits for the token and takes it; `false` when the deadline passed first.
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

    /// Leaves the token; wakes the thread that waits, if one does.
    pub fn unpark(&self) {
        let mut state = lock(&self.state);
        state.has_token = true;
        let waiting = state.waiting;
        drop(state);
        if waiting > 0 {
            self.arrived.notify_one();
        }
    }

    /// Takes a token that somebody left too late, so that the next wait begins clean.
    pub fn clear(&self) {
        lock(&self.state).has_token = false;
    }

    /// Lets a model say "time has passed": wakes the thread to look at its deadline, leaves no token.
    #[cfg(feature = "model")]
    pub fn look_at_the_clock(&self) {
        let state = lock(&self.state);
        self.arrived.notify_one();
        drop(state);
    }
}
