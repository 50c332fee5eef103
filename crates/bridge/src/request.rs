//! A call as its responder sees it, and the replies to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use awoke_engine::Error;
use awoke_engine::kafka::Batch as EngineBatch;
use awoke_engine::produce::Record;
use awoke_engine::rpc::{RequestHead, Times, protocol};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::errors::to_python;
use crate::message::{Batch, Message, bytes};
use crate::producer::{DeliveryHandle, Producer};

/// What a record says of a call.
#[pyclass(frozen, freelist = 256, module = "awoke._native")]
pub struct Request {
    kind: Py<PyString>,
    id: Py<PyBytes>,
    method: Py<PyString>,
    caller: Box<str>,
    reply_to: Option<(Box<str>, i32)>,
    idempotency_key: Option<Box<[u8]>>,
    credit: Option<u64>,
    times: Times,
    size_bytes: usize,
    /// librdkafka's memory, and the place in it; `None` when it was let go of.
    lent: Mutex<Option<(Arc<EngineBatch>, usize)>>,
    /// Made where somebody asks for it.
    message: PyOnceLock<Py<Message>>,
}

impl Request {
    /// Reads the message at this place. Raises `ValueError`: "huge" or "undecodable".
    pub fn read(
        py: Python<'_>,
        native: &Arc<EngineBatch>,
        index: usize,
        bytes_max: usize,
        clock_skew_s: f64,
    ) -> PyResult<Self> {
        let message = native.message(index);
        let size_bytes = message.value().map_or(0, <[u8]>::len) + message.key().map_or(0, <[u8]>::len);
        if size_bytes > bytes_max {
            return Err(PyValueError::new_err("huge"));
        }
        let headers = message.headers();
        let head = RequestHead::read(&headers).map_err(|_| PyValueError::new_err("undecodable"))?;
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
        Ok(Self {
            kind: kind_of(py, head.kind).unbind(),
            id: PyBytes::new(py, head.id).unbind(),
            method: PyString::new(py, head.method).unbind(),
            caller: head.caller.into(),
            reply_to: head.reply_to.map(|(topic, partition)| (topic.into(), partition)),
            idempotency_key: head.idempotency_key.map(Into::into),
            credit: head.credit,
            times: head.times(message.timestamp().0, now_ms, clock_skew_s),
            size_bytes,
            lent: Mutex::new(Some((Arc::clone(native), index))),
            message: PyOnceLock::new(),
        })
    }

    fn lent(&self) -> MutexGuard<'_, Option<(Arc<EngineBatch>, usize)>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Request {
    /// What it is, as in its header.
    #[getter]
    fn kind(&self, py: Python<'_>) -> Py<PyString> {
        self.kind.clone_ref(py)
    }

    /// What its caller has named it.
    #[getter]
    fn id(&self, py: Python<'_>) -> Py<PyBytes> {
        self.id.clone_ref(py)
    }

    /// The method that is called.
    #[getter]
    fn method(&self, py: Python<'_>) -> Py<PyString> {
        self.method.clone_ref(py)
    }

    /// Who calls.
    #[getter]
    fn caller(&self) -> &str {
        &self.caller
    }

    /// Where replies go; `None` where nobody wants one.
    #[getter]
    fn reply_topic(&self) -> Option<&str> {
        self.reply_to.as_ref().map(|(topic, _)| &**topic)
    }

    /// The partition there.
    #[getter]
    fn reply_partition(&self) -> Option<i32> {
        self.reply_to.as_ref().map(|(_, partition)| *partition)
    }

