//! The interface between a wait and the object that it waits for.

use crate::clock::Deadline;
use crate::{Completion, Waker};

/// An object that a thread can wait for.
pub trait Awaited: Sync {
    /// The name of a waker that was registered.
    type Registration;

    /// Returns whether there is no more to wait for.
    fn is_ready(&self) -> bool;
    /// Has the waker woken when it is ready. Returns `None` if it is now.
    fn register(&self, waker: Waker) -> Option<Self::Registration>;
    /// Removes a registration.
    fn unregister(&self, registration: Self::Registration);
    /// Waits until it is ready, or the deadline passes. Blocks the calling thread.
    fn block(&self, deadline: &Deadline);
}

impl<T: Clone + Send + Sync> Awaited for Completion<T> {
    type Registration = Waker;

    fn is_ready(&self) -> bool {
        self.is_done()
    }

    fn register(&self, waker: Waker) -> Option<Waker> {
        Self::register(self, waker.clone()).then_some(waker)
    }

    fn unregister(&self, waker: Waker) {
        Self::unregister(self, &waker);
    }

    fn block(&self, deadline: &Deadline) {
        self.wait(deadline);
    }
}
