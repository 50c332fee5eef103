//! The producer, as Python sees it.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::produce as engine;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::Result;
use crate::events::EventBox;
use crate::produce::record::record_parts;
use crate::produce::{DeliveryHandle, Outgoing, Transaction};
use crate::properties::Properties;
use crate::values::duration;

/// The number of messages of a list that are given to librdkafka at once.
const TOGETHER: usize = 256;

/// Takes messages in and returns a delivery handle for each.
#[pyclass(frozen, subclass, module = "awoke._native")]
pub struct Producer {
    inner: Arc<engine::Producer>,
    /// Turns a value that is not bytes, text or nothing into bytes.
    pub encoder: Py<PyAny>,
    /// The longest wait of `produce` for a full queue when its caller gives no time-out.
    produce_timeout: Option<Duration>,
    /// Gets the parts of each message, and returns an `awoke.Outgoing`, which is sent.
    middleware: Option<Py<PyAny>>,
    /// The same for messages to a topic that is more than its name: it may know the formats of its messages.
    typed: Option<Py<PyAny>>,
}

impl Producer {
    /// Returns what the messages to a topic pass.
    fn passed(&self, topic: &Bound<'_, PyString>) -> Option<&Py<PyAny>> {
        let middleware = self.middleware.as_ref();
        if topic.is_exact_instance_of::<PyString>() { middleware } else { self.typed.as_ref().or(middleware) }
    }

