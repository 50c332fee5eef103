//! A call of a caller, as Python sees it.

use std::sync::{Arc, Weak};

use awoke_engine::clock::Deadline;
use awoke_engine::fork_guard::{Birthplace, is_first_thread};
use awoke_engine::rpc as engine;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::Result;
use crate::values::duration;
use crate::waiting::{Mailbox, wait_as_leader_or_follower};

/// A call of a caller.
#[pyclass(frozen, freelist = 256, module = "awoke._native")]
pub struct Call {
    inner: Arc<engine::Call>,
    birthplace: Birthplace,
    /// Weak: a call that is kept, by an exception for example, must keep no client. Without the client, the call
    /// has ended.
    caller: Weak<engine::Caller>,
}

#[pymethods]
impl Call {
    /// Waits for the next part, at most until the call's deadline; returns whether it is there. Blocks with the GIL
    /// released.
    #[pyo3(signature = (timeout_s=None))]
    pub fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<bool> {
        self.check_process()?;
        if self.inner.is_ready() {
            return Ok(true);
        }
        let deadline = Deadline::after(duration(timeout_s)?);
        let Some(caller) = self.caller.upgrade() else { return Ok(self.inner.is_ready()) };
        if is_first_thread() {
            let deadline = deadline.or_earlier(Some(self.inner.until()));
            wait_as_leader_or_follower(py, &deadline, |waker| caller.begin_wait(&self.inner, waker))?;
        }
        // On the main thread the deadline may have ended that wait before it ended the call.
        Ok(py.detach(|| {
            let is_there = self.inner.is_ready() || caller.wait(&self.inner, &deadline);
            drop(caller); // Without the GIL: it may be the last reference.
            is_there
        }))
    }

    /// Takes the next part; None if it is not there yet. Does not block.
    ///
    /// A part is `reply`, `item` or `error` and a body; or `end`; or `failed`, a code and a text.
    pub fn result<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        self.check_process()?;
        let next = match self.caller.upgrade() {
            Some(caller) => caller.try_next(&self.inner)?,
            None => self.inner.try_next(),
        };
        next.map(|next| part(py, next)).transpose()
    }

    /// Returns whether the next part is there. Does not block.
    fn done(&self) -> Result<bool> {
        self.check_process()?;
        Ok(self.inner.is_ready())
    }

    /// Returns whether the call has ended. Does not block.
    fn has_ended(&self) -> Result<bool> {
        self.check_process()?;
        Ok(self.inner.has_ended())
    }

    /// Cancels the call and tells its responder; returns `False` if it had ended before. Does not block.
    pub fn cancel(&self) -> Result<bool> {
        self.check_process()?;
        let Some(caller) = self.caller.upgrade() else { return Ok(false) };
        Ok(caller.cancel(&self.inner)?)
    }

    /// Notes a job that begins to wait for it on an event loop, or has waited (-1), for a test that has the clock. Does
    /// not block.
    fn note_waiting_job(&self, by: isize) {
        self.inner.note_waiting_job(by);
    }

    /// Posts `token` to the mailbox when the next part is there; returns `False` if it is there now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> Result<bool> {
        self.check_process()?;
        Ok(match (mailbox.of_loop(), self.caller.upgrade()) {
            (Some(tokens), Some(caller)) => caller.await_on_loop(&self.inner, tokens, token),
            _ => self.inner.register(mailbox.waker(token)),
        })
    }

    /// The call's id, as in its header.
    #[getter]
    fn id(&self) -> [u8; 16] {
        self.inner.id().to_bytes()
    }

    /// When the waiting thread or task was woken, in nanoseconds of `time.monotonic_ns()`; 0: none was.
    #[getter]
    fn woken_at_ns(&self) -> u64 {
        self.inner.woken_at_ns()
    }
}

impl Call {
    pub fn new(inner: Arc<engine::Call>, caller: &Arc<engine::Caller>) -> Self {
        Self { inner, birthplace: caller.birthplace(), caller: Arc::downgrade(caller) }
    }

    fn check_process(&self) -> Result<()> {
        Ok(self.birthplace.check("call")?)
    }
}

/// Returns the next part of a call as Python takes it.
pub fn part(py: Python<'_>, next: engine::Next) -> Result<Bound<'_, PyAny>> {
    let none = || py.None().into_bound(py);
    let parts = match next {
        engine::Next::Reply(reply) => (reply.kind.name(), PyBytes::new(py, &reply.body).into_any(), none()),
        engine::Next::End => ("end", none(), none()),
        engine::Next::Failed(failure) => {
            let (code, text) = failure.explain();
            ("failed", PyString::new(py, code).into_any(), PyString::new(py, &text).into_any())
        }
    };
    Ok(parts.into_pyobject(py)?.into_any())
}