    /// The same for all attempts at one call.
    #[getter]
    fn idempotency_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        bytes(py, self.idempotency_key.as_deref())
    }

    /// How many replies may be under way, or how many more.
    #[getter]
    fn credit(&self) -> Option<u64> {
        self.credit
    }

    /// How long the caller was ready to wait.
    #[getter]
    fn budget_s(&self) -> f64 {
        self.times.budget_s
    }

    /// How long it still waited when the request was read.
    #[getter]
    fn left_s(&self) -> f64 {
        self.times.left_s
    }

    /// From the call to the reading.
    #[getter]
    fn queued_s(&self) -> f64 {
        self.times.queued_s
    }

    /// Key and body together.
    #[getter]
    fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The arguments as they came. Raises `ClosedError` when the memory was let go of before anybody asked for the message.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(message) = self.message.get(py) {
            let value = message.get().raw_value(py);
            return Ok(if value.is_none() { bytes(py, Some(b"")) } else { value });
        }
        let lent = self.lent();
        let (native, index) = lent.as_ref().ok_or_else(|| to_python(&Error::Closed { what: "call" }))?;
        Ok(bytes(py, Some(native.message(*index).value().unwrap_or_default())))
    }

    /// The record itself. Raises `ClosedError` when the memory was let go of before anybody asked.
    #[getter]
    fn message(&self, py: Python<'_>) -> PyResult<Py<Message>> {
        let make = || {
            // Taken by `let_go` only, when the message is there: who asks for the body meanwhile finds one or the other.
            let lent = self.lent().clone();
            let (native, index) = lent.ok_or_else(|| to_python(&Error::Closed { what: "call" }))?;
            let batch = Py::new(py, Batch::new(native, index, index + 1, 1, None))?;
            Py::new(py, Message::new(batch, 0))
        };
        Ok(self.message.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Lets go of librdkafka's memory; what `is_kept` is copied first. Again, it does nothing. Does not block.
    fn let_go(&self, py: Python<'_>, is_kept: bool) -> PyResult<()> {
        // A call that stands in line may be over before whoever put it there comes to this.
        let is_lent = self.lent().is_some();
        if is_lent && (is_kept || self.message.get(py).is_some()) {
            self.message(py)?.get().detach();
        }
        self.lent().take();
        Ok(())
    }

    /// Sends a reply; see the stub. Blocks with the GIL released while the producer's queue is full.
    #[pyo3(signature = (producer, kind, body, ran_s, code=None, sequence=None, signature=None))]
    #[allow(clippy::too_many_arguments)] // The parts that a reply has.
    fn reply(
        &self,
        py: Python<'_>,
        producer: &Producer,
        kind: &str,
        body: &[u8],
        ran_s: f64,
        code: Option<&str>,
        sequence: Option<u64>,
        signature: Option<&[u8]>,
    ) -> PyResult<Py<DeliveryHandle>> {
        let (topic, partition) = self.reply_to.as_ref().ok_or_else(|| PyValueError::new_err("nobody wants a reply"))?;
        self.with_headers(py, kind, ran_s, code, sequence, signature, |headers| {
            let record = Record { value: Some(body), partition: Some(*partition), headers, ..Record::default() };
            producer.send(py, topic, &record, None)
        })
    }

    /// The headers of a reply, for who sends it in another way.
    #[pyo3(signature = (kind, ran_s, code=None, sequence=None, signature=None))]
    fn reply_headers<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        ran_s: f64,
        code: Option<&str>,
        sequence: Option<u64>,
        signature: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with_headers(py, kind, ran_s, code, sequence, signature, |headers| {
            PyList::new(py, headers.iter().map(|(name, value)| (*name, bytes(py, *value))))
        })
    }
}

/// What stands in the header, which anybody may have written: no more of it is made to last than what the protocol knows.
fn kind_of<'py>(py: Python<'py>, kind: &str) -> Bound<'py, PyString> {
    match kind {
        protocol::CALL => intern!(py, protocol::CALL).clone(),
        protocol::CAST => intern!(py, protocol::CAST).clone(),
        protocol::CANCEL => intern!(py, protocol::CANCEL).clone(),
        protocol::MORE => intern!(py, protocol::MORE).clone(),
        other => PyString::new(py, other),
    }
}

impl Request {
    #[allow(clippy::too_many_arguments)] // As for a reply.
    fn with_headers<T>(
        &self,
        py: Python<'_>,
        kind: &str,
        ran_s: f64,
        code: Option<&str>,
        sequence: Option<u64>,
        signature: Option<&[u8]>,
        call: impl FnOnce(&[(&str, Option<&[u8]>)]) -> T,
    ) -> T {
        let times = format!("{:.0},{:.0}", self.times.queued_s * 1e6, ran_s * 1e6);
        let sequence = sequence.map(|sequence| sequence.to_string());
        let mut headers = Vec::with_capacity(6);
        headers.push((protocol::KIND, Some(kind.as_bytes())));
        headers.push((protocol::ID, Some(self.id.as_bytes(py))));
        headers.push((protocol::TIMES, Some(times.as_bytes())));
        if let Some(sequence) = &sequence {
            headers.push((protocol::SEQUENCE, Some(sequence.as_bytes())));
        }
        if let Some(code) = code {
            headers.push((protocol::CODE, Some(code.as_bytes())));
        }
        if let Some(signature) = signature {
            headers.push((protocol::SIGNATURE, Some(signature)));
        }
        call(&headers)
    }
}
