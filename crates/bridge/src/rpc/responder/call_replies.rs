//! Sends the replies of calls, and ends the calls.

use awoke_engine::produce::Record;
use awoke_engine::rpc::NotBegun;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::consume::Job;
use crate::errors::Result;
use crate::produce::{DeliveryHandle, Producer};
use crate::rpc::responder::IncomingCall;
use crate::values::{bytes, seconds};

/// Sends the replies of calls through one producer, and ends the calls. Any thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct CallReplies {
    producer: Py<Producer>,
}

#[pymethods]
impl CallReplies {
    #[new]
    const fn new(producer: Py<Producer>) -> Self {
        Self { producer }
    }

    /// Begins a call whose turn has come. Does not block.
    ///
    /// Returns why it is not to be executed: "fenced", or the reason of a rejection.
    #[staticmethod]
    fn begin(call: &IncomingCall) -> Option<&'static str> {
        call.call.begin().err().map(|not_begun| match not_begun {
            NotBegun::Fenced => "fenced",
            NotBegun::Rejected(reason) => reason.name(),
        })
    }

    /// Sends a reply, if it is wanted. Blocks while the producer's queue is full. Raises as `Producer.produce`.
    #[pyo3(signature = (call, kind, body, code=None))]
    fn send(&self, py: Python<'_>, call: &IncomingCall, kind: &str, body: &[u8], code: Option<&str>) -> Result<()> {
        let Some((topic, partition)) = call.call.address(kind) else { return Ok(()) };
        let sent = call.call.with_reply_headers(kind, body, code, |headers| {
            let record = Record { value: Some(body), partition: Some(partition), headers, ..Record::default() };
            self.producer.get().send(py, topic, &record, None)
        })?;
        call.set_last(DeliveryHandle::make(py, sent)?);
        Ok(())
    }

    /// Returns the headers that `send` would send; `None` if the reply is not wanted.
    #[staticmethod]
    #[pyo3(signature = (call, kind, body, code=None))]
    fn headers<'py>(
        py: Python<'py>,
        call: &IncomingCall,
        kind: &str,
        body: &[u8],
        code: Option<&str>,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let is_wanted = call.call.address(kind).is_some();
        is_wanted
            .then(|| call.call.with_reply_headers(kind, body, code, |headers| header_pairs(py, headers)))
            .transpose()
    }

    /// Leaves the slot of the call's job to other jobs, and copies the call's record: the call goes on elsewhere.
    /// Does not block.
    #[staticmethod]
    fn leave_slot(py: Python<'_>, call: &IncomingCall) -> Result<()> {
        call.call.leave_slot(true);
        call.record.release(py, true)
    }

    /// Takes the call's job, which the caller of this ends; `None` if it was taken before. Does not block.
    #[staticmethod]
    fn take_job(call: &IncomingCall) -> Option<Job> {
        call.call.take_job().map(Job::new)
    }

    /// Drops the call's callbacks and releases its record. Does not block.
    #[staticmethod]
    fn close(py: Python<'_>, call: &IncomingCall) -> Result<()> {
        call.close(py)
    }

    /// Completes the call's job when its last reply is acknowledged or refused for good, or now if none was sent.
    ///
    /// Should the reply fail otherwise, the call is executed again after `delay_s`. Does not block.
    #[staticmethod]
    fn settle(py: Python<'_>, call: &IncomingCall, delay_s: f64) -> Result<()> {
        let delay = seconds(delay_s)?;
        let closed = call.close(py);
        let last = call.last(py);
        call.call.settle(last.as_ref().map(|last| last.get().here()).transpose()?, delay);
        closed
    }

    /// Gives a call's job back: the partition's owner executes the call again after `delay_s`. Does not block.
    #[staticmethod]
    fn give_back(py: Python<'_>, call: &IncomingCall, delay_s: f64) -> Result<()> {
        let delay = seconds(delay_s)?;
        let closed = call.close(py);
        call.call.give_back(delay);
        closed
    }
}

/// Returns the headers of a reply as Python takes them.
fn header_pairs<'py>(py: Python<'py>, headers: &[(&str, Option<&[u8]>)]) -> Result<Bound<'py, PyList>> {
    Ok(PyList::new(py, headers.iter().map(|(name, value)| (*name, bytes(py, *value))))?)
}
