//! A caller of remote methods and its calls, as Python sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::fork_guard::Birthplace;
use awoke_engine::rpc as engine;
use awoke_engine::wake::Waker;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::{duration, to_python};
use crate::events::EventBox;
use crate::open::Open;
use crate::producer::DeliveryHandle;
use crate::properties::Properties;
use crate::record::{Bytes, Headers, header_list};
use crate::waiting::{Mailbox, Turn, is_main_thread, wait_in_turn};

/// Asks the responders of a service.
#[pyclass(frozen, module = "awoke._native")]
pub struct Caller {
    inner: Open<engine::Caller>,
}

/// Whom a caller asks, as Python says it: `awoke.rpc.caller.Whom`.
#[derive(FromPyObject)]
struct Whom {
    calls_topic: String,
    replies_topic: String,
    group: String,
    name: String,
    calls_max: usize,
    bytes_max: usize,
    reply_bytes_max: usize,
    secret: Option<PyBackedBytes>,
}

/// A request's parts, which are Python's for as long as the call lasts.
struct Parts<'a> {
    method: &'a str,
    body: &'a [u8],
    timeout: Duration,
    key: Option<&'a [u8]>,
    idempotency_key: Option<&'a [u8]>,
    headers: Headers,
}

impl Parts<'_> {
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
    /// Finds the caller's place for replies. Blocks with the GIL released.
    #[new]
    fn new(
        py: Python<'_>,
        producer_properties: Properties,
        consumer_properties: Properties,
        whom: Whom,
        timeout_s: f64,
        events: &EventBox,
    ) -> PyResult<Self> {
        let key = whom.secret.map(|secret| engine::SigningKey::new(&secret, &whom.calls_topic));
        let options = engine::CallerOptions {
            calls_topic: whom.calls_topic,
            replies_topic: whom.replies_topic,
            group: whom.group,
            name: whom.name,
            calls_max: whom.calls_max,
            bytes_max: whom.bytes_max,
            reply_bytes_max: whom.reply_bytes_max,
            key,
        };
        let events = Arc::clone(&events.inner);
        let timeout = duration(Some(timeout_s))?.unwrap_or_default();
        let (producer, consumer) = (producer_properties.config(), consumer_properties.config());
        let made = py.detach(|| engine::Caller::new(&producer, &consumer, options, events, timeout));
        Ok(Self { inner: Open::new("caller", made.map_err(|error| to_python(&error))?) })
    }

    /// Begins a call; `None` where there is no room and it may not wait for it, which it does with the GIL released.
    #[pyo3(signature = (method, body, timeout_s, *, key=None, idempotency_key=None, headers=None, replies=1, window=None, may_wait=true))]
    #[allow(clippy::too_many_arguments)] // What a call has; all but three by name.
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
        let parts = parts(method, body, timeout_s, key, idempotency_key, headers)?;
        let wanted = match (window, replies) {
            (Some(window), _) => engine::Wanted::Stream(window),
            (None, 1) => engine::Wanted::One,
            (None, several) => engine::Wanted::Several(several),
        };
        self.begin(py, &parts, wanted, may_wait)
    }

    /// Calls, waits for the reply, and takes it: `call`, `wait` and `result` in one. Blocks with the GIL released.
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
        let parts = parts(method, body, timeout_s, key, idempotency_key, headers)?;
        let Some(call) = self.begin(py, &parts, engine::Wanted::One, true)? else { return too_late() };
        if let Err(interrupted) = call.wait(py, None) {
            drop(call.cancel()); // Nobody waits any more; what interrupted comes before what else is wrong.
            return Err(interrupted);
        }
        call.result(py)?.map_or_else(too_late, Ok)
    }

    /// Calls without wanting a reply; see the stub. Blocks with the GIL released while the producer's queue is full.
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
        let parts = parts(method, body, timeout_s, key, idempotency_key, headers)?;
        let caller = self.open()?;
        let sent = parts.with(|request| py.detach(|| caller.cast(request)));
        DeliveryHandle::make(py, sent.map_err(|error| to_python(&error))?, Some(parts.timeout))
    }

    /// Topic and partition where replies come in.
    fn replies_at(&self) -> PyResult<(String, i32)> {
        let caller = self.open()?;
        let at = caller.replies_at();
        Ok((at.topic.to_string(), at.partition))
    }

    /// How many calls have not ended.
    fn open_calls(&self) -> PyResult<usize> {
        Ok(self.open()?.open_calls())
    }

    /// What the caller counts.
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
            ("huge", &counters.huge),
            ("undecodable", &counters.undecodable),
            ("expired", &counters.expired),
        ]
        .into_iter()
        .map(|(name, counter)| (name, counter.get()))
        .collect())
    }

    /// Ends all calls, and delivers what was sent. Blocks with the GIL released. Closing again, or in a forked child, does nothing.
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
    /// Begins a call; `None` where there is no room and it may not wait for it.
    fn begin(
        &self,
        py: Python<'_>,
        parts: &Parts<'_>,
        wanted: engine::Wanted,
        may_wait: bool,
    ) -> PyResult<Option<Call>> {
        let caller = self.open()?;
        let begun = parts.with(|request| match caller.try_call(request, wanted)? {
            None if may_wait => py.detach(|| caller.call(request, wanted)).map(Some),
            begun => Ok(begun),
        });
        let birthplace = caller.birthplace();
        let begun = begun.map_err(|error| to_python(&error))?;
        Ok(begun.map(|inner| Call { inner, birthplace, caller: Arc::downgrade(&caller) }))
    }

    fn open(&self) -> PyResult<Arc<engine::Caller>> {
        self.inner.get().map_err(|error| to_python(&error))
    }
}

