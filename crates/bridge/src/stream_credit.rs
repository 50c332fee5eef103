//! The credit of a stream, as the thread or task that sends its results sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::clock::Deadline;
use awoke_engine::rpc::Credit;
use awoke_engine::wake::Waker;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::duration;
use crate::incoming_call::IncomingCall;
use crate::waiting::{Awaited, Mailbox, wait_until_ready};

/// The credit of a stream. It has a result when there is credit, or none will come because the caller waits no longer.
#[pyclass(frozen, module = "awoke._native")]
pub struct StreamCredit {
    call: Py<IncomingCall>,
}

impl StreamCredit {
    pub const fn new(call: Py<IncomingCall>) -> Self {
        Self { call }
    }

    fn credit(&self) -> PyResult<(&Credit, bool)> {
        let credit = self.call.get().call.credit();
        credit.ok_or_else(|| PyValueError::new_err("a call with one result has no credit"))
    }
}

#[pymethods]
impl StreamCredit {
    /// `true` if the request named a credit.
    #[getter]
    fn is_named(&self) -> PyResult<bool> {
        Ok(self.credit()?.1)
    }

    /// Takes the credit of one result; returns `False` if there is none. Does not block.
    fn try_take(&self) -> PyResult<bool> {
        Ok(self.credit()?.0.try_take())
    }

    /// `true` if there is credit, or none will come. Does not block.
    fn done(&self) -> PyResult<bool> {
        Ok(self.credit()?.0.is_ready())
    }

    /// Returns `None`. Does not block.
    #[allow(clippy::unused_self)] // As every pending result has it.
    const fn result(&self) {}

    /// Waits until there is credit, none will come, or the call's time is over. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let left = Duration::try_from_secs_f64(self.call.get().call.remaining_s()).unwrap_or(Duration::MAX);
        let deadline = Deadline::after(duration(timeout_s)?).or_earlier(Instant::now().checked_add(left));
        wait_until_ready(py, self.credit()?.0, &deadline)
    }

    /// Posts `token` to the mailbox when there is a result; returns `False` if there is one now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> PyResult<bool> {
        let waker = Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token };
        Ok(self.credit()?.0.register(waker))
    }
}

impl Awaited for Credit {
    type Registration = Waker;

    fn is_ready(&self) -> bool {
        Self::is_ready(self)
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
