//! A caller of remote methods, as Python sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use awoke_engine::rpc as engine;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::call::{Call, part};
use crate::delivery_handle::DeliveryHandle;
use crate::errors::{duration, to_python};
use crate::events::EventBox;
use crate::open::Open;
use crate::properties::Properties;
use crate::record::{Bytes, Headers, header_list};

/// Calls methods of a service.
#[pyclass(frozen, module = "awoke._native")]
pub struct Caller {
    inner: Open<engine::Caller>,
}

/// The service that a caller calls: `awoke.rpc.caller.opening.ServiceAddress`.
#[derive(FromPyObject)]
struct ServiceAddress {
    calls_topic: String,
    replies_topic: String,
    group: String,
    name: String,
    calls_max: usize,
    bytes_max: usize,
    reply_bytes_max: usize,
    secret: Option<PyBackedBytes>,
}

/// The arguments of a request, borrowed from Python.
struct CallArguments<'a> {
    method: &'a str,
    body: &'a [u8],
    timeout: Duration,
    key: Option<&'a [u8]>,
    idempotency_key: Option<&'a [u8]>,
    headers: Headers,
}

impl CallArguments<'_> {
    fn with<T>(&self, call: impl FnOnce(&engine::Request<'_>) -> T) -> T {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (&**name, value.as_ref().map(Bytes::as_slice))).collect();
        call(&engine::Request {
            method: self.method,
            body: self.body,
            key: self.key,
            timeout: self.timeout,
            idempotency_key: self.idempotency_key,
            headers: &headers,
        })
    }
}

#[pymethods]
impl Caller {
    /// Finds the end of the caller's partition of the reply topic. Blocks with the GIL released.
    #[new]
    fn new(
        py: Python<'_>,
        producer_properties: Properties,
        consumer_properties: Properties,
        address: ServiceAddress,
        timeout_s: f64,
        events: &EventBox,
    ) -> PyResult<Self> {
        let key = address.secret.map(|secret| engine::SigningKey::new(&secret, &address.calls_topic));
        let options = engine::CallerOptions {
            calls_topic: address.calls_topic,
            replies_topic: address.replies_topic,
            group: address.group,
            name: address.name,
            calls_max: address.calls_max,
            bytes_max: address.bytes_max,
            reply_bytes_max: address.reply_bytes_max,
            key,
        };
        let events = Arc::clone(&events.inner);
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        let (producer, consumer) = (producer_properties.config(), consumer_properties.config());
        let made = py.detach(|| engine::Caller::new(&producer, &consumer, options, events, timeout));
        Ok(Self { inner: Open::new("caller", made.map_err(|error| to_python(&error))?) })
    }

