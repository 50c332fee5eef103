//! Of those who wait for answers that come to one queue, one serves the queue for all: leader and followers.
//!
//! Whoever waits and finds nobody leading leads: it serves the queue until its own answer has come, and hands the lead on to
//! the first in line. So an answer that comes while one thread waits is seen by that very thread, and costs no change of
//! threads. The pattern is that of Schmidt, O'Ryan, Kircher, Pyarali and Buschmann (2000).

use std::collections::VecDeque;

use crate::Waker;
use crate::sync::{Mutex, lock};

/// Who serves a queue for all who wait for it.
#[derive(Debug, Default)]
pub struct Lead {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_led: bool,
    /// Who was handed the lead and has not come for it yet.
    granted: Option<u64>,
    line: VecDeque<(u64, Waker)>,
    numbers: u64,
}

/// What somebody who waits has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Serve.
    Leader,
    /// Wait for the answer or for the lead, whichever comes first.
    Follower(u64),
}

impl Lead {
    /// Takes the lead, or a place in line: then `waker` is woken when the lead is handed over.
    pub fn join(&self, waker: Waker) -> Place {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_led, true) {
            return Place::Leader;
        }
        state.numbers += 1;
        let number = state.numbers;
        state.line.push_back((number, waker));
        Place::Follower(number)
    }

    /// Takes the lead if nobody has it, and no place in line otherwise.
    pub fn try_take(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).is_led, true)
    }

    /// Whether somebody serves, or is about to.
    pub fn is_led(&self) -> bool {
        lock(&self.state).is_led
    }

    /// The place as it is now: a follower may have been handed the lead.
    pub fn look(&self, place: Place) -> Place {
        match place {
            Place::Follower(number) if lock(&self.state).granted == Some(number) => Place::Leader,
            place => place,
        }
    }

    /// Leaves, and hands the lead on where it had it; `true` when nobody leads any more.
    pub fn leave(&self, place: Place) -> bool {
        let mut state = lock(&self.state);
        if let Place::Follower(number) = place
            && state.granted != Some(number)
        {
            state.line.retain(|(each, _)| *each != number);
            return false;
        }
        let next = state.line.pop_front();
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Parker;

    fn waker() -> Waker {
        Waker::Parker(Arc::new(Parker::default()))
    }

    #[test]
    fn the_lead_goes_down_the_line() {
        let lead = Lead::default();
        let first = lead.join(waker());
        let (second, third) = (lead.join(waker()), lead.join(waker()));
        assert_eq!(first, Place::Leader);
        assert!(!lead.try_take());
        assert!(!lead.leave(first));
        assert_eq!((lead.look(second), lead.look(third)), (Place::Leader, third));
        assert!(!lead.leave(second));
        assert_eq!(lead.look(third), Place::Leader);
        assert!(lead.leave(third));
        assert!(!lead.is_led());
    }

    #[test]
    fn a_follower_that_leaves_is_passed_over() {
        let lead = Lead::default();
        let first = lead.join(waker());
        let (second, third) = (lead.join(waker()), lead.join(waker()));
        assert!(!lead.leave(second));
        assert!(!lead.leave(first));
        assert_eq!(lead.look(third), Place::Leader);
    }

    #[test]
    fn a_follower_that_was_handed_the_lead_and_has_its_answer_hands_it_on() {
        let lead = Lead::default();
        let (first, second) = (lead.join(waker()), lead.join(waker()));
        assert!(!lead.leave(first));
        assert!(lead.leave(second));
        assert!(lead.try_take());
    }
}
