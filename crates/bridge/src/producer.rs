//! The producer and its delivery handles, as Python sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::produce as engine;
use awoke_engine::wake::Waker;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use crate::errors::{delivery_to_python, duration, to_python};
use crate::events::EventBox;
use crate::properties::Properties;
use crate::record::Outgoing;
use crate::transaction::Transaction;
use crate::waiting::{Mailbox, Turn, is_main_thread, wait_in_turn};

/// How much longer than `delivery.timeout.ms` a wait without a limit goes on: librdkafka looks at time-outs once a second.
const GRACE: Duration = Duration::from_secs(10);

/// So many messages of a list are given to librdkafka at once.
const TOGETHER: usize = 256;

/// Takes messages in and gives a delivery handle for each.
#[pyclass(frozen, subclass, module = "awoke._native")]
pub struct Producer {
    inner: Arc<engine::Producer>,
    /// Turns a value that is not bytes, text or nothing into bytes.
    encoder: Py<PyAny>,
    /// How long `produce` waits for room when its caller does not say.
    produce_timeout: Option<Duration>,
    /// When the answer to a message is certain to have come; `None` when the settings say never.
    limit: Option<Duration>,
}

impl Producer {
    pub fn send(
        &self,
        py: Python<'_>,
        topic: &str,
        record: &engine::Record<'_>,
        timeout: Option<Duration>,
    ) -> PyResult<Py<DeliveryHandle>> {
        let sent = match self.inner.try_produce(topic, record) {
            Ok(None) => {
                let deadline = Deadline::after(timeout.or(self.produce_timeout));
                py.detach(|| self.inner.produce(topic, record, &deadline))
            }
            Ok(Some(handle)) => Ok(handle),
            Err(error) => Err(error),
        };
        DeliveryHandle::make(py, sent.map_err(|error| to_python(&error))?, self.limit)
    }

    /// Sends messages that wait in `pending`, and adds their handles to `sent`.
    fn send_all(
        &self,
        py: Python<'_>,
        topic: &str,
        pending: &mut Vec<Outgoing>,
        variant: Option<&engine::Variant>,
        timeout: Option<Duration>,
        sent: &mut Vec<Arc<engine::DeliveryHandle>>,
    ) -> PyResult<()> {
        let result = Outgoing::with_all(pending, variant, |records| {
            let mut rest = records;
            while let Some(first) = rest.first() {
                let before = sent.len();
                self.inner.try_produce_many(topic, rest, sent)?;
                if sent.len() == before {
                    let deadline = Deadline::after(timeout.or(self.produce_timeout));
                    sent.push(py.detach(|| self.inner.produce(topic, first, &deadline))?);
                }
                rest = &rest[sent.len() - before..];
            }
            Ok(())
        });
        pending.clear();
        result.map_err(|error: Error| to_python(&error))
    }
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (properties, encoder, produce_timeout_s, idle_after_s, events, patience_s=0.0))]
    fn new(
        py: Python<'_>,
        properties: Properties,
        encoder: Py<PyAny>,
        produce_timeout_s: Option<f64>,
        idle_after_s: Option<f64>,
        events: &EventBox,
        patience_s: f64,
    ) -> PyResult<Self> {
        let events = Arc::clone(&events.inner);
        let patience = duration(Some(patience_s))?.unwrap_or_default();
        let options = engine::ProducerOptions { idle_after: duration(idle_after_s)?, patience, is_alone: false };
        let made = py.detach(|| engine::Producer::new(&properties.config(), options, events));
        let inner = made.map_err(|error| to_python(&error))?;
        let limit = inner.delivery_timeout().map(|timeout| timeout + GRACE);
        Ok(Self { inner: Arc::new(inner), encoder, produce_timeout: duration(produce_timeout_s)?, limit })
    }

    /// Sends a message; see the stub.
    #[pyo3(signature = (topic, value, *, key=None, headers=None, partition=None, timestamp_ms=None, timeout_s=None, variant=None))]
    #[allow(clippy::too_many_arguments)] // The parts that a Kafka message has; all but two by name.
    fn produce(
        &self,
        py: Python<'_>,
        topic: &str,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        partition: Option<i32>,
        timestamp_ms: Option<i64>,
        timeout_s: Option<f64>,
        variant: Option<&Variant>,
    ) -> PyResult<Py<DeliveryHandle>> {
        let encoder = self.encoder.bind(py);
        let record = Outgoing::new(encoder, value, key, headers, partition, timestamp_ms)?;
        let variant = variant.map(|variant| variant.inner.as_ref());
        let timeout = duration(timeout_s)?;
        record.with(variant, |record| self.send(py, topic, record, timeout))
    }

    /// Sends messages in order; see the stub.
    #[pyo3(signature = (topic, messages, *, timeout_s=None, variant=None))]
    fn produce_many<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
        messages: &Bound<'py, PyAny>,
        timeout_s: Option<f64>,
        variant: Option<&Variant>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (encoder, timeout) = (self.encoder.bind(py), duration(timeout_s)?);
        let variant = variant.map(|variant| variant.inner.as_ref());
        // What comes from a generator is sent as it comes; what is there already goes together.
        let together =
            if messages.is_instance_of::<PyList>() || messages.is_instance_of::<PyTuple>() { TOGETHER } else { 1 };
        let (mut pending, mut sent) = (Vec::new(), Vec::new());
        let mut taken = Ok(());
        for message in messages.try_iter()? {
            match message.and_then(|message| Outgoing::of_record(encoder, &message)) {
                Ok(outgoing) => pending.push(outgoing),
                Err(error) => {
                    taken = Err(error); // Those before it are sent all the same.
                    break;
                }
            }
            if pending.len() >= together {
                self.send_all(py, topic, &mut pending, variant, timeout, &mut sent)?;
            }
        }
        self.send_all(py, topic, &mut pending, variant, timeout, &mut sent)?;
        taken?;
        let handles = sent.into_iter().map(|inner| DeliveryHandle::make(py, inner, self.limit));
        PyList::new(py, handles.collect::<PyResult<Vec<_>>>()?)
    }

    /// Begins a transaction when those before it have ended. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn begin(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Transaction> {
        let timeout = duration(timeout_s)?.or(self.produce_timeout);
        let begun = py.detach(|| self.inner.begin(&Deadline::after(timeout)));
        let transaction = begun.map_err(|error| to_python(&error))?;
        let encoder = self.encoder.clone_ref(py);
        Ok(Transaction::new(transaction, encoder, self.produce_timeout, self.limit))
    }

    /// Sends what is queued without lingering and waits for the answers; whether all came. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn flush(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let timeout = duration(timeout_s)?.or(self.limit);
        py.detach(|| self.inner.flush(timeout)).map_err(|error| to_python(&error))
    }

    /// Flushes and ends; how many messages were not answered. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn close(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<usize> {
        let timeout = duration(timeout_s)?.or(self.limit);
        py.detach(|| self.inner.close(timeout)).map_err(|error| to_python(&error))
    }

    /// Messages and bytes that wait for their delivery report; none when closed.
    fn queued(&self) -> (usize, usize) {
        let counters = self.inner.counters();
        (counters.queued_messages, counters.queued_bytes)
    }
}

