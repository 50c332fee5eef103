//! The admission control of a service, as the threads of its responder see it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::consume::{PartitionScheduler, Work};
use awoke_engine::rpc::{self as engine, CallRef, Received};
use awoke_engine::wake::{EventFd, Notifier as EngineNotifier};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyList;

use crate::consume::Scheduler;
use crate::errors::Result;
use crate::events::EventBox;
use crate::rpc::responder::IncomingCall;
use crate::rpc::responder::request_record::RequestRecord;
use crate::values::duration;
use crate::waiting::Notifier;

/// Records that need no call, of which `next_or_notify` takes in no more at once.
const RECORDS_OF_TURN: usize = 16;

/// Hands out the calls of a service that are to be executed, or answered without being executed. Any thread.
///
/// `options` is an `awoke.rpc.responder.methods.Options`, each method an `awoke.rpc.responder.methods.Method`.
/// `on_cancelled` gets the callbacks of a call that was cancelled, on the thread that receives the cancellation.
#[pyclass(frozen, module = "awoke._native")]
pub struct Admission {
    inner: engine::Admission<PyCall>,
    /// `awoke.rpc.responder.methods.Method` of each method.
    methods: Vec<Py<PyAny>>,
    scheduler: Arc<PartitionScheduler>,
    /// Called with the callbacks of a call that was cancelled.
    on_cancelled: Py<PyAny>,
}

/// A reference to a call, for the engine's tables.
#[derive(Debug)]
struct PyCall(Py<IncomingCall>);

impl Clone for PyCall {
    fn clone(&self) -> Self {
        // The engine is called with the GIL held, so this does not wait for it.
        Self(Python::attach(|py| self.0.clone_ref(py)))
    }
}

impl PartialEq for PyCall {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

impl CallRef for PyCall {
    fn call(&self) -> &engine::IncomingCall {
        &self.0.get().call
    }
}

/// The result of receiving work.
enum Next {
    /// A call that is to be executed, or answered without being executed.
    Call(Py<IncomingCall>),
    /// Nothing for the caller.
    Nothing,
    /// There will be no more work.
    Closed,
}

/// The settings of a service: `awoke.rpc.responder.methods.Options`.
#[derive(FromPyObject)]
struct Options {
    threads: usize,
    tasks: usize,
    waiting_max: usize,
    waiting_bytes_max: usize,
    queue_time_share_max: f64,
    clock_skew_s: f64,
    timeout_max_s: f64,
    request_bytes_max: usize,
    secret: Option<PyBackedBytes>,
    results_max: usize,
    results_bytes_max: usize,
    results_ttl_s: f64,
}

impl Options {
    fn into_engine(self, calls_topic: &str) -> engine::AdmissionOptions {
        engine::AdmissionOptions {
            bytes_max: self.request_bytes_max,
            clock_skew_s: self.clock_skew_s,
            queue_time_share_max: self.queue_time_share_max,
            timeout_max_s: self.timeout_max_s,
            key: self.secret.map(|secret| engine::SigningKey::new(&secret, calls_topic)),
            threads: self.threads,
            tasks: self.tasks,
            waiting_max: self.waiting_max,
            waiting_bytes_max: self.waiting_bytes_max,
            results_max: self.results_max,
            results_bytes_max: self.results_bytes_max,
            results_ttl: Duration::try_from_secs_f64(self.results_ttl_s).unwrap_or(Duration::MAX),
        }
    }
}

/// The settings of a method: `awoke.rpc.responder.methods.Method`.
#[derive(FromPyObject)]
struct Method {
    name: String,
    is_async: bool,
    is_stream: bool,
    concurrency: Option<usize>,
    callers: Option<HashSet<String>>,
    deadline_s: Option<f64>,
}

impl Method {
    fn into_engine(self) -> Result<engine::MethodRules> {
        let Self { name, is_async, is_stream, concurrency, callers, deadline_s } = self;
        let time_limit = duration(deadline_s)?;
        Ok(engine::MethodRules { name, is_async, is_stream, concurrency, callers, time_limit })
    }
}

#[pymethods]
impl Admission {
    #[new]
    fn new(
        scheduler: &Scheduler,
        options: Options,
        calls_topic: &str,
        methods: Vec<Bound<'_, PyAny>>,
        events: &EventBox,
        on_cancelled: Py<PyAny>,
    ) -> Result<Self> {
        let rules = methods.iter().map(|method| method.extract::<Method>()?.into_engine()).collect::<Result<_>>()?;
        let options = options.into_engine(calls_topic);
        let inner = engine::Admission::new(options, rules, calls_topic, Arc::clone(&events.inner));
        let methods = methods.into_iter().map(Bound::unbind).collect();
        Ok(Self { inner, methods, scheduler: Arc::clone(&scheduler.inner), on_cancelled })
    }

