//! A call that is to be executed, and the replies to it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awoke_engine::Error;
use awoke_engine::clock::monotonic_ns;
use awoke_engine::events::EventBox;
use awoke_engine::kafka::{Batch as EngineBatch, TopicPartition};
use awoke_engine::produce::Record;
use awoke_engine::rpc::{Answer, IntakeOptions, ReplySent, RequestHead, Ticket, Times, protocol};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::errors::{duration, to_python};
use crate::message::{Batch, Message, bytes};
use crate::producer::{DeliveryHandle, Producer};
use crate::scheduler::Job;

/// What all calls of a service have in common.
pub struct Service {
    pub name: Arc<str>,
    pub options: Arc<IntakeOptions>,
    pub events: Arc<EventBox>,
}

/// A method of the service, as Python described it.
pub struct Method {
    /// `awoke.rpc.methods.Method`.
    pub object: Py<PyAny>,
    pub deadline_s: Option<f64>,
}

/// A call: what its record says, who carries it out and for how long, and what was sent for it.
///
/// Until it is over it may refer, by who is to be told of its end, to those who know of it; then no more.
#[pyclass(frozen, freelist = 256, module = "awoke._native")]
pub struct Work {
    id: Py<PyBytes>,
    name: Py<PyString>,
    caller: Box<str>,
    reply_to: Option<(Box<str>, i32)>,
    idempotency_key: Option<Box<[u8]>>,
    signed_names: Box<[Box<str>]>,
    times: Times,
    service: Arc<Service>,
    method: Option<Py<PyAny>>,
    deadline_s: Option<f64>,
    /// How the intake knows it; `None` where it was refused before.
    ticket: Option<Ticket>,
    /// When its caller stops waiting, on the monotonic clock.
    caller_until_ns: u64,
    /// When it is to end: then, or when its method's time is over.
    until_ns: AtomicU64,
    is_given_up: AtomicBool,
    /// The next reply's place; of streams.
    sequence: Option<AtomicU64>,
    /// Where its record stands.
    at: TopicPartition,
    offset: i64,
    /// librdkafka's memory, and the place in it; `None` when it was let go of.
    lent: Mutex<Option<(Arc<EngineBatch>, usize)>>,
    /// Made where somebody asks for it.
    message: PyOnceLock<Py<Message>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    verdict: Option<&'static str>,
    known: Option<Arc<Answer>>,
    /// `None` where its offset has been committed before.
    job: Option<Py<Job>>,
    began_ns: u64,
    ran_s: f64,
    /// The reply that was sent last.
    last: Option<Py<DeliveryHandle>>,
    contribution: Option<Py<PyAny>>,
    window: Option<Py<PyAny>>,
    /// Who is to be told when its caller cancels.
    told: Vec<Py<PyAny>>,
    /// As its method sees it. Not kept longer than the call lasts: each refers to the other.
    incoming: Option<Py<PyAny>>,
    is_over: bool,
}

/// What is made into a call.
pub struct Parts<'a> {
    pub head: RequestHead<'a>,
    pub times: Times,
    pub service: &'a Arc<Service>,
    pub method: Option<&'a Method>,
    pub is_stream: bool,
    pub ticket: Option<Ticket>,
    pub verdict: Option<&'static str>,
    pub lent: (Arc<EngineBatch>, usize),
    pub job: Py<Job>,
}

/// The moment so many seconds from now, on the monotonic clock.
fn moment_ns(seconds: f64) -> u64 {
    monotonic_ns().saturating_add_signed((seconds * 1e9) as i64)
}

fn left_s(until_ns: u64) -> f64 {
    until_ns.saturating_sub(monotonic_ns()) as f64 / 1e9
}

