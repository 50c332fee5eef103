//! Where the calls of a service come in, as its threads see it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use awoke_engine::clock::Deadline;
use awoke_engine::consume::{Job as EngineJob, PartitionScheduler, Work as Next};
use awoke_engine::kafka::Batch;
use awoke_engine::rpc::{self as engine, Arrival, Entered, Received, RequestHead, Ticket, Times};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::events::EventBox;
use crate::scheduler::{Job, Scheduler};
use crate::work::{Method, Parts, Service, Work};

/// Hands out calls that are to be executed, and decides which are.
#[pyclass(frozen, module = "awoke._native")]
pub struct Intake {
    inner: engine::Intake<Held>,
    methods: Vec<Method>,
    service: Arc<Service>,
    scheduler: Arc<PartitionScheduler>,
}

/// A call, as the engine's tables hold it.
#[derive(Debug)]
struct Held(Py<Work>);

impl Clone for Held {
    fn clone(&self) -> Self {
        // The engine is called with the GIL held: this only finds it.
        Self(Python::attach(|py| self.0.clone_ref(py)))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

/// A call that could not be made an object of is looked at again after so long.
const RETRY_S: f64 = 1.0;

/// How a service answers, as Python says it: `awoke.rpc.methods.Options`.
#[derive(FromPyObject)]
struct Options {
    threads: usize,
    tasks: usize,
    waiting_max: usize,
    waiting_bytes_max: usize,
    patience: f64,
    clock_skew_s: f64,
    timeout_max_s: f64,
    request_bytes_max: usize,
    secret: Option<PyBackedBytes>,
    results_max: usize,
    results_bytes_max: usize,
    results_ttl_s: f64,
}

/// What is to be known of a method, as Python says it: `awoke.rpc.methods.Method`.
#[derive(FromPyObject)]
struct Described {
    name: String,
    is_async: bool,
    is_stream: bool,
    concurrency: Option<usize>,
    callers: Option<HashSet<String>>,
    deadline_s: Option<f64>,
}

#[pymethods]
impl Intake {
    #[new]
    fn new(
        scheduler: &Scheduler,
        options: Options,
        calls_topic: &str,
        reply_topics: HashMap<String, i32>,
        methods: Vec<Bound<'_, PyAny>>,
        events: &EventBox,
    ) -> PyResult<Self> {
        let options = engine::IntakeOptions {
            bytes_max: options.request_bytes_max,
            clock_skew_s: options.clock_skew_s,
            patience: options.patience,
            timeout_max_s: options.timeout_max_s,
            reply_topics,
            key: options.secret.map(|secret| engine::SigningKey::new(&secret, calls_topic)),
            threads: options.threads,
            tasks: options.tasks,
            waiting_max: options.waiting_max,
            waiting_bytes_max: options.waiting_bytes_max,
            results_max: options.results_max,
            results_bytes_max: options.results_bytes_max,
            results_ttl: Duration::try_from_secs_f64(options.results_ttl_s).unwrap_or(Duration::MAX),
        };
        let (mut rules, mut described) = (Vec::new(), Vec::new());
        for object in methods {
            let Described { name, is_async, is_stream, concurrency, callers, deadline_s } = object.extract()?;
            rules.push(engine::MethodRules { name, is_async, is_stream, concurrency, callers });
            described.push(Method { object: object.unbind(), deadline_s });
        }
        let inner = engine::Intake::new(options, rules);
        let (options, events) = (Arc::clone(inner.options()), Arc::clone(&events.inner));
        let service = Arc::new(Service { name: calls_topic.into(), options, events });
        Ok(Self { inner, methods: described, service, scheduler: Arc::clone(&scheduler.inner) })
    }

    /// Replaces the topics that replies may go to, each with the number of its partitions. Does not block.
    fn set_reply_topics(&self, partitions: HashMap<String, i32>) {
        self.inner.set_reply_topics(partitions);
    }

    /// The next call to be executed, or refused; `None` when the scheduler has closed. Blocks with the GIL released.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<Work>>> {
        let mut next = self.scheduler.try_next_work();
        loop {
            // Without the GIL also where there is something: behind what is settled here, others have their turn.
            let work = next.take().unwrap_or_else(|| py.detach(|| self.scheduler.next_work(&Deadline::NEVER)));
            match work {
                Next::Job(job) => {
                    if let Some(work) = self.receive(py, job)? {
                        return Ok(Some(work));
                    }
                }
                Next::Hook(hook) => hook.finish(),
                Next::Closed => return Ok(None),
                Next::Sort(_) | Next::EndOfPartition(_) | Next::TimedOut => (),
            }
        }
    }

    /// The answer to a call is final (`None`: an error, or none); who waits for the same. Does not block.
    #[pyo3(signature = (work, kind, body))]
    fn end(&self, py: Python<'_>, work: &Bound<'_, Work>, kind: Option<&str>, body: &[u8]) -> Vec<Py<Work>> {
        let Some(ticket) = work.get().ticket() else { return Vec::new() };
        let answer = || {
            let kind = engine::ReplyKind::of(kind?.as_bytes())?;
            Some(engine::Answer { kind, body: body.to_vec() })
        };
        let answer = if ticket.is_once() { answer() } else { None };
        let others = self.inner.end(ticket, &Held(work.clone().unbind()), answer);
        others.into_iter().map(|Held(other)| other.clone_ref(py)).collect()
    }

    /// The execution of a call has ended; what is to be executed in its place, if anything is. Does not block.
    fn leave(&self, work: &Work) -> Option<Py<Work>> {
        self.inner.leave(work.ticket()?).map(|Held(next)| next)
    }

    /// How many calls run, and how many wait in the queue. Does not block.
    fn counts(&self) -> (usize, usize) {
        self.inner.counts()
    }
}

impl Intake {
    /// Looks at what has come; the call, if it is to be executed or refused here and now.
    fn receive(&self, py: Python<'_>, mut job: EngineJob) -> PyResult<Option<Py<Work>>> {
        job.cut(1);
        let lent = (Arc::clone(job.batch()), job.first());
        let message = lent.0.message(lent.1);
        let headers = message.headers();
        let record = Received {
            headers: &headers,
            key: message.key(),
            value: message.value(),
            place: (message.partition(), message.offset()),
            sent_ms: message.timestamp().0,
        };
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
        match self.inner.read(&record, now_ms) {
            Ok(Arrival::Call(head, times)) => self.admit(py, job, &lent, head, times, record.size_bytes()),
            Ok(Arrival::Cancel(head, times)) => {
                let found = self.inner.cancel(&head, &times);
                drop(job.complete()); // The partition's present owner sees it, too.
                found.map_or(Ok(()), |Held(found)| found.get().cancel(py)).map(|()| None)
            }
            Ok(Arrival::More(head)) => {
                let found = self.inner.find(&head);
                drop(job.complete());
                let credit = head.credit.unwrap_or(0);
                found.map_or(Ok(()), |Held(found)| found.get().add_credit(py, credit)).map(|()| None)
            }
            Err(unwanted) => {
                let times = Times { budget_s: 0.0, left_s: 0.0, queued_s: 0.0 };
                self.make(py, job, &lent, RequestHead::default(), times, None, Err(reason(unwanted))).map(Some)
            }
        }
    }