/// Settings of topics that differ from the producer's.
#[pyclass(frozen, module = "awoke._native")]
pub struct Variant {
    inner: Arc<engine::Variant>,
}

#[pymethods]
impl Variant {
    #[new]
    fn new(properties: Properties) -> PyResult<Self> {
        let inner = engine::Variant::new(properties.config()).map_err(|error| to_python(&error))?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// What the sender of a message holds until the broker has answered for it.
///
/// So many that are free are kept for the next: a `produce_many` of as many makes the interpreter allocate, and look for garbage, no more.
#[pyclass(frozen, freelist = 16384, module = "awoke._native")]
pub struct DeliveryHandle {
    inner: Arc<engine::DeliveryHandle>,
    /// When an answer is certain to have come; `None` when the settings say never.
    limit: Option<Duration>,
}

impl DeliveryHandle {
    /// The handle as an object of Python's. It refers to no other, so the garbage collector, which looks at every object of our
    /// classes, is told not to: of handles there are many.
    pub fn make(py: Python<'_>, inner: Arc<engine::DeliveryHandle>, limit: Option<Duration>) -> PyResult<Py<Self>> {
        let handle = Py::new(py, Self { inner, limit })?;
        // SAFETY: the object is alive, and the GIL held; untracking it again when it goes is allowed.
        unsafe { ffi::PyObject_GC_UnTrack(handle.as_ptr().cast()) };
        Ok(handle)
    }

    /// The handle, in the process of its producer only: elsewhere its lock may be held for ever.
    pub fn here(&self) -> PyResult<&Arc<engine::DeliveryHandle>> {
        self.inner.check_process().map_err(|error| to_python(&error))?;
        Ok(&self.inner)
    }
}

#[pymethods]
impl DeliveryHandle {
    /// Waits until the broker has answered; see the stub. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait<'py>(&self, py: Python<'py>, timeout_s: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let since = Instant::now();
        let deadline = Deadline::after(duration(timeout_s)?.or(self.limit));
        if !wait_for_delivery(py, self.here()?, &deadline)? {
            let error = Error::TimedOut { operation: self.inner.operation(), waited: since.elapsed() };
            return Err(delivery_to_python(&error));
        }
        self.result(py)
    }

    /// The answer, which must be there; see the stub. Does not block.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static DELIVERY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static NEW_TUPLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let answer = self
            .here()?
            .result()
            .unwrap_or_else(|| Err(Error::TimedOut { operation: self.inner.operation(), waited: Duration::ZERO }));
        let delivery = answer.map_err(|error| delivery_to_python(&error))?;
        let class = DELIVERY.import(py, "awoke._waiting", "Delivery")?;
        let timestamp_ms = (delivery.timestamp_ms >= 0).then_some(delivery.timestamp_ms);
        // A named tuple's own way to be made is a function of Python's, and a synchronous sender makes one for each message.
        let new = NEW_TUPLE.get_or_try_init(py, || py.get_type::<PyTuple>().getattr("__new__").map(Bound::unbind))?;
        let fields = (&**self.inner.topic(), delivery.partition, delivery.offset, timestamp_ms);
        new.bind(py).call1((class, fields))
    }

