//! The descriptors that Python's event loops watch, and what makes them readable.

use std::sync::Arc;

use awoke_engine::wake::{EventFd, Notifier as _, Tokens, Waker};
use pyo3::prelude::*;

use crate::errors::Result;

/// Tokens of completions that have their result, for one event loop or one thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct Mailbox {
    inner: Arc<Tokens>,
    /// The event loop takes the tokens: it may serve the queues that they come from.
    of_loop: bool,
}

impl Mailbox {
    /// Returns a waker that posts this token.
    pub fn waker(&self, token: u64) -> Waker {
        Waker::Mailbox { mailbox: Arc::clone(&self.inner), token }
    }

    /// Returns the mailbox of an event loop; `None` if it is a thread's.
    pub fn of_loop(&self) -> Option<&Arc<Tokens>> {
        self.of_loop.then_some(&self.inner)
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    #[pyo3(signature = (*, of_loop=false))]
    fn new(of_loop: bool) -> Result<Self> {
        Ok(Self { inner: Arc::new(Tokens::new(EventFd::new()?)), of_loop })
    }

    /// The descriptor that becomes readable when there are tokens.
    fn fileno(&self) -> i32 {
        self.inner.notifier().descriptor()
    }

    /// Takes all tokens. An event loop serves the queues first that its tasks wait for. Does not block.
    fn drain(&self, py: Python<'_>) -> Vec<u64> {
        if !self.of_loop {
            return self.inner.drain();
        }
        // A thread that holds a lock of a queue may wait for the GIL.
        py.detach(|| self.inner.drain())
    }

    /// Posts a token. Does not block; any thread.
    fn post(&self, token: u64) {
        self.inner.post(token);
    }
}

/// Makes a descriptor readable when an event loop should ask for work.
#[pyclass(frozen, module = "awoke._native")]
pub struct Notifier {
    pub inner: Arc<EventFd>,
}

#[pymethods]
impl Notifier {
    #[new]
    fn new() -> Result<Self> {
        Ok(Self { inner: Arc::new(EventFd::new()?) })
    }

    /// The descriptor that becomes readable when it is notified.
    fn fileno(&self) -> i32 {
        self.inner.descriptor()
    }

    /// Makes the descriptor unreadable until the next `notify`. Does not block.
    fn clear(&self) {
        self.inner.reset();
    }

    /// Makes the descriptor readable. Does not block; any thread.
    fn notify(&self) {
        self.inner.notify();
    }
}