    /// Begins a call, or puts it in the queue; the call, if it is to be executed or refused here and now.
    fn admit(
        &self,
        py: Python<'_>,
        job: EngineJob,
        lent: &Lent,
        head: RequestHead<'_>,
        times: Times,
        size_bytes: usize,
    ) -> PyResult<Option<Py<Work>>> {
        let (method, refusal) = self.inner.check(&head, &times);
        let ticket = match (method, refusal) {
            (Some(method), None) => Ok(self.inner.ticket(&head, method, size_bytes)),
            (_, refusal) => Err(refusal.map_or("unknown", refused)),
        };
        let work = self.make(py, job, lent, head, times, method, ticket)?;
        let Some(ticket) = work.get().ticket() else { return Ok(Some(work)) };
        match self.inner.enter(ticket, &Held(work.clone_ref(py))) {
            Entered::Now => (),
            Entered::Later => {
                work.get().step_aside(py, false)?;
                return Ok(None);
            }
            Entered::Known(answer) => work.get().know(answer),
            Entered::Refused(refusal) => work.get().refuse(refused(refusal)),
        }
        Ok(Some(work))
    }

    /// Makes a call of a record; without a ticket it is refused, for this reason.
    #[allow(clippy::too_many_arguments)] // What a call is made of.
    fn make(
        &self,
        py: Python<'_>,
        job: EngineJob,
        lent: &Lent,
        head: RequestHead<'_>,
        times: Times,
        method: Option<usize>,
        ticket: Result<Ticket, &'static str>,
    ) -> PyResult<Py<Work>> {
        let job = Py::new(py, Job::new(job))?;
        let parts = Parts {
            head,
            times,
            service: &self.service,
            method: method.map(|method| &self.methods[method]),
            is_stream: method.is_some_and(|method| self.inner.method(method).is_stream),
            verdict: ticket.as_ref().err().copied(),
            ticket: ticket.ok(),
            lent: (Arc::clone(&lent.0), lent.1),
            job: job.clone_ref(py),
        };
        let made = Work::new(py, parts).and_then(|work| Py::new(py, work));
        made.inspect_err(|_| drop(job.get().retry(RETRY_S))) // Not at once: whoever is in trouble needs no more of it.
    }
}

/// librdkafka's memory, and the place of a record in it.
type Lent = (Arc<Batch>, usize);

/// Why a record is not answered, as events and metrics have it.
const fn reason(unwanted: engine::Unwanted) -> &'static str {
    match unwanted {
        engine::Unwanted::Huge => "huge",
        engine::Unwanted::Undecodable => "undecodable",
        engine::Unwanted::Forged => "forged",
        engine::Unwanted::Replayed => "replayed",
        engine::Unwanted::ReplyTopic => "reply_topic",
        engine::Unwanted::ReplyPartition => "reply_partition",
    }
}

/// Why a call is refused: a word of `awoke.rpc.refusals`.
const fn refused(refusal: engine::Refusal) -> &'static str {
    match refusal {
        engine::Refusal::Expired => "expired",
        engine::Refusal::Cancelled => "cancelled",
        engine::Refusal::Unknown => "unknown",
        engine::Refusal::NotAllowed => "not_allowed",
        engine::Refusal::TooLong => "too_long",
        engine::Refusal::Impatient => "impatient",
        engine::Refusal::Full => "full",
    }
}
