//! The scheduler as workers see it: they ask for work, do it, and give it back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use awoke_engine::produce::OwnedRecord;
use awoke_engine::wake::Bell as EngineBell;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::errors::{duration, to_python};
use crate::message::{Batch, Message};
use crate::partition::Partition;
use crate::waiting::{Bell, seconds_until};

/// Decides which partition is worked on next.
#[pyclass(frozen, module = "awoke._native")]
#[derive(Default)]
pub struct Scheduler {
    pub inner: Arc<engine::PartitionScheduler>,
}

#[pymethods]
impl Scheduler {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The next job or hook; `None` when the scheduler has closed. Blocks with the GIL released.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let work = match self.inner.try_next_work() {
            Some(work) => work,
            None => py.detach(|| self.inner.next_work(&Deadline::NEVER)),
        };
        convert(py, work)
    }

    /// The next job or hook if there is one, and in how many seconds to come again by oneself. When there is none, the
    /// bell rings as soon as there is. Does not block.
    fn next_or_ring<'py>(
        &self,
        py: Python<'py>,
        bell: &Bell,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<f64>, bool)> {
        let bell: Arc<dyn EngineBell> = Arc::<awoke_engine::wake::EventFd>::clone(&bell.inner);
        match self.inner.next_work_or_ring(&bell) {
            (Some(engine::Work::Closed), _) => Ok((None, None, true)),
            (Some(work), _) => Ok((convert(py, work)?, None, false)),
            (None, moment) => Ok((None, moment.map(seconds_until), false)),
        }
    }

    /// Gives no messages to anybody from now on; hooks still run. Does not block.
    fn quiet(&self) {
        self.inner.quiet();
    }

    /// Ends every worker's wait, now and later. Does not block.
    fn close(&self) {
        self.inner.close();
    }

    /// Ends so many workers' waits for good, busy ones' when they come for more. Does not block.
    fn dismiss(&self, workers: usize) {
        self.inner.dismiss(workers);
    }

    /// Counts: jobs, `job_wakes`, `clock_wakes`, and now: ready, busy, idle.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.inner.counters();
        let (ready, busy, idle) = self.inner.census();
        let counts = PyDict::new(py);
        counts.set_item("jobs", counters.jobs.get())?;
        counts.set_item("job_wakes", counters.job_wakes.get())?;
        counts.set_item("clock_wakes", counters.clock_wakes.get())?;
        counts.set_item("ready", ready)?;
        counts.set_item("busy", busy)?;
        counts.set_item("idle", idle)?;
        Ok(counts)
    }
}

fn convert(py: Python<'_>, work: engine::Work) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(match work {
        engine::Work::Job(job) => Some(Bound::new(py, Job::new(job))?.into_any()),
        engine::Work::Hook(hook) => Some(Bound::new(py, HookJob::new(hook))?.into_any()),
        engine::Work::Sort(sorting) => Some(Bound::new(py, Sorting::new(sorting))?.into_any()),
        engine::Work::EndOfPartition(_) | engine::Work::Closed | engine::Work::TimedOut => None,
    })
}

/// A batch lent to a worker. It ends with `complete` or `retry`; dropped without either, it is tried again.
#[pyclass(frozen, module = "awoke._native")]
pub struct Job {
    at: TopicPartition,
    generation: u64,
    attempt: u32,
    waited: Duration,
    /// `None` when the job has ended: whoever keeps this object keeps nothing of librdkafka's. A contribution shares it.
    inner: Arc<Mutex<Option<engine::Job>>>,
    /// How many messages `each` left to a later job.
    left: AtomicUsize,
}

/// The messages of a job one by one, for as long as its turn lasts.
#[pyclass(frozen, module = "awoke._native")]
pub struct Turns {
    job: Py<Job>,
    batch: Py<Batch>,
    turn: engine::Turn,
    next: AtomicUsize,
}