fn parts<'a>(
    method: &'a str,
    body: &'a [u8],
    timeout_s: f64,
    key: Option<&'a [u8]>,
    idempotency_key: Option<&'a [u8]>,
    headers: Option<&Bound<'_, PyAny>>,
) -> PyResult<Parts<'a>> {
    let timeout = duration(Some(timeout_s))?.unwrap_or_default();
    let headers = headers.map(header_list).transpose()?.unwrap_or_default();
    Ok(Parts { method, body, timeout, key, idempotency_key, headers })
}

/// A call that was begun.
#[pyclass(frozen, freelist = 256, module = "awoke._native")]
pub struct Call {
    inner: Arc<engine::Call>,
    birthplace: Birthplace,
    /// Weak: a call that is kept, by an exception say, must keep no client. When it is gone, the call has ended.
    caller: Weak<engine::Caller>,
}

#[pymethods]
impl Call {
    /// Waits until something comes, at most until the call's deadline; whether it is there. Blocks with the GIL released.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        self.check_process()?;
        if self.inner.is_ready() {
            return Ok(true);
        }
        let deadline = Deadline::after(duration(timeout_s)?);
        let Some(caller) = self.caller.upgrade() else { return Ok(self.inner.is_ready()) };
        if is_main_thread() {
            let deadline = deadline.or_earlier(Some(self.inner.until()));
            wait_in_turn(py, &deadline, |waker| caller.begin_wait(&self.inner, waker))?;
        }
        // On the main thread the deadline may have ended that wait before it ended the call.
        Ok(py.detach(|| {
            let is_there = self.inner.is_ready() || caller.wait(&self.inner, &deadline);
            drop(caller); // Without the GIL: it may be the last.
            is_there
        }))
    }

    /// Takes what comes next; see the stub. Does not block.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.check_process()?;
        let next = match self.caller.upgrade() {
            Some(caller) => caller.try_next(&self.inner).map_err(|error| to_python(&error))?,
            None => self.inner.try_next(),
        };
        next.map(|next| part(py, next)).transpose()
    }

    /// Whether something is there to be taken. Does not block.
    fn done(&self) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.is_ready())
    }

    /// Whether no more replies come. Does not block.
    fn has_ended(&self) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.has_ended())
    }

    /// Gives the call up; `False` when it had ended before. Does not block.
    fn cancel(&self) -> PyResult<bool> {
        self.check_process()?;
        let Some(caller) = self.caller.upgrade() else { return Ok(false) };
        caller.cancel(&self.inner).map_err(|error| to_python(&error))
    }

    /// Has `token` posted to the mailbox when something is there; `False` when it is now.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> PyResult<bool> {
        self.check_process()?;
        Ok(self.inner.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox.inner), token }))
    }

    /// The call's name, as in its header.
    #[getter]
    fn id(&self) -> [u8; 16] {
        self.inner.id().to_bytes()
    }

    /// When whoever waited was woken, in nanoseconds of `time.monotonic_ns()`; 0 when nobody was.
    #[getter]
    fn woken_at_ns(&self) -> u64 {
        self.inner.woken_at_ns()
    }
}

impl Call {
    fn check_process(&self) -> PyResult<()> {
        self.birthplace.check("call").map_err(|error| to_python(&error))
    }
}

impl Turn for engine::Waiting {
    fn step(&self, deadline: &Deadline) -> bool {
        self.step(deadline)
    }

    fn is_follower(&self) -> bool {
        self.is_follower()
    }
}

/// What comes next of a call, as Python is told.
fn part(py: Python<'_>, next: engine::Next) -> PyResult<Bound<'_, PyAny>> {
    let none = || py.None().into_bound(py);
    let parts = match next {
        engine::Next::Reply(reply) => (reply.kind.name(), PyBytes::new(py, &reply.body).into_any(), none()),
        engine::Next::End => ("end", none(), none()),
        engine::Next::Failed(failure) => {
            let (code, text) = explain(&failure);
            ("failed", code.into_pyobject(py)?.into_any(), text.into_pyobject(py)?.into_any())
        }
    };
    Ok(parts.into_pyobject(py)?.into_any())
}

/// The code of `awoke.rpc.errors`, and what is to be said about it.
fn explain(failure: &engine::Failure) -> (&'static str, String) {
    match failure {
        engine::Failure::DeadlineExceeded => ("deadline_exceeded", String::new()),
        engine::Failure::Unavailable(text) => ("unavailable", text.clone()),
        engine::Failure::NobodyThere(text) => ("nobody_there", text.clone()),
        engine::Failure::Cancelled => ("cancelled", "its caller has cancelled it".to_owned()),
        engine::Failure::TooLarge(bytes) => {
            ("resource_exhausted", format!("the reply of {bytes} bytes is larger than reply_bytes_max"))
        }
        engine::Failure::Gap { expected, came } => {
            ("data_loss", format!("reply {came} of the stream came where {expected} should have"))
        }
        engine::Failure::Closed => ("closed", "its caller was closed".to_owned()),
    }
}
