//! The descriptors that Python's event loops watch, and what makes them readable.

use std::sync::Arc;

use awoke_engine::wake::{EventFd, Mailbox as EngineMailbox, Notifier as _, Waker};
use pyo3::prelude::*;

use crate::errors::Result;

/// The mailbox of the tokens of one event loop or one thread.
pub type Tokens = EngineMailbox<u64, EventFd>;

/// Tokens of completions that have their result, for one event loop or one thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct Mailbox {
    inner: Arc<Tokens>,
}

impl Mailbox {
    /// Returns a waker that posts this token.
    pub fn waker(&self, token: u64) -> Waker {
        Waker::Mailbox { mailbox: Arc::clone(&self.inner) as _, token }
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Result<Self> {
        Ok(Self { inner: Arc::new(Tokens::new(EventFd::new()?)) })
    }

    /// The descriptor that becomes readable when there are tokens.
    fn fileno(&self) -> i32 {
        self.inner.notifier().descriptor()
    }

    /// Takes all tokens. Does not block.
    fn drain(&self) -> Vec<u64> {
        self.inner.drain()
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
