//! A caller of remote methods, as Python sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use awoke_engine::rpc as engine;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::errors::Result;
use crate::events::EventBox;
use crate::open::Open;
use crate::produce::{DeliveryHandle, header_list, header_views};
use crate::properties::Properties;
use crate::rpc::call::{Call, part};
use crate::values::seconds;

/// Calls methods of a service.
///
/// Making it finds the end of the caller's partition of the reply topic, and blocks with the GIL released.
#[pyclass(frozen, module = "awoke._native")]
pub struct Caller {
    inner: Open<engine::Caller>,
}

/// The service that a caller calls: `awoke.rpc.caller.connection.ServiceAddress`.
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

#[pymethods]
impl Caller {
    #[new]
    fn new(
        py: Python<'_>,
        producer_properties: Properties,
        consumer_properties: Properties,
        address: ServiceAddress,
        timeout_s: f64,
        events: &EventBox,
    ) -> Result<Self> {
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
        let timeout = seconds(timeout_s)?;
        let (producer, consumer) = (producer_properties.config(), consumer_properties.config());
        let made = py.detach(|| engine::Caller::new(&producer, &consumer, options, events, timeout));
        Ok(Self { inner: Open::new("caller", made?) })
    }

    /// Makes a call; returns `None` if there is no room and it may not wait. Blocks with the GIL released if it waits.
    #[pyo3(signature = (request, replies=1, window=None, may_wait=true))]
    fn call(
        &self,
        py: Python<'_>,
        request: RequestParts<'_>,
        replies: usize,
        window: Option<u64>,
        may_wait: bool,
    ) -> Result<Option<Call>> {
        let wanted = match (window, replies) {
            (Some(window), _) => engine::Wanted::Stream(window),
            (None, 1) => engine::Wanted::One,
            (None, several) => engine::Wanted::Several(several),
        };
        with_request(&request, |request| self.begin(py, request, wanted, may_wait))
    }

    /// Makes a call, waits for the reply, and takes it: `call`, `wait` and `result` in one. Blocks with the GIL
    /// released.
    fn ask<'py>(&self, py: Python<'py>, request: RequestParts<'py>) -> Result<Bound<'py, PyAny>> {
        let too_late = || part(py, engine::Next::Failed(engine::Failure::DeadlineExceeded));
        if request.2 <= 0.0 {
            return too_late();
        }
        let begun = with_request(&request, |request| self.begin(py, request, engine::Wanted::One, true))?;
        let Some(call) = begun else { return too_late() };
        if let Err(interrupted) = call.wait(py, None) {
            drop(call.cancel()); // The interruption is raised, whatever else is wrong.
            return Err(interrupted);
        }
        call.result(py)?.map_or_else(too_late, Ok)
    }

    /// Sends a request without a reply. Blocks with the GIL released while the producer's queue is full.
    fn cast(&self, py: Python<'_>, request: RequestParts<'_>) -> Result<Py<DeliveryHandle>> {
        let caller = self.open()?;
        with_request(&request, |request| DeliveryHandle::make(py, py.detach(|| caller.cast(request))?))
    }

    /// Topic and partition of the caller's replies.
    fn replies_at(&self) -> Result<(String, i32)> {
        let caller = self.open()?;
        let at = caller.replies_at();
        Ok((at.topic.to_string(), at.partition))
    }

    /// Returns how many calls have not ended.
    fn open_calls(&self) -> Result<usize> {
        Ok(self.open()?.open_calls())
    }

    /// The caller's counters.
    fn counters(&self) -> Result<BTreeMap<&'static str, u64>> {
        Ok(self.open()?.counters().by_name().into())
    }

    /// Ends all calls and delivers sent requests. Blocks with the GIL released. Closing again, or in a forked
    /// child, does nothing.
    fn close(&self, py: Python<'_>, timeout_s: f64) -> Result<()> {
        let timeout = seconds(timeout_s)?;
        Ok(self.inner.close(py, |caller| caller.close(timeout)).unwrap_or(Ok(()))?)
    }
}

impl Caller {
    /// Makes a call; returns `None` if there is no room and it may not wait.
    fn begin(
        &self,
        py: Python<'_>,
        request: &engine::Request<'_>,
        wanted: engine::Wanted,
        may_wait: bool,
    ) -> Result<Option<Call>> {
        let caller = self.open()?;
        let begun = match caller.try_call(request, wanted)? {
            None if may_wait => Some(py.detach(|| caller.call(request, wanted))?),
            begun => begun,
        };
        Ok(begun.map(|inner| Call::new(inner, &caller)))
    }

    fn open(&self) -> Result<Arc<engine::Caller>> {
        Ok(self.inner.get()?)
    }
}

/// A request as Python gives it: method, body, time-out in seconds, key, idempotency key and headers.
type RequestParts<'py> = (PyBackedStr, PyBackedBytes, f64, OptionalBytes, OptionalBytes, Option<Bound<'py, PyAny>>);
type OptionalBytes = Option<PyBackedBytes>;

/// Calls `send` with a request, whose bytes are Python's.
fn with_request<T>(
    (method, body, timeout_s, key, idempotency_key, headers): &RequestParts<'_>,
    send: impl FnOnce(&engine::Request<'_>) -> Result<T>,
) -> Result<T> {
    let (timeout, key, idempotency_key) = (seconds(*timeout_s)?, key.as_deref(), idempotency_key.as_deref());
    let headers = headers.as_ref().map(header_list).transpose()?.unwrap_or_default();
    send(&engine::Request { method, body, key, timeout, idempotency_key, headers: &header_views(&headers) })
}
