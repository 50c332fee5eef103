//! A thread's wait for the next reply of a call: it serves the queue of replies while it leads.

use std::cell::Cell;
use std::sync::Arc;

use super::call::{Call, Failure};
use super::replies::Replies;
use crate::clock::{self, Deadline};
use crate::sync::thread_local;
use crate::wake::{Place, ServingWait, Waker};

thread_local! {
    /// The call that this thread serves the queue for; 0 for none.
    static SERVES_FOR: Cell<u64> = const { Cell::new(0) };
}

/// Returns whether the calling thread serves the queue for this call.
pub(super) fn serves_for(call: u64) -> bool {
    SERVES_FOR.get() == call
}

/// A wait for the next reply of a call, of a thread that serves the queue while it leads. Dropped, it hands the
/// leadership over.
pub struct Waiting {
    call: Arc<Call>,
    replies: Arc<Replies>,
    place: Cell<Place>,
    waker: Waker,
}

impl Waiting {
    /// Begins a wait; returns `None` if the reply is there. The waker is woken when the call may be ready.
    pub(super) fn begin(replies: &Arc<Replies>, call: &Arc<Call>, waker: Waker) -> Option<Self> {
        if call.is_ready() {
            return None;
        }
        let place = Cell::new(replies.serving.leadership.join(waker.clone()));
        let waiting = Self { call: Arc::clone(call), replies: Arc::clone(replies), place, waker };
        // A leader notices its reply itself.
        let is_there = waiting.is_follower() && !call.register(waiting.waker.clone());
        (!is_there).then_some(waiting)
    }
}

impl ServingWait for Waiting {
    /// Serves the queue, if this thread leads, until the call is ready or a deadline passes: the call's own, or
    /// this one. Returns whether the call is ready. May return early; then a follower waits for its waker and calls
    /// this again. Blocks a leader.
    fn step(&self, deadline: &Deadline) -> bool {
        let (call, replies) = (&self.call, &self.replies);
        let place = replies.serving.leadership.current(self.place.get());
        self.place.set(place);
        if place == Place::Leader && !call.is_ready() {
            let token = call.id.call;
            let listener = Waker::Listener { listener: Arc::<Replies>::clone(replies), token };
            if call.register(listener.clone()) {
                SERVES_FOR.set(token);
                replies.serve(Some(call), &deadline.or_earlier(Some(call.until)));
                SERVES_FOR.set(0);
                call.unregister(&listener);
            }
        }
        if !call.is_ready() && clock::now() >= call.until {
            replies.calls.fail(call, Failure::DeadlineExceeded);
        }
        // A follower may have been woken for a result of a stream that another thread has taken since.
        if self.is_follower() { !call.keep_registered(&self.waker) } else { call.is_ready() }
    }

    /// Returns whether another thread serves the queue.
    fn is_follower(&self) -> bool {
        self.place.get() != Place::Leader
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.call.unregister(&self.waker);
        self.replies.leave(self.place.get());
    }
}