    /// Whether the answer is there. Does not block.
    fn done(&self) -> PyResult<bool> {
        Ok(self.here()?.completion().is_done())
    }

    /// The error that the answer is, or `None`; the answer must be there. Does not block.
    fn exception(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        self.here()?;
        Ok(self.result(py).err())
    }

    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        self.inner.topic()
    }

    /// When the answer came, in nanoseconds of `time.monotonic_ns()`; 0 when nobody was waiting for it then.
    #[getter]
    fn woken_at_ns(&self) -> PyResult<u64> {
        Ok(self.here()?.woken_at_ns())
    }

    /// Has `token` posted to the mailbox when the answer comes; `False` when it is there already.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> PyResult<bool> {
        Ok(self.here()?.completion().register(Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token }))
    }

    /// Calls `callback(handle)` when the answer is there, on a thread of awoke's, never on librdkafka's.
    fn add_done_callback(slf: &Bound<'_, Self>, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.py().import("awoke._waiting")?.call_method1("call_back", (slf, callback)).map(drop)
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().here()?;
        slf.py().import("awoke._waiting")?.call_method1("resolve", (slf,))?.call_method0("__await__")
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

/// Waits for an answer with the GIL released, serving the producer's reports if nobody else does; whether it came.
fn wait_for_delivery(py: Python<'_>, handle: &engine::DeliveryHandle, deadline: &Deadline) -> PyResult<bool> {
    if handle.completion().is_done() {
        return Ok(true);
    }
    if !is_main_thread() {
        return Ok(py.detach(|| handle.wait_until(deadline).is_some()));
    }
    wait_in_turn(py, deadline, |waker| handle.begin_wait(waker))?;
    Ok(handle.completion().is_done())
}

impl Turn for engine::Waiting<'_> {
    fn step(&self, deadline: &Deadline) -> bool {
        self.step(deadline)
    }

    fn is_follower(&self) -> bool {
        self.is_follower()
    }
}

/// Has these messages sent without lingering, together. Does not block.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
pub fn hurry_all(py: Python<'_>, handles: Vec<Py<DeliveryHandle>>) -> PyResult<()> {
    let natives = handles.iter().map(|handle| handle.get().here().cloned()).collect::<PyResult<Vec<_>>>()?;
    py.detach(|| engine::DeliveryHandle::hurry_all(natives.iter().map(|handle| &**handle)));
    Ok(())
}

/// The place of the first handle that is not answered, or badly; `None` when all messages were delivered. Does not block.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
pub fn first_undelivered(handles: Vec<Py<DeliveryHandle>>) -> PyResult<Option<usize>> {
    for (place, handle) in handles.iter().enumerate() {
        if !matches!(handle.get().here()?.result(), Some(Ok(_))) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Waits until all handles are answered, well or badly; whether they are. Blocks with the GIL released.
#[pyfunction]
#[pyo3(signature = (handles, timeout_s=None))]
#[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
pub fn wait_all(py: Python<'_>, handles: Vec<Py<DeliveryHandle>>, timeout_s: Option<f64>) -> PyResult<bool> {
    let limit = handles.iter().filter_map(|handle| handle.get().limit).max();
    let natives = handles.iter().map(|handle| handle.get().here().cloned()).collect::<PyResult<Vec<_>>>()?;
    if natives.iter().all(|handle| handle.completion().is_done()) {
        return Ok(true);
    }
    let timeout = duration(timeout_s)?.or(limit);
    if is_main_thread() {
        engine::DeliveryHandle::hurry_all(natives.iter().map(|handle| &**handle));
        // One after the other, because a signal must be able to end the wait: each is done or waited for.
        let deadline = Deadline::after(timeout);
        for handle in &natives {
            if !wait_for_delivery(py, handle, &deadline)? {
                natives.iter().for_each(|handle| handle.give_up());
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(py.detach(|| engine::DeliveryHandle::wait_all(&natives, timeout)))
}
