//! The life of a call on its responder, as a state machine.
//!
//! ```text
//!  ┌──────────┐  Enqueue   ┌────────┐     Run     ┌─────────┐
//!  │ Received │ ─────────► │ Queued │ ──────────► │ Running │ ◄── Run, from Received
//!  └──────────┘            └────────┘             └─────────┘
//!        │ Reply                │ Reply                │ Reply
//!        └──────────────────────┼──────────────────────┘
//!                               ▼
//!                          ┌─────────┐   Settle   ┌─────────┐
//!                          │ Replied │ ─────────► │ Settled │ ◄── Settle, from every other state
//!                          └─────────┘            └─────────┘
//! ```
//!
//! | State | The call | Reason for the step to it |
//! |---|---|---|
//! | Received | was read from the topic of requests | |
//! | Queued | waits for its turn, or for the result of a duplicate | admission has no place for it |
//! | Running | has a place among the running calls | admission has a place, or another call released one |
//! | Replied | needs nothing more from its method | its last reply was sent, or it needs none |
//! | Settled | is over | its job was completed, or given back: the call is executed again |
//!
//! Admission takes the steps `Enqueue` and `Run` under its own lock, so no call is in two queues. `Reply` is legal
//! once: a call is not answered twice. `Settle` is legal in every state but `Settled`, because a job is given back
//! whenever a partition is taken away, a responder stops, or a reply can't be sent.

use std::sync::{Mutex, PoisonError};

/// The state of a call on its responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Its request was read.
    #[default]
    Received,
    /// It waits for its turn, or for the result of a call with the same idempotency key.
    Queued,
    /// It has a place among the running calls.
    Running,
    /// Its last reply was sent, or it needs none.
    Replied,
    /// Its job has ended.
    Settled,
}

/// A step from one state of a call to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Admission puts the call in a queue.
    Enqueue,
    /// Admission gives the call a place among the running ones.
    Run,
    /// The last reply was sent, or there is none to send.
    Reply,
    /// The job was completed, or given back.
    Settle,
}

impl Stage {
    /// Returns the state after a step; `None` if the step is not legal in this state.
    pub const fn after(self, step: Step) -> Option<Self> {
        match (self, step) {
            (Self::Received, Step::Enqueue) => Some(Self::Queued),
            (Self::Received | Self::Queued, Step::Run) => Some(Self::Running),
            (Self::Received | Self::Queued | Self::Running, Step::Reply) => Some(Self::Replied),
            (Self::Received | Self::Queued | Self::Running | Self::Replied, Step::Settle) => Some(Self::Settled),
            _ => None,
        }
    }

    /// Returns whether nothing more is sent for the call.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Replied | Self::Settled)
    }
}

/// Takes a step; returns `false`, and changes nothing, if it is not legal.
pub(super) fn advance(stage: &Mutex<Stage>, step: Step) -> bool {
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    let next = stage.after(step);
    *stage = next.unwrap_or(*stage);
    next.is_some()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const STEPS: [Step; 4] = [Step::Enqueue, Step::Run, Step::Reply, Step::Settle];

    fn all_after(stage: Stage) -> [Option<Stage>; 4] {
        STEPS.map(|step| stage.after(step))
    }

    #[test]
    fn the_transitions_are_as_drawn() {
        use Stage::{Queued, Received, Replied, Running, Settled};
        assert_eq!(all_after(Received), [Some(Queued), Some(Running), Some(Replied), Some(Settled)]);
        assert_eq!(all_after(Queued), [None, Some(Running), Some(Replied), Some(Settled)]);
        assert_eq!(all_after(Running), [None, None, Some(Replied), Some(Settled)]);
        assert_eq!(all_after(Replied), [None, None, None, Some(Settled)]);
        assert_eq!(all_after(Settled), [None; 4]);
    }

    #[test]
    fn every_call_ends_within_four_steps() {
        fn longest(stage: Stage) -> usize {
            STEPS.iter().filter_map(|step| stage.after(*step)).map(|next| 1 + longest(next)).max().unwrap_or(0)
        }
        assert_eq!(longest(Stage::default()), 4, "no step leads back");
    }
}
