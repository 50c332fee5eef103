//! A call on its responder, as its method sees it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use awoke_engine::rpc as engine;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::consume::Message;
use crate::errors::Result;
use crate::produce::DeliveryHandle;
use crate::rpc::responder::StreamCredit;
use crate::rpc::responder::request_record::RequestRecord;
use crate::values::{bytes, duration};
use crate::waiting::wait_for;

/// The call that a method executes. Any thread.
///
/// Its callbacks may form a reference cycle with it; `CallReplies.close` drops them.
#[pyclass(frozen, freelist = 256, module = "awoke._native")]
pub struct IncomingCall {
    pub call: engine::IncomingCall,
    pub record: RequestRecord,
    /// Its `awoke.rpc.responder.methods.Method`; None if the service has no such method. For awoke's own responder.
    #[pyo3(get)]
    target: Option<Py<PyAny>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Called when the caller cancels.
    callbacks: Vec<Py<PyAny>>,
    /// Sends what is committed together with the call.
    transaction_entry: Option<Py<PyAny>>,
    /// The last reply that was sent.
    last: Option<Py<DeliveryHandle>>,
    /// User code has seen the call, and may look at its record later.
    is_seen: bool,
    is_closed: bool,
}

impl IncomingCall {
    pub fn new(call: engine::IncomingCall, record: RequestRecord, target: Option<Py<PyAny>>) -> Self {
        Self { call, record, target, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the functions that are called when the caller cancels.
    pub fn take_callbacks(&self) -> Vec<Py<PyAny>> {
        std::mem::take(&mut self.state().callbacks)
    }

    /// Keeps the last reply that was sent.
    pub fn set_last(&self, sent: Py<DeliveryHandle>) {
        let _before = self.state().last.replace(sent); // Dropped after the lock is released.
    }

    /// Drops the callbacks and releases the record, of which user code keeps what it has seen. Does not block.
    pub fn close(&self, py: Python<'_>) -> Result<()> {
        let (_callbacks, is_seen) = {
            let mut state = self.state();
            state.is_closed = true;
            (std::mem::take(&mut state.callbacks), state.is_seen)
        };
        self.record.release(py, is_seen)
    }
}

#[pymethods]
impl IncomingCall {
    /// The name of the method.
    #[getter]
    fn method<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.call.method())
    }

    /// The id that its caller gave it.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.call.id())
    }

    /// The caller, by its own word; see `docs/rpc.md` for signed calls.
    #[getter]
    fn caller(&self) -> &str {
        self.call.caller()
    }

    /// The key that all attempts at one call share; `None` without one.
    #[getter]
    fn idempotency_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        bytes(py, self.call.idempotency_key())
    }

    /// The key of its record: calls with one key are executed in order.
    #[getter]
    fn key(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(self.record.message(py)?.getattr(py, "key")?)
    }

    /// Its headers, the last of several with one name; of a signed call only those that its caller has signed.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        self.record.headers(py, self.call.signed_names())
    }

    /// Of an exactly-once service: messages sent through it are committed together with the reply. Else None.
    #[getter]
    fn transaction_entry(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().transaction_entry.as_ref().map(|entry| entry.clone_ref(py))
    }

    #[setter]
    fn set_transaction_entry(&self, entry: Option<Py<PyAny>>) {
        let _before = std::mem::replace(&mut self.state().transaction_entry, entry); // As above.
    }

    /// When it is to end, on awoke's clock: its caller stops waiting, or its method's time is over.
    #[getter]
    fn until_s(&self) -> f64 {
        self.call.until_ns() as f64 / 1e9
    }

    /// The time that it may still take, in seconds; at least 0.
    #[getter]
    fn remaining_s(&self) -> f64 {
        self.call.remaining_s()
    }

    /// True if its caller has cancelled it, or its time is over.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Waits until it is cancelled or its time is over; returns whether it is. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait_cancelled(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<bool> {
        wait_for(py, self.call.cancelled(), &self.call.deadline(duration(timeout_s)?))?;
        Ok(self.call.is_cancelled())
    }

    /// Calls a function when the caller cancels, on the thread that receives the cancellation; at once if it has.
    /// Does not block.
    fn when_cancelled(&self, py: Python<'_>, function: Py<PyAny>) -> Result<()> {
        let mut state = self.state();
        // Under the lock: a cancellation completes first, and takes the callbacks then.
        if self.call.cancelled().is_done() {
            drop(state);
            function.call0(py)?;
            return Ok(());
        }
        if !state.is_closed {
            state.callbacks.push(function);
        }
        Ok(())
    }

    /// Why its method is not executed; None if it is.
    ///
    /// "rejected" or "invalid" and a reason, or "cached" and the kind of the reply.
    #[getter]
    fn not_executed(&self) -> Option<(&'static str, &'static str)> {
        self.call.not_executed().map(|reason| match reason {
            engine::NotExecuted::Rejected(reason) => ("rejected", reason.name()),
            engine::NotExecuted::Invalid(reason) => ("invalid", reason.name()),
            engine::NotExecuted::Cached(answer) => ("cached", answer.kind.name()),
        })
    }

    /// The body of the answer, if a call with its idempotency key was executed before.
    #[getter]
    fn cached_body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let Some(engine::NotExecuted::Cached(answer)) = self.call.not_executed() else { return None };
        Some(PyBytes::new(py, &answer.body))
    }

    /// Topic and partition of its replies; `None` if it wants none.
    #[getter]
    fn reply_to(&self) -> Option<(&str, i32)> {
        self.call.reply_to()
    }

    /// Topic, partition and offset of its request.
    #[getter]
    fn place(&self) -> (&str, i32, i64) {
        let (at, offset) = self.call.place();
        (&at.topic, at.partition, offset)
    }

    /// In seconds: the caller's time; at the reading, the time left and in queues; the time of its method.
    #[getter]
    fn times_s(&self) -> (f64, f64, f64, f64) {
        let times = self.call.times();
        (times.budget_s, times.left_s, times.queued_s, self.call.ran_s())
    }

    /// True if its caller has cancelled it.
    #[getter]
    fn was_cancelled(&self) -> bool {
        self.call.cancelled().is_done()
    }

    /// The arguments as they came. Raises `ClosedError` if the record was released.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.record.body(py)
    }

    /// Its record. Raises ClosedError if it was released before it was read.
    #[getter]
    fn message(&self, py: Python<'_>) -> Result<Py<Message>> {
        Ok(self.record.message(py)?.clone_ref(py))
    }

    /// The credit of a stream; `None` for a call with one result.
    #[getter]
    fn credit(slf: &Bound<'_, Self>) -> Option<StreamCredit> {
        slf.get().call.credit().map(|_| StreamCredit { call: slf.clone().unbind() })
    }

    /// The last reply that was sent.
    #[getter]
    pub fn last(&self, py: Python<'_>) -> Option<Py<DeliveryHandle>> {
        self.state().last.as_ref().map(|last| last.clone_ref(py))
    }

    /// Keeps its record readable after its end, because user code sees the call from here on.
    fn mark_seen(&self) {
        self.state().is_seen = true;
    }

    /// Starts the clock of its method.
    fn start(&self) {
        self.call.method_began();
    }

    /// Stops the clock of its method.
    fn stop(&self) {
        self.call.method_ended();
    }
}
