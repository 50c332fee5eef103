//! Leader and followers: of the threads that wait for answers from one queue, one serves the queue for all.
//!
//! A waiting thread that finds no leader becomes the leader. It serves the queue until its own answer has come, and
//! then hands the leadership to the follower that has waited longest. So an answer that comes while one thread waits is
//! received by this thread itself, without a switch of threads. The pattern is that of Schmidt, O'Ryan, Kircher,
//! Pyarali and Buschmann (2000).

use std::collections::VecDeque;

use crate::clock::Deadline;
use crate::sync::{Mutex, lock};
use crate::{Parker, Waker};

/// The leadership over one queue.
#[derive(Debug, Default)]
pub struct Leadership {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_led: bool,
    /// The follower that was made the leader and has not noticed yet.
    granted: Option<u64>,
    followers: VecDeque<(u64, Waker)>,
    numbers: u64,
}

/// The task of a waiting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To serve the queue.
    Leader,
    /// To wait for its answer or for the leadership, whichever comes first.
    Follower(u64),
}

impl Leadership {
    /// Makes the caller the leader, or a follower if there is a leader. A follower's `waker` is woken when it becomes
    /// the leader. Does not block.
    pub fn join(&self, waker: Waker) -> Place {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_led, true) {
            return Place::Leader;
        }
        state.numbers += 1;
        let number = state.numbers;
        state.followers.push_back((number, waker));
        Place::Follower(number)
    }

    /// Makes the caller the leader if there is none; it does not become a follower otherwise. Returns whether it leads.
    pub fn try_take(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).is_led, true)
    }

    /// Returns whether there is a leader, or a follower that was made the leader.
    pub fn is_led(&self) -> bool {
        lock(&self.state).is_led
    }

    /// Returns a place as it is now: a follower may have become the leader.
    pub fn current(&self, place: Place) -> Place {
        match place {
            Place::Follower(number) if lock(&self.state).granted == Some(number) => Place::Leader,
            place => place,
        }
    }

    /// Leaves a place. A leader hands the leadership to the first follower. Returns whether the queue has lost its
    /// leader. Does not block.
    pub fn leave(&self, place: Place) -> bool {
        let mut state = lock(&self.state);
        if let Place::Follower(number) = place
            && state.granted != Some(number)
        {
            state.followers.retain(|(each, _)| *each != number);
            return false;
        }
        let next = state.followers.pop_front();
        state.granted = next.as_ref().map(|(number, _)| *number);
        state.is_led = next.is_some();
        drop(state);
        let is_orphaned = next.is_none();
        if let Some((_, waker)) = next {
            waker.wake();
        }
        is_orphaned
    }
}

/// A thread's wait for one answer from a queue under a `Leadership`. Dropped, it leaves its place.
pub trait ServingWait {
    /// Serves the queue, if this thread leads, until the answer is there or the deadline passes. Returns whether the
    /// answer is there. May return early: a follower then waits for its waker and calls this again. Blocks a leader.
    fn step(&self, deadline: &Deadline) -> bool;

    /// Returns whether another thread leads.
    fn is_follower(&self) -> bool;

    /// Waits until the answer is there or the deadline passes. Returns whether the answer is there. `parker` is the one
    /// whose waker the wait was begun with. A follower sleeps until `step_at` at the latest, if `step` has to act at a
    /// moment before the deadline. Blocks the calling thread.
    fn wait(&self, parker: &Parker, deadline: &Deadline, step_at: &Deadline) -> bool {
        loop {
            if self.step(deadline) {
                return true;
            }
            if deadline.has_passed() {
                return false;
            }
            if self.is_follower() {
                parker.park_until(step_at);
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn waker() -> Waker {
        Waker::Parker(Arc::new(Parker::default()))
    }

    #[test]
    fn the_leadership_goes_to_the_followers_in_order() {
        let leadership = Leadership::default();
        let first = leadership.join(waker());
        let (second, third) = (leadership.join(waker()), leadership.join(waker()));
        assert_eq!(first, Place::Leader);
        assert!(!leadership.try_take());
        assert!(!leadership.leave(first));
        assert_eq!((leadership.current(second), leadership.current(third)), (Place::Leader, third));
        assert!(!leadership.leave(second));
        assert_eq!(leadership.current(third), Place::Leader);
        assert!(leadership.leave(third));
        assert!(!leadership.is_led());
    }

    #[test]
    fn a_follower_that_left_does_not_become_the_leader() {
        let leadership = Leadership::default();
        let first = leadership.join(waker());
        let (second, third) = (leadership.join(waker()), leadership.join(waker()));
        assert!(!leadership.leave(second));
        assert!(!leadership.leave(first));
        assert_eq!(leadership.current(third), Place::Leader);
    }

    #[test]
    fn a_new_leader_that_has_its_answer_hands_the_leadership_on() {
        let leadership = Leadership::default();
        let (first, second) = (leadership.join(waker()), leadership.join(waker()));
        assert!(!leadership.leave(first));
        assert!(leadership.leave(second));
        assert!(leadership.try_take());
    }

    /// A wait whose answer comes with the given step.
    struct Steps {
        left: Cell<u32>,
        is_follower: bool,
    }

    impl ServingWait for Steps {
        fn step(&self, _deadline: &Deadline) -> bool {
            self.left.set(self.left.get() - 1);
            self.left.get() == 0
        }

        fn is_follower(&self) -> bool {
            self.is_follower
        }
    }

    #[test]
    fn a_leader_serves_until_its_answer_comes_and_never_parks() {
        let wait = Steps { left: Cell::new(3), is_follower: false };
        assert!(wait.wait(&Parker::default(), &Deadline::NEVER, &Deadline::NEVER));
        assert_eq!(wait.left.get(), 0);
    }

    #[test]
    fn a_follower_steps_again_when_it_is_woken() {
        let (wait, parker) = (Steps { left: Cell::new(2), is_follower: true }, Parker::default());
        parker.unpark();
        assert!(wait.wait(&parker, &Deadline::NEVER, &Deadline::NEVER));
    }

    #[test]
    fn a_wait_ends_with_its_deadline_after_one_step() {
        let (wait, passed) = (Steps { left: Cell::new(9), is_follower: true }, Deadline::after(Some(Duration::ZERO)));
        assert!(!wait.wait(&Parker::default(), &passed, &passed));
        assert_eq!(wait.left.get(), 8);
    }

    #[test]
    fn a_follower_steps_at_the_moment_that_its_step_asks_for() {
        let (wait, soon) = (Steps { left: Cell::new(2), is_follower: true }, Deadline::after(Some(Duration::ZERO)));
        assert!(wait.wait(&Parker::default(), &Deadline::NEVER, &soon));
    }
}