#[pymethods]
impl Turns {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Message> {
        let (index, batch) = (self.next.load(Ordering::Relaxed), self.batch.get());
        if index >= batch.len() {
            return None;
        }
        if index > 0 && self.turn.is_over(index) {
            self.next.store(usize::MAX, Ordering::Relaxed);
            self.job.get().cut_before(batch.offset_of(index));
            return None;
        }
        self.next.store(index + 1, Ordering::Relaxed);
        Some(Message::new(self.batch.clone_ref(py), index))
    }
}

/// How many messages of a job's batch are at or before an offset.
fn count_until(job: &engine::Job, offset: i64) -> usize {
    job.batch().iter().take_while(|message| message.offset() <= offset).count()
}

fn lock(inner: &Mutex<Option<engine::Job>>) -> MutexGuard<'_, Option<engine::Job>> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    pub fn new(job: engine::Job) -> Self {
        Self {
            at: job.batch().topic_partition().clone(),
            generation: job.partition().map_or(0, |partition| partition.generation()),
            attempt: job.attempt(),
            waited: job.waited(),
            inner: Arc::new(Mutex::new(Some(job))),
            left: AtomicUsize::new(0),
        }
    }

    fn cut_before(&self, offset: i64) {
        if let Some(job) = self.lock().as_mut() {
            let end = job.end();
            job.cut_before(offset);
            self.left.store(end - job.end(), Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<engine::Job>> {
        lock(&self.inner)
    }

    /// Takes the engine's job out; `None` when it has ended.
    pub fn take(&self) -> Option<engine::Job> {
        self.lock().take()
    }

    /// These records, and that the job is done up to this offset (`None`: to its end), for a transaction.
    pub fn contribution(&self, records: Vec<OwnedRecord>, offset: Option<i64>) -> Result<engine::Contribution, Error> {
        let job = self.lock();
        let job = job.as_ref().ok_or(Error::Closed { what: "job" })?;
        let partition = job.partition().map(Arc::clone).ok_or(Error::Closed { what: "job" })?;
        let count = offset.map_or(job.end(), |offset| count_until(job, offset));
        let inner = Arc::clone(&self.inner);
        // A job that has ended is tried again by another one: what it sent must not be seen.
        let ended = || Err(Error::Closed { what: "job" });
        let settle = move || lock(&inner).as_mut().map_or_else(ended, |job| job.done(count));
        Ok(engine::Contribution::new(partition, records, Box::new(settle)))
    }
}

#[pymethods]
impl Job {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.at.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.at.partition
    }

    /// Which assignment of the partition, counted by the group member.
    #[getter]
    fn generation(&self) -> u64 {
        self.generation
    }

    /// Which try of the first message that is not done this is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.lock().as_ref().map_or(self.attempt, engine::Job::attempt)
    }

    /// The messages that are not done, with this decoder for their values. Raises `ClosedError` when the job has ended.
    #[pyo3(signature = (decoder=None))]
    fn batch(&self, decoder: Option<Py<PyAny>>) -> PyResult<Batch> {
        let job = self.lock();
        let job = job.as_ref().ok_or_else(|| to_python(&Error::Closed { what: "job" }))?;
        Ok(Batch::new(Arc::clone(job.batch()), job.first(), job.end(), job.attempt(), decoder))
    }

    /// Gives the messages of this batch, which is the job's or picked from it, one by one. Before each but the first it looks
    /// whether the job is to end: then it leaves the rest to a later job. Does not block. Raises `ClosedError` when the job has ended.
    fn each(slf: &Bound<'_, Self>, batch: Py<Batch>) -> PyResult<Turns> {
        let turn = slf.get().lock().as_ref().and_then(engine::Job::turn);
        let turn = turn.ok_or_else(|| to_python(&Error::Closed { what: "job" }))?;
        Ok(Turns { job: slf.clone().unbind(), batch, turn, next: 0.into() })
    }

    /// The offset of the first message that was left to a later job; `None` when none was, or the job has ended.
    #[getter]
    fn rest_offset(&self) -> Option<i64> {
        let job = self.lock();
        let job = job.as_ref()?;
        (job.end() < job.batch().len()).then(|| job.batch().message(job.end()).offset())
    }

    /// How many messages of the job have been left to a later one by `each`.
    #[getter]
    fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// The offset of the first message that is not done, of the last one where all are. Raises `ClosedError` when the job has ended.
    #[getter]
    fn first_offset(&self) -> PyResult<i64> {
        let job = self.lock();
        let job = job.as_ref().ok_or_else(|| to_python(&Error::Closed { what: "job" }))?;
        Ok(job.batch().message(job.first().min(job.batch().len() - 1)).offset())
    }

    /// How many messages are not done.
    #[getter]
    fn remaining(&self) -> usize {
        self.lock().as_ref().map_or(0, |job| job.end() - job.first())
    }

    /// Leaves all but the first so many messages that are not done to a later job. Does not block.
    fn cut(&self, messages: usize) {
        if let Some(job) = self.lock().as_mut() {
            job.cut(messages);
        }
    }

    /// The partition, for what is not said by `done` and `complete`. Raises `ClosedError` when the job has ended.
    fn assignment(&self) -> PyResult<Partition> {
        let job = self.lock();
        let partition = job.as_ref().and_then(engine::Job::partition);
        partition.map(Partition::new).ok_or_else(|| to_python(&Error::Closed { what: "job" }))
    }

    /// Seconds that the partition stood in line before a worker came.
    #[getter]
    fn waited_s(&self) -> f64 {
        self.waited.as_secs_f64()
    }

    /// Whether the partition was taken away meanwhile.
    #[getter]
    fn is_fenced(&self) -> bool {
        self.lock().as_ref().is_some_and(engine::Job::is_fenced)
    }

    /// Whether it is one of several jobs of its partition.
    #[getter]
    fn is_of_lanes(&self) -> bool {
        self.lock().as_ref().is_some_and(engine::Job::is_of_lanes)
    }

    /// Which reading of the partition it belongs to: a seek begins another one.
    #[getter]
    fn epoch(&self) -> u64 {
        self.lock().as_ref().map_or(0, engine::Job::epoch)
    }

    /// The places of the messages that are not done, in the order in which the partition's were taken in; `None` for one of
    /// before a seek.
    fn ordinals(&self) -> Vec<Option<u64>> {
        self.lock().as_ref().map_or_else(Vec::new, engine::Job::ordinals)
    }

    /// Gives its slot to others and goes on, holding its lanes, and the partition if it `is_held`. Does not block.
    pub fn step_aside(&self, is_held: bool) {
        if let Some(job) = self.lock().as_mut() {
            job.step_aside(is_held);
        }
    }

    /// Takes the messages up to this offset that are not done into a job of their own, which waits for something outside of
    /// any slot; `None` where one job at a time runs, or the job has ended.
    fn part(&self, offset: i64) -> Option<Self> {
        let mut inner = self.lock();
        let job = inner.as_mut()?;
        let count = count_until(job, offset);
        job.part(count).map(Self::new)
    }

    /// From here on the partition is not given back before the job has ended; whether it was not taken away before. Does not block.
    pub fn hold_partition(&self) -> bool {
        self.lock().as_mut().is_some_and(|job| {
            job.hold_partition();
            !job.is_fenced()
        })
    }

    /// Ends a `hold_partition`. Does not block.
    fn let_go_of_partition(&self) {
        if let Some(job) = self.lock().as_mut() {
            job.let_go_of_partition();
        }
    }

    /// Gives the partition back without saying that anything is done. Does not block.
    fn release(&self) {
        if let Some(mut job) = self.lock().take() {
            job.release();
        }
    }

    /// Says that all messages up to this offset are done, and stores the offset after them. Does not block.
    ///
    /// Raises `FencedError` when the partition was taken away meanwhile.
    fn done(&self, offset: i64) -> PyResult<()> {
        let mut job = self.lock();
        let Some(job) = job.as_mut() else { return Ok(()) };
        let count = count_until(job, offset);
        job.done(count).map_err(|error| to_python(&error))
    }

    /// Says that all is done, and gives the partition back. Does not block.
    ///
    /// Raises `FencedError` when the partition was taken away meanwhile.
    pub fn complete(&self) -> PyResult<()> {
        let job = self.lock().take();
        job.map_or(Ok(()), |mut job| job.complete()).map_err(|error| to_python(&error))
    }

    /// Gives the partition back; what is not done comes again, as if for the first time. Does not block.
    fn pass_on(&self) {
        if let Some(mut job) = self.lock().take() {
            job.pass_on();
        }
    }

    /// Keeps what is not done and gives the partition back: nobody gets it before `delay_s` is over. Does not block.
    pub fn retry(&self, delay_s: f64) -> PyResult<()> {
        let delay = duration(Some(delay_s))?.unwrap_or_default();
        if let Some(mut job) = self.lock().take() {
            job.retry(delay);
        }
        Ok(())
    }
}

