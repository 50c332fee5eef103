//! Delivery handles, as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::fork_guard::is_first_thread;
use awoke_engine::produce as engine;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::errors::{Result, of_delivery};
use crate::values::duration;
use crate::waiting::{Mailbox, resolve, wait_as_leader_or_follower};

/// A message that was sent and awaits the broker's answer. Dropping it costs nothing.
#[pyclass(frozen, freelist = 16384, module = "awoke._native")]
pub struct DeliveryHandle {
    inner: Arc<engine::DeliveryHandle>,
}

impl DeliveryHandle {
    /// Makes the Python object of a handle. It refers to no other object, so it is taken from the garbage collector,
    /// which would visit it: there are many handles.
    pub fn make(py: Python<'_>, inner: Arc<engine::DeliveryHandle>) -> Result<Py<Self>> {
        let handle = Py::new(py, Self { inner })?;
        // SAFETY: the object is alive, and the GIL held; untracking it again when it goes is allowed.
        unsafe { ffi::PyObject_GC_UnTrack(handle.as_ptr().cast()) };
        Ok(handle)
    }

    /// Returns the handle, in the process of its producer only: elsewhere its lock may be held for ever.
    pub fn here(&self) -> Result<&Arc<engine::DeliveryHandle>> {
        self.inner.check_process()?;
        Ok(&self.inner)
    }
}

#[pymethods]
impl DeliveryHandle {
    /// Waits until the broker has answered for this message.
    ///
    /// Blocks the calling thread with the GIL released. None waits for `delivery.timeout.ms`. Any thread may wait.
    ///
    /// Raises:
    ///     DeliveryTimeout: no answer within `timeout_s`; the message may still be delivered.
    ///     DeliveryFailed: the broker or librdkafka refused it; see `code_name` and `is_retriable`.
    #[pyo3(signature = (timeout_s=None))]
    fn wait<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> Result<Bound<'py, PyAny>> {
        let since = Instant::now();
        let deadline = Deadline::after(duration(timeout_s)?.or(self.inner.wait_max()));
        if !wait_for_delivery(py, self.here()?, &deadline)? {
            let error = Error::TimedOut { operation: self.inner.operation(), waited: since.elapsed() };
            return Err(of_delivery(&error));
        }
        self.result(py)
    }

    /// Returns the answer, which must be there. Does not block.
    ///
    /// Raises:
    ///     DeliveryTimeout: there is no answer yet; DeliveryFailed: it was refused.
    fn result<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        static DELIVERY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static NEW_TUPLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let answer = self
            .here()?
            .result()
            .unwrap_or_else(|| Err(Error::TimedOut { operation: self.inner.operation(), waited: Duration::ZERO }));
        let delivery = answer.map_err(|error| of_delivery(&error))?;
        let class = DELIVERY.import(py, "awoke.waiting.handles", "Delivery")?;
        let timestamp_ms = (delivery.timestamp_ms >= 0).then_some(delivery.timestamp_ms);
        // `Delivery(...)` is a Python function, and a synchronous sender makes one for each message: `tuple.__new__` is
        // faster.
        let new = NEW_TUPLE.get_or_try_init(py, || py.get_type::<PyTuple>().getattr("__new__").map(Bound::unbind))?;
        let fields = (&**self.inner.topic(), delivery.partition, delivery.offset, timestamp_ms);
        Ok(new.bind(py).call1((class, fields))?)
    }

    /// Tells whether the answer is there. Does not block.
    fn done(&self) -> Result<bool> {
        Ok(self.here()?.completion().is_done())
    }

    /// Returns the error that `result` would raise, or None. Does not block.
    fn exception(&self, py: Python<'_>) -> Result<Option<PyErr>> {
        self.here()?;
        Ok(self.result(py).err().map(PyErr::from))
    }

    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        self.inner.topic()
    }

    /// When the answer came, in nanoseconds of `time.monotonic_ns()`; 0 if no thread or task waited for it.
    #[getter]
    fn woken_at_ns(&self) -> Result<u64> {
        Ok(self.here()?.woken_at_ns())
    }

    /// Has `token` posted to the mailbox when the answer comes. Returns `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> Result<bool> {
        let handle = self.here()?;
        Ok(match mailbox.of_loop() {
            Some(tokens) => handle.await_on_loop(tokens, token),
            None => handle.completion().register(mailbox.waker(token)),
        })
    }

    /// Calls `callback(handle)` when the answer is there, on a thread of awoke's; its errors are logged.
    fn add_done_callback(slf: &Bound<'_, Self>, callback: &Bound<'_, PyAny>) -> Result<()> {
        slf.py().import("awoke.waiting.handles")?.call_method1("call_back", (slf, callback))?;
        Ok(())
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        slf.get().here()?;
        resolve(slf)
    }

    fn __repr__(&self) -> String {
        let state = match self.here().map(|handle| handle.result()) {
            Err(_) => "of another process".to_owned(),
            Ok(answer) => match answer {
                None => "under way".to_owned(),
                Some(Ok(delivery)) => format!("partition {} offset {}", delivery.partition, delivery.offset),
                Some(Err(error)) => error.to_string(),
            },
        };
        format!("<DeliveryHandle {}, {state}>", self.inner.topic())
    }
}