    /// Makes a call; returns `None` if there is no room and it may not wait. Blocks with the GIL released if it waits.
    #[pyo3(signature = (method, body, timeout_s, *, key=None, idempotency_key=None, headers=None, replies=1,
        window=None, may_wait=true))]
    #[allow(clippy::too_many_arguments)] // The arguments of a call; all but three by name.
    fn call(
        &self,
        py: Python<'_>,
        method: &str,
        body: &[u8],
        timeout_s: f64,
        key: Option<&[u8]>,
        idempotency_key: Option<&[u8]>,
        headers: Option<&Bound<'_, PyAny>>,
        replies: usize,
        window: Option<u64>,
        may_wait: bool,
    ) -> PyResult<Option<Call>> {
        let arguments = borrowed(method, body, timeout_s, key, idempotency_key, headers)?;
        let wanted = match (window, replies) {
            (Some(window), _) => engine::Wanted::Stream(window),
            (None, 1) => engine::Wanted::One,
            (None, several) => engine::Wanted::Several(several),
        };
        self.begin(py, &arguments, wanted, may_wait)
    }

    /// Makes a call, waits for the reply, and takes it: `call`, `wait` and `result` in one. Blocks with the GIL
    /// released.
    #[pyo3(signature = (method, body, timeout_s, key=None, idempotency_key=None, headers=None))]
    #[allow(clippy::too_many_arguments)] // As for a call.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        body: &[u8],
        timeout_s: f64,
        key: Option<&[u8]>,
        idempotency_key: Option<&[u8]>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let too_late = || part(py, engine::Next::Failed(engine::Failure::DeadlineExceeded));
        if timeout_s <= 0.0 {
            return too_late();
        }
        let arguments = borrowed(method, body, timeout_s, key, idempotency_key, headers)?;
        let Some(call) = self.begin(py, &arguments, engine::Wanted::One, true)? else { return too_late() };
        if let Err(interrupted) = call.wait(py, None) {
            drop(call.cancel()); // The interruption is raised, whatever else is wrong.
            return Err(interrupted);
        }
        call.result(py)?.map_or_else(too_late, Ok)
    }

    /// Sends a request without a reply. Blocks with the GIL released while the producer's queue is full.
    #[pyo3(signature = (method, body, timeout_s, *, key=None, idempotency_key=None, headers=None))]
    #[allow(clippy::too_many_arguments)] // As for a call.
    fn cast(
        &self,
        py: Python<'_>,
        method: &str,
        body: &[u8],
        timeout_s: f64,
        key: Option<&[u8]>,
        idempotency_key: Option<&[u8]>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<DeliveryHandle>> {
        let arguments = borrowed(method, body, timeout_s, key, idempotency_key, headers)?;
        let caller = self.open()?;
        let sent = arguments.with(|request| py.detach(|| caller.cast(request)));
        DeliveryHandle::make(py, sent.map_err(|error| to_python(&error))?, Some(arguments.timeout))
    }

    /// Topic and partition of the caller's replies.
    fn replies_at(&self) -> PyResult<(String, i32)> {
        let caller = self.open()?;
        let at = caller.replies_at();
        Ok((at.topic.to_string(), at.partition))
    }

    /// Returns how many calls have not ended.
    fn open_calls(&self) -> PyResult<usize> {
        Ok(self.open()?.open_calls())
    }

    /// The caller's counters.
    fn counters(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        let caller = self.open()?;
        let counters = caller.counters();
        Ok([
            ("begun", &counters.begun),
            ("replies", &counters.replies),
            ("late", &counters.late),
            ("duplicate", &counters.duplicate),
            ("unknown", &counters.unknown),
            ("foreign", &counters.foreign),
            ("forged", &counters.forged),
            ("too_large", &counters.too_large),
            ("undecodable", &counters.undecodable),
            ("expired", &counters.expired),
        ]
        .into_iter()
        .map(|(name, counter)| (name, counter.get()))
        .collect())
    }

    /// Ends all calls and delivers sent requests. Blocks with the GIL released. Closing again, or in a forked
    /// child, does nothing.
    fn close(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        if let Ok(Some(caller)) = self.inner.take() {
            let closed = py.detach(|| {
                let closed = caller.close(timeout);
                drop(caller);
                closed
            });
            closed.map_err(|error| to_python(&error))?;
        }
        Ok(())
    }
}

impl Caller {
    /// Makes a call; returns `None` if there is no room and it may not wait.
    fn begin(
        &self,
        py: Python<'_>,
        arguments: &CallArguments<'_>,
        wanted: engine::Wanted,
        may_wait: bool,
    ) -> PyResult<Option<Call>> {
        let caller = self.open()?;
        let begun = arguments.with(|request| match caller.try_call(request, wanted)? {
            None if may_wait => py.detach(|| caller.call(request, wanted)).map(Some),
            begun => Ok(begun),
        });
        let begun = begun.map_err(|error| to_python(&error))?;
        Ok(begun.map(|inner| Call::new(inner, &caller)))
    }

    fn open(&self) -> PyResult<Arc<engine::Caller>> {
        self.inner.get().map_err(|error| to_python(&error))
    }
}

fn borrowed<'a>(
    method: &'a str,
    body: &'a [u8],
    timeout_s: f64,
    key: Option<&'a [u8]>,
    idempotency_key: Option<&'a [u8]>,
    headers: Option<&Bound<'_, PyAny>>,
) -> PyResult<CallArguments<'a>> {
    let timeout = duration(Some(timeout_s))?.unwrap_or_default();
    let headers = headers.map(header_list).transpose()?.unwrap_or_default();
    Ok(CallArguments { method, body, timeout, key, idempotency_key, headers })
}