/// Messages whose lanes the route is to say.
#[pyclass(frozen, module = "awoke._native")]
pub struct Sorting {
    topic: String,
    partition: i32,
    inner: Mutex<Option<engine::Sorting>>,
    lent: PyOnceLock<Py<Batch>>,
}

impl Sorting {
    fn new(sorting: engine::Sorting) -> Self {
        let at = sorting.batch().topic_partition();
        let (topic, partition) = (at.topic.to_string(), at.partition);
        Self { topic, partition, inner: Mutex::new(Some(sorting)), lent: PyOnceLock::new() }
    }
}

#[pymethods]
impl Sorting {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.partition
    }

    /// The messages, with this decoder for their values.
    #[pyo3(signature = (decoder=None))]
    fn batch(&self, py: Python<'_>, decoder: Option<Py<PyAny>>) -> PyResult<Py<Batch>> {
        let make = || {
            let sorting = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let native = sorting.as_ref().map(engine::Sorting::batch);
            let native = native.ok_or_else(|| to_python(&Error::Closed { what: "job" }))?;
            Py::new(py, Batch::new(Arc::clone(native), 0, native.len(), 1, decoder))
        };
        Ok(self.lent.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Gives each message to the lane of its number, in order of `batch`. Does not block.
    #[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
    fn finish(&self, py: Python<'_>, numbers: Vec<u64>) -> PyResult<()> {
        if let Some(lent) = self.lent.get(py) {
            // Whoever kept a message has a copy; the bytes themselves go to the lanes.
            lent.get().detach(py);
        }
        let sorting = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        sorting.map_or(Ok(()), |sorting| sorting.finish(Some(&numbers))).map_err(|error| to_python(&error))
    }
}

/// A hook to run, and the partition that waits for it.
#[pyclass(frozen, module = "awoke._native")]
pub struct HookJob {
    topic: String,
    partition: i32,
    generation: u64,
    name: &'static str,
    inner: Mutex<Option<engine::HookJob>>,
}

impl HookJob {
    fn new(hook: engine::HookJob) -> Self {
        let at = hook.partition().topic_partition();
        let name = match hook.hook() {
            engine::Hook::Assigned => "assigned",
            engine::Hook::Tick => "tick",
            engine::Hook::Revoked => "revoked",
            engine::Hook::Lost => "lost",
            engine::Hook::Shutdown => "shutdown",
        };
        Self {
            topic: at.topic.to_string(),
            partition: at.partition,
            generation: hook.partition().generation(),
            name,
            inner: Mutex::new(Some(hook)),
        }
    }
}

#[pymethods]
impl HookJob {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.partition
    }

    /// Which assignment of the partition.
    #[getter]
    fn generation(&self) -> u64 {
        self.generation
    }

    /// The partition. Raises `ClosedError` when the hook has ended.
    fn assignment(&self) -> PyResult<Partition> {
        let hook = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = hook.as_ref().map(|hook| Partition::new(hook.partition()));
        partition.ok_or_else(|| to_python(&Error::Closed { what: "hook" }))
    }

    /// `assigned`, `tick`, `revoked`, `lost` or `shutdown`.
    #[getter]
    fn name(&self) -> &str {
        self.name
    }

    /// Gives the partition back. Does not block.
    fn finish(&self) {
        let hook = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hook) = hook {
            hook.finish();
        }
    }
}