    /// Sends a record; blocks with the GIL released while the queue is full.
    pub fn send(
        &self,
        py: Python<'_>,
        topic: &str,
        record: &engine::Record<'_>,
        timeout: Option<Duration>,
    ) -> Result<Arc<engine::DeliveryHandle>> {
        if let Some(handle) = self.inner.try_produce(topic, record)? {
            return Ok(handle);
        }
        let deadline = Deadline::after(timeout.or(self.produce_timeout));
        Ok(py.detach(|| self.inner.produce(topic, record, &deadline))?)
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
    ) -> Result<()> {
        let result = Outgoing::with_all(pending, variant, |records| {
            let before = sent.len();
            self.inner.try_produce_many(topic, records, sent)?;
            let rest = &records[sent.len() - before..];
            if rest.is_empty() {
                return Ok(());
            }
            let timeout = timeout.or(self.produce_timeout);
            py.detach(|| self.inner.produce_many(topic, rest, timeout, sent))
        });
        pending.clear();
        Ok(result?)
    }
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (properties, encoder, produce_timeout_s, idle_after_s, events, for_calls=false,
        middleware=None, typed=None))]
    fn new(
        py: Python<'_>,
        properties: Properties,
        encoder: Py<PyAny>,
        produce_timeout_s: Option<f64>,
        idle_after_s: Option<f64>,
        events: &EventBox,
        for_calls: bool,
        middleware: Option<Py<PyAny>>,
        typed: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let events = Arc::clone(&events.inner);
        let kind = if for_calls { engine::ProducerOptions::for_calls() } else { engine::ProducerOptions::default() };
        let options = engine::ProducerOptions { idle_after: duration(idle_after_s)?, ..kind };
        let inner = py.detach(|| engine::Producer::new(&properties.config(), options, events))?;
        Ok(Self { inner: Arc::new(inner), encoder, produce_timeout: duration(produce_timeout_s)?, middleware, typed })
    }

    /// Middleware of an app may refer to the app, which refers to its producer.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.encoder)?;
        visit.call(&self.middleware)?;
        visit.call(&self.typed)
    }

    /// Sends a message; the handle has the broker's answer.
    ///
    /// The value is bytes, text, None (a tombstone) or anything that msgspec writes as JSON. Blocks only if the queue
    /// is full: it then waits for room up to `timeout_s` (None: the setting `produce_timeout_s`; 0: not at all), with
    /// the GIL released. Any thread.
    ///
    /// Raises:
    ///     QueueFull: no room in time; MessageTooLarge; EncodeError; KafkaError: refused at once, as for an unknown
    ///     partition; ClosedError; ForkedClientError. Nothing was sent then.
    #[pyo3(signature = (topic, value, *, key=None, headers=None, partition=None, timestamp_ms=None, timeout_s=None,
        variant=None))]
    fn produce(
        &self,
        py: Python<'_>,
        topic: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        partition: Option<i32>,
        timestamp_ms: Option<i64>,
        timeout_s: Option<f64>,
        variant: Option<&Variant>,
    ) -> Result<Py<DeliveryHandle>> {
        let encoder = self.encoder.bind(py);
        let variant = variant.map(|variant| variant.inner.as_ref());
        let timeout = duration(timeout_s)?;
        let sent = if let Some(middleware) = self.passed(topic) {
            let message = middleware.bind(py).call1((topic, value, key, headers, partition, timestamp_ms))?;
            let (topic, record) = Outgoing::of_message(encoder, &message)?;
            record.with(variant, |record| self.send(py, &topic, record, timeout))?
        } else {
            let (topic, record) =
                (topic.to_str()?, Outgoing::new(encoder, value, key, headers, partition, timestamp_ms)?);
            record.with(variant, |record| self.send(py, topic, record, timeout))?
        };
        DeliveryHandle::make(py, sent)
    }

    /// Sends messages in order; returns one handle for each.
    ///
    /// A message is a `Record`, a pair of value and key, or a value alone. Of a list or a tuple, many are sent at once,
    /// unless there is middleware; of any other iterable, each is sent when it comes. Blocks while the queue is full,
    /// up to `timeout_s` for each message. On an error, the messages before it have been sent.
    ///
    /// Raises:
    ///     QueueFull, MessageTooLarge, EncodeError, KafkaError, ClosedError, ForkedClientError: as `produce`.
    #[pyo3(signature = (topic, messages, *, timeout_s=None, variant=None))]
    fn produce_many<'py>(
        &self,
        py: Python<'py>,
        topic: &Bound<'py, PyString>,
        messages: &Bound<'py, PyAny>,
        timeout_s: Option<f64>,
        variant: Option<&Variant>,
    ) -> Result<Bound<'py, PyList>> {
        if self.passed(topic).is_some() {
            let handles = messages.try_iter()?.map(|message| {
                let (value, key, headers, partition, timestamp_ms) = record_parts(&message?)?;
                let (key, headers) = (key.as_ref(), headers.as_ref());
                self.produce(py, topic, &value, key, headers, partition, timestamp_ms, timeout_s, variant)
            });
            return Ok(PyList::new(py, handles.collect::<Result<Vec<_>>>()?)?);
        }
        let (encoder, timeout, topic) = (self.encoder.bind(py), duration(timeout_s)?, topic.to_str()?);
        let variant = variant.map(|variant| variant.inner.as_ref());
        // Messages of a generator are sent as they come; those of a list or a tuple are sent together.
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
        let handles = sent.into_iter().map(|inner| DeliveryHandle::make(py, inner));
        Ok(PyList::new(py, handles.collect::<Result<Vec<_>>>()?)?)
    }

    /// Begins a transaction when those before it have ended. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn begin(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<Transaction> {
        let timeout = duration(timeout_s)?.or(self.produce_timeout);
        let inner = py.detach(|| self.inner.begin(&Deadline::after(timeout)))?;
        let encoder = self.encoder.clone_ref(py);
        Ok(Transaction { inner, encoder, produce_timeout: self.produce_timeout })
    }

    /// Sends queued messages without lingering and waits for the answers; returns whether all came. Blocks.
    #[pyo3(signature = (timeout_s=None))]
    fn flush(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<bool> {
        let timeout = duration(timeout_s)?.or(self.inner.answer_timeout());
        Ok(py.detach(|| self.inner.flush(timeout))?)
    }

    /// Flushes and ends; returns how many messages were not answered. Blocks.
    #[pyo3(signature = (timeout_s=None))]
    fn close(&self, py: Python<'_>, timeout_s: Option<f64>) -> Result<usize> {
        let timeout = duration(timeout_s)?.or(self.inner.answer_timeout());
        Ok(py.detach(|| self.inner.close(timeout))?)
    }

    /// Returns messages and bytes that wait for their delivery report; 0 when closed. Does not block.
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
    fn new(properties: Properties) -> Result<Self> {
        let inner = engine::Variant::new(properties.config())?;
        Ok(Self { inner: Arc::new(inner) })
    }
}