impl Work {
    pub fn new(py: Python<'_>, parts: Parts<'_>) -> PyResult<Self> {
        let Parts { head, times, service, method, is_stream, ticket, verdict, lent, job } = parts;
        let until_ns = moment_ns(times.left_s);
        let mut state = State { verdict, job: Some(job), ..State::default() };
        if is_stream {
            static WINDOW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let window = WINDOW.import(py, "awoke.rpc.window", "Window")?.call1((head.credit,))?;
            state.told.push(window.getattr("wake")?.unbind());
            state.window = Some(window.unbind());
        }
        Ok(Self {
            id: PyBytes::new(py, head.id).unbind(),
            name: PyString::new(py, head.method).unbind(),
            caller: head.caller.into(),
            reply_to: head.reply_to.map(|(topic, partition)| (topic.into(), partition)),
            idempotency_key: head.idempotency_key.map(Into::into),
            signed_names: head.names_signed().map(Into::into).collect(),
            times,
            service: Arc::clone(service),
            method: method.map(|method| method.object.clone_ref(py)),
            deadline_s: method.and_then(|method| method.deadline_s),
            ticket,
            caller_until_ns: until_ns,
            until_ns: AtomicU64::new(until_ns),
            is_given_up: AtomicBool::new(false),
            sequence: is_stream.then(AtomicU64::default),
            at: lent.0.topic_partition().clone(),
            offset: lent.0.message(lent.1).offset(),
            lent: Mutex::new(Some(lent)),
            message: PyOnceLock::new(),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lent(&self) -> MutexGuard<'_, Option<(Arc<EngineBatch>, usize)>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub const fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// It is not to be executed.
    pub fn refuse(&self, verdict: &'static str) {
        self.state().verdict = Some(verdict);
    }

    /// It was executed before.
    pub fn know(&self, answer: Arc<Answer>) {
        let mut state = self.state();
        (state.verdict, state.known) = (Some("known"), Some(answer));
    }

    /// Its caller waits no longer: whoever wanted to know is told, on this thread.
    pub fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.is_given_up.store(true, Ordering::Release);
        let told = std::mem::take(&mut self.state().told);
        if told.is_empty() {
            return Ok(());
        }
        py.import("awoke.rpc.context")?.call_method1("tell", (PyList::new(py, told)?,)).map(drop)
    }

    /// Its caller takes so many more.
    pub fn add_credit(&self, py: Python<'_>, credit: u64) -> PyResult<()> {
        let window = self.state().window.as_ref().map(|window| window.clone_ref(py));
        window.map_or(Ok(()), |window| window.call_method1(py, "add", (credit,)).map(drop))
    }

    /// Whether anybody wants a reply of this kind. Of a cancelled call only its end is told: another than its caller may have cancelled it.
    fn is_wanted(&self, kind: &str) -> bool {
        let is_unwanted = kind == protocol::ITEM && self.is_given_up.load(Ordering::Acquire);
        !is_unwanted && monotonic_ns() < self.caller_until_ns
    }

    fn with_reply<T>(
        &self,
        py: Python<'_>,
        kind: &str,
        body: &[u8],
        code: Option<&str>,
        call: impl FnOnce(&[(&str, Option<&[u8]>)]) -> T,
    ) -> T {
        let times = format!("{:.0},{:.0}", self.times.queued_s * 1e6, self.state().ran_s * 1e6);
        let place = self.sequence.as_ref().map(|sequence| sequence.fetch_add(1, Ordering::Relaxed).to_string());
        let id = self.id.as_bytes(py);
        let mut headers = Vec::with_capacity(6);
        headers.push((protocol::KIND, Some(kind.as_bytes())));
        headers.push((protocol::ID, Some(id)));
        headers.push((protocol::TIMES, Some(times.as_bytes())));
        if let Some(place) = &place {
            headers.push((protocol::SEQUENCE, Some(place.as_bytes())));
        }
        if let Some(code) = code {
            headers.push((protocol::CODE, Some(code.as_bytes())));
        }
        let key = self.service.options.key.as_ref();
        let signature = key.map(|key| key.sign_reply(id, kind, place.as_deref(), code, body));
        if let Some(signature) = &signature {
            headers.push((protocol::SIGNATURE, Some(signature)));
        }
        call(&headers)
    }
}

#[pymethods]
impl Work {
    /// Why it is not to be executed; `None` where it is.
    #[getter]
    fn verdict(&self) -> Option<&'static str> {
        self.state().verdict
    }

    /// The answer of a call that was executed before: its kind and body.
    #[getter]
    fn known<'py>(&self, py: Python<'py>) -> Option<(&'static str, Bound<'py, PyBytes>)> {
        let known = self.state().known.clone();
        known.map(|answer| (answer.kind.name(), PyBytes::new(py, &answer.body)))
    }

