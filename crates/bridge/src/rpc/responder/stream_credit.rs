//! The credit of a stream, as the thread or task that sends its results sees it.

use awoke_engine::rpc::Credit;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::rpc::responder::IncomingCall;
use crate::values::duration;
use crate::waiting::{Mailbox, wait_until_ready};

/// The credit of a stream. It has a result when there is credit, or none will come: the caller waits no longer, or the
/// partition of the call is given back.
#[pyclass(frozen, module = "awoke._native")]
pub struct StreamCredit {
    pub(super) call: Py<IncomingCall>,
}

impl StreamCredit {
    fn credit(&self) -> Result<(&Credit, bool)> {
        let credit = self.call.get().call.credit();
        Ok(credit.ok_or_else(|| PyValueError::new_err("a call with one result has no credit"))?)
    }
}

#[pymethods]
impl StreamCredit {
    /// True if the request named a credit.
    #[getter]
    fn is_named(&self) -> Result<bool> {
        Ok(self.credit()?.1)
    }

    /// Takes the credit of one result; returns `False` if there is none. Does not block.
    fn try_take(&self) -> Result<bool> {
        Ok(self.credit()?.0.try_take())
    }

    /// True if the partition of the call is given back: its next owner executes the call.
    #[getter]
    fn is_withdrawn(&self) -> Result<bool> {
        Ok(self.credit()?.0.is_withdrawn())
    }

    /// True if there is credit, or none will come. Does not block.
    fn done(&self) -> Result<bool> {
        Ok(self.credit()?.0.is_ready())
    }

    /// Returns `None`. Does not block.
    #[allow(clippy::unused_self)] // As every pending result has it.
    const fn result(&self) {}

    /// Waits until there is credit, none will come, or the call's time is over. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<()> {
        let deadline = self.call.get().call.deadline(duration(timeout_s)?);
        wait_until_ready(py, self.credit()?.0, &deadline)
    }

    /// Posts `token` to the mailbox when there is a result; returns `False` if there is one now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> Result<bool> {
        let waker = mailbox.waker(token);
        Ok(self.credit()?.0.register(waker))
    }
}