/// Waits for an answer with the GIL released, and serves the producer's reports if no other thread does. Returns
/// whether it came.
fn wait_for_delivery(py: Python<'_>, handle: &engine::DeliveryHandle, deadline: &Deadline) -> Result<bool> {
    if handle.completion().is_done() {
        return Ok(true);
    }
    if !is_first_thread() {
        return Ok(py.detach(|| handle.wait_until(deadline).is_some()));
    }
    wait_as_leader_or_follower(py, deadline, |waker| handle.begin_wait(waker))?;
    Ok(handle.completion().is_done())
}

/// Returns the handle of a message that is delivered already, by no producer: for tests of user code. Does not block.
#[pyfunction]
pub fn deliver(py: Python<'_>, topic: &str, at: (i32, i64), timestamp_ms: i64) -> Result<Py<DeliveryHandle>> {
    let delivery = engine::Delivery { partition: at.0, offset: at.1, has_answer: true, timestamp_ms };
    DeliveryHandle::make(py, Arc::new(engine::DeliveryHandle::delivered(topic.into(), delivery)))
}

/// Sends these messages together, without lingering. Does not block.
#[pyfunction]
pub fn flush_now(py: Python<'_>, handles: Vec<Py<DeliveryHandle>>) -> Result<()> {
    let natives = natives(&handles)?;
    py.detach(|| natives.iter().for_each(|handle| handle.begin_awaiting()));
    Ok(())
}

/// Waits until all handles are answered, delivered or not; returns whether they are. Blocks with the GIL released.
#[pyfunction]
#[pyo3(signature = (handles, timeout_s=None))]
pub fn wait_all(py: Python<'_>, handles: Vec<Py<DeliveryHandle>>, timeout_s: Option<f64>) -> Result<bool> {
    wait_for_all(py, &natives(&handles)?, duration(timeout_s)?)
}

fn natives(handles: &[Py<DeliveryHandle>]) -> Result<Vec<Arc<engine::DeliveryHandle>>> {
    handles.iter().map(|handle| handle.get().here().cloned()).collect()
}

/// As `wait_all`.
pub fn wait_for_all(
    py: Python<'_>,
    handles: &[Arc<engine::DeliveryHandle>],
    timeout: Option<Duration>,
) -> Result<bool> {
    if handles.iter().all(|handle| handle.completion().is_done()) {
        return Ok(true);
    }
    let timeout = timeout.or(handles.iter().filter_map(|handle| handle.wait_max()).max());
    if !is_first_thread() {
        return Ok(py.detach(|| engine::DeliveryHandle::wait_all(handles, timeout)));
    }
    handles.iter().for_each(|handle| handle.begin_awaiting());
    // One after the other, because a signal must be able to end the wait.
    let deadline = Deadline::after(timeout);
    for handle in handles {
        if !wait_for_delivery(py, handle, &deadline)? {
            handles.iter().for_each(|handle| handle.cancel_wait());
            return Ok(false);
        }
    }
    Ok(true)
}