    /// Replaces the topics that replies may go to (at first none), each with its number of partitions. Does not block.
    fn set_reply_topics(&self, partitions: HashMap<String, i32>) {
        self.inner.set_reply_topics(partitions);
    }

    /// Returns the next call to be executed, or answered without being executed. Blocks with the GIL released.
    ///
    /// None once the scheduler has closed.
    fn next(&self, py: Python<'_>) -> Result<Option<Py<IncomingCall>>> {
        let mut next = self.scheduler.try_next_work();
        loop {
            // Without the GIL even if there is work: other threads have their turn between two records that need no
            // call.
            let work = next.take().unwrap_or_else(|| py.detach(|| self.scheduler.next_work(&Deadline::NEVER)));
            match self.receive(py, work)? {
                Next::Call(call) => return Ok(Some(call)),
                Next::Nothing => (),
                Next::Closed => return Ok(None),
            }
        }
    }

    /// Returns the next call, as `next`, the seconds until the caller has to ask again, and whether the scheduler has
    /// closed.
    ///
    /// Without work, the notifier is notified as soon as there is some. After a few records that need no call, the
    /// caller has to ask again at once: others have their turn in between. Does not block.
    fn next_or_notify(
        &self,
        py: Python<'_>,
        notifier: &Notifier,
    ) -> Result<(Option<Py<IncomingCall>>, Option<f64>, bool)> {
        let notifier: Arc<dyn EngineNotifier> = Arc::<EventFd>::clone(&notifier.inner);
        for _ in 0..RECORDS_OF_TURN {
            let work = match self.scheduler.next_work_or_notify(&notifier) {
                (Some(work), _) => work,
                (None, moment) => {
                    let left = Deadline::NEVER.or_earlier(moment).remaining();
                    return Ok((None, left.map(|left| left.as_secs_f64()), false));
                }
            };
            match self.receive(py, work)? {
                Next::Call(call) => return Ok((Some(call), None, false)),
                Next::Nothing => (),
                Next::Closed => return Ok((None, None, true)),
            }
        }
        Ok((None, Some(0.0), false))
    }

    /// Records a call's final answer; returns the duplicates that were waiting for it. Does not block.
    ///
    /// `kind` is None if the call failed, or its answer must not be cached.
    #[pyo3(signature = (call, kind, body))]
    fn end(&self, call: &Bound<'_, IncomingCall>, kind: Option<&str>, body: &[u8]) -> Vec<Py<IncomingCall>> {
        let kind = kind.and_then(|kind| engine::ReplyKind::of(kind.as_bytes()));
        let duplicates = self.inner.end(&PyCall(call.clone().unbind()), kind, body);
        duplicates.into_iter().map(|PyCall(duplicate)| duplicate).collect()
    }

    /// Releases the place of a call that has ended; returns the call that takes it, if one waits. Does not block.
    fn release(&self, call: &Bound<'_, IncomingCall>) -> Option<Py<IncomingCall>> {
        self.inner.release(&PyCall(call.clone().unbind())).map(|PyCall(next)| next)
    }

    /// Returns how many calls run, and how many wait in the queue. Does not block.
    fn counts(&self) -> (usize, usize) {
        self.inner.counts()
    }
}

impl Admission {
    /// Receives work. Does not block.
    fn receive(&self, py: Python<'_>, work: Work) -> Result<Next> {
        match self.inner.receive_work(work, |call, lent| self.wrap(py, call, lent))? {
            Received::Call(PyCall(call)) => return Ok(Next::Call(call)),
            Received::Queued(PyCall(call)) => call.get().record.release(py, true)?,
            Received::Cancelled(PyCall(call)) => self.tell_cancelled(py, &call)?,
            Received::Nothing => (),
            Received::Closed => return Ok(Next::Closed),
        }
        Ok(Next::Nothing)
    }

    fn wrap(&self, py: Python<'_>, call: engine::IncomingCall, lent: engine::LentRecord) -> Result<PyCall> {
        let target = call.method_number().map(|number| self.methods[number].clone_ref(py));
        Ok(PyCall(Py::new(py, IncomingCall::new(call, RequestRecord::new(lent), target))?))
    }

    /// Calls the callbacks of a call that was cancelled, on this thread.
    fn tell_cancelled(&self, py: Python<'_>, call: &Py<IncomingCall>) -> Result<()> {
        let callbacks = call.get().take_callbacks();
        if !callbacks.is_empty() {
            self.on_cancelled.call1(py, (PyList::new(py, callbacks)?,))?;
        }
        Ok(())
    }
}