    /// What its caller has named it.
    #[getter]
    fn id(&self, py: Python<'_>) -> Py<PyBytes> {
        self.id.clone_ref(py)
    }

    /// The method that is called, by its name.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    /// The method; `None` where the service has none of this name.
    #[getter]
    fn method(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.method.as_ref().map(|method| method.clone_ref(py))
    }

    /// Who calls.
    #[getter]
    fn caller(&self) -> &str {
        &self.caller
    }

    /// Where replies go; `None` where nobody wants one.
    #[getter]
    fn reply_to(&self) -> Option<(&str, i32)> {
        self.reply_to.as_ref().map(|(topic, partition)| (&**topic, *partition))
    }

    /// The same for all attempts at one call.
    #[getter]
    fn idempotency_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        bytes(py, self.idempotency_key.as_deref())
    }

    /// The names of other headers that its caller has signed; `None` where nothing is signed.
    #[getter]
    fn signed_names(&self) -> Option<Vec<&str>> {
        let is_signed = self.service.options.key.is_some();
        is_signed.then(|| self.signed_names.iter().map(|name| &**name).collect())
    }

    /// Topic, partition and offset of its record.
    #[getter]
    fn place(&self) -> (&str, i32, i64) {
        (&self.at.topic, self.at.partition, self.offset)
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

    /// When it is to end, on `time.monotonic()`.
    #[getter]
    fn until_s(&self) -> f64 {
        self.until_ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// How long it may still take, at least 0.
    #[getter]
    fn remaining_s(&self) -> f64 {
        left_s(self.until_ns.load(Ordering::Relaxed))
    }

    /// Whether its caller waits no more, or its time is over.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire) || monotonic_ns() >= self.until_ns.load(Ordering::Relaxed)
    }

    /// Whether it was cancelled.
    #[getter]
    fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// How long it ran.
    #[getter]
    fn ran_s(&self) -> f64 {
        self.state().ran_s
    }

    /// The job that brought it; `None` where its offset has been committed before.
    #[getter]
    fn job(&self, py: Python<'_>) -> Option<Py<Job>> {
        self.state().job.as_ref().map(|job| job.clone_ref(py))
    }

    /// The reply that was sent last.
    #[getter]
    fn last(&self, py: Python<'_>) -> Option<Py<DeliveryHandle>> {
        self.state().last.as_ref().map(|last| last.clone_ref(py))
    }

    /// Of a stream: how many replies may be under way.
    #[getter]
    fn window(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().window.as_ref().map(|window| window.clone_ref(py))
    }

    /// Where replies go that are committed with the offset.
    #[getter]
    fn contribution(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().contribution.as_ref().map(|contribution| contribution.clone_ref(py))
    }

    #[setter]
    fn set_contribution(&self, contribution: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut self.state().contribution, contribution);
        drop(before); // Not under the lock.
    }

    /// The arguments as they came. Raises `ClosedError` when the memory was let go of before anybody asked for the message.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some((native, index)) = &*self.lent() {
            return Ok(bytes(py, Some(native.message(*index).value().unwrap_or_default())));
        }
        let value = self.message(py)?.get().raw_value(py);
        Ok(if value.is_none() { bytes(py, Some(b"")) } else { value })
    }

    /// The record itself. Raises `ClosedError` when the memory was let go of before anybody asked.
    #[getter]
    fn message(&self, py: Python<'_>) -> PyResult<Py<Message>> {
        // What is lent first: it is let go of when the message is there.
        let lent = self.lent().clone();
        if let Some(message) = self.message.get(py) {
            return Ok(message.clone_ref(py));
        }
        let lent = lent.ok_or_else(|| to_python(&Error::Closed { what: "call" }))?;
        Ok(self.message_of(py, lent)?.clone_ref(py))
    }

    /// The call as its method sees it: `awoke.rpc.context.IncomingCall`.
    #[getter]
    fn incoming(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        static INCOMING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (py, work) = (slf.py(), slf.get());
        if let Some(incoming) = &work.state().incoming {
            return Ok(incoming.clone_ref(py));
        }
        let fresh = INCOMING.import(py, "awoke.rpc.context", "IncomingCall")?.call1((slf,))?.unbind();
        let mut state = work.state();
        if let Some(incoming) = &state.incoming {
            let incoming = incoming.clone_ref(py);
            drop(state); // Before the other one goes.
            return Ok(incoming);
        }
        if !state.is_over {
            state.incoming = Some(fresh.clone_ref(py));
        }
        Ok(fresh)
    }

    /// Has a function called when the caller cancels, on the thread that learns of it; whether it has not done so already. Does not block.
    fn when_cancelled(&self, function: Py<PyAny>) -> bool {
        let mut state = self.state();
        // Said before those who are to be told are looked for.
        if self.is_given_up.load(Ordering::Acquire) {
            return false;
        }
        if !state.is_over {
            state.told.push(function);
        }
        true
    }

    /// Has it called no more.
    fn forget(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let told: Vec<_> = self.state().told.iter().map(|each| each.clone_ref(py)).collect();
        for each in told {
            if each.bind(py).eq(function)? {
                let mut state = self.state();
                let place = state.told.iter().position(|other| other.is(&each));
                let gone = place.map(|place| state.told.remove(place));
                drop(state);
                drop(gone); // Not under the lock.
            }
        }
        Ok(())
    }

    /// It may run now; why it is not to be executed: "fenced", "cancelled", "expired" or "impatient". Does not block.
    fn begin(&self, py: Python<'_>) -> Option<&'static str> {
        let job = self.job(py);
        if job.is_some_and(|job| !job.get().hold_partition()) {
            return Some("fenced");
        }
        if self.is_given_up() {
            return Some("cancelled");
        }
        if self.is_cancelled() {
            return Some("expired");
        }
        if self.service.options.is_impatient(self.times.budget_s, left_s(self.caller_until_ns)) {
            return Some("impatient");
        }
        if let Some(deadline_s) = self.deadline_s {
            self.until_ns.fetch_min(moment_ns(deadline_s), Ordering::Relaxed);
        }
        None
    }

    /// Its method begins.
    fn start(&self) {
        self.state().began_ns = monotonic_ns();
    }

    /// Its method has ended.
    fn stop(&self) {
        let mut state = self.state();
        state.ran_s = monotonic_ns().saturating_sub(state.began_ns) as f64 / 1e9;
    }

    /// Takes its job from it, for who ends it before the call. Does not block.
    fn take_job(&self) -> Option<Py<Job>> {
        self.state().job.take()
    }

    /// Sends a reply, if anybody wants it; see the stub. Blocks with the GIL released while the producer's queue is full.
    #[pyo3(signature = (producer, kind, body, code=None))]
    fn reply(&self, py: Python<'_>, producer: &Producer, kind: &str, body: &[u8], code: Option<&str>) -> PyResult<()> {
        let Some((topic, partition)) = self.reply_to.as_ref().filter(|_| self.is_wanted(kind)) else { return Ok(()) };
        let sent = self.with_reply(py, kind, body, code, |headers| {
            let record = Record { value: Some(body), partition: Some(*partition), headers, ..Record::default() };
            producer.send(py, topic, &record, None)
        })?;
        let before = self.state().last.replace(sent);
        drop(before); // Not under the lock.
        Ok(())
    }

    /// The headers of a reply, for who sends it in another way; `None` where nobody wants it.
    #[pyo3(signature = (kind, body, code=None))]
    fn reply_headers<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        body: &[u8],
        code: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        if self.reply_to.is_none() || !self.is_wanted(kind) {
            return Ok(None);
        }
        let list = |headers: &[(&str, Option<&[u8]>)]| {
            PyList::new(py, headers.iter().map(|(name, value)| (*name, bytes(py, *value))))
        };
        self.with_reply(py, kind, body, code, list).map(Some)
    }

    /// It waits, or goes on elsewhere: it must not keep librdkafka's memory, and with it the client, alive. Does not block.
    pub fn step_aside(&self, py: Python<'_>, is_held: bool) -> PyResult<()> {
        // The one that executes it by now may say that it has no job any more.
        if let Some(job) = self.job(py) {
            job.get().step_aside(is_held);
        }
        self.let_go(py, true)
    }

    /// It is over; what somebody may look at later is kept. Does not block.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (incoming, told) = {
            let mut state = self.state();
            state.is_over = true;
            (state.incoming.take(), std::mem::take(&mut state.told))
        };
        drop(told);
        self.let_go(py, incoming.is_some())
    }

    /// Ends its job: when its last reply is acknowledged or refused for good (otherwise refused, it comes again after `delay_s`), or now.
    /// Does not block.
    fn end_job(&self, py: Python<'_>, delay_s: f64) -> PyResult<()> {
        let (job, last) = {
            let mut state = self.state();
            (state.job.take(), state.last.as_ref().map(|last| last.clone_ref(py)))
        };
        let Some(last) = last else {
            // The partition's present owner sees the call, too.
            drop(job.map(|job| job.get().complete()));
            return Ok(());
        };
        let sent = ReplySent {
            job: job.and_then(|job| job.get().take()),
            at: self.at.clone(),
            offset: self.offset,
            delay: duration(Some(delay_s))?.unwrap_or_default(),
            client: Arc::clone(&self.service.name),
            events: Arc::clone(&self.service.events),
        };
        sent.watch(last.get().here()?);
        Ok(())
    }

    /// It is executed again, after `delay_s`, by the owner of the partition then. Does not block.
    fn retry(&self, py: Python<'_>, delay_s: f64) -> PyResult<()> {
        let closed = self.close(py);
        let job = self.state().job.take();
        job.map_or(Ok(()), |job| job.get().retry(delay_s)).and(closed)
    }
}

impl Work {
    /// Lets go of librdkafka's memory; what `is_kept` is copied first. Again, it does nothing.
    fn let_go(&self, py: Python<'_>, is_kept: bool) -> PyResult<()> {
        // Taken from here on: a call that waits in the queue may be over before the thread that put it there comes to this.
        let lent = self.lent().clone();
        if let Some(lent) = lent
            && (is_kept || self.message.get(py).is_some())
        {
            self.message_of(py, lent)?.get().detach(py);
        }
        // Only now: who asks for the body meanwhile finds one or the other.
        self.lent().take();
        Ok(())
    }

    /// The record, from what is lent. Others may run meanwhile: `PyOnceLock` lets go of the GIL.
    fn message_of(&self, py: Python<'_>, lent: (Arc<EngineBatch>, usize)) -> PyResult<&Py<Message>> {
        self.message.get_or_try_init(py, || {
            let (native, index) = lent;
            let batch = Py::new(py, Batch::new(native, index, index + 1, 1, None))?;
            Py::new(py, Message::new(batch, 0))
        })
    }
}
