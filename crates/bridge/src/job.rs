//! A job, as workers see it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::consume as engine;
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::errors::{duration, to_python};
use crate::partition::Partition;
use crate::turns::{Progress, Turns};

/// A batch lent to a worker. It ends with `complete` or `retry`; dropped without either, it is tried again.
#[pyclass(frozen, module = "awoke._native")]
pub struct Job {
    at: TopicPartition,
    generation: u64,
    attempt: u32,
    waited: Duration,
    /// `None` when the job has ended: this object then keeps no memory of librdkafka's. A transaction entry shares it.
    pub inner: Arc<Mutex<Option<engine::Job>>>,
    /// The number of messages that `each` left to a later job.
    pub left: AtomicUsize,
    /// The progress of `each`, where that tells which messages are done.
    pub progress: Mutex<Option<Arc<Progress>>>,
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
            progress: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<engine::Job>> {
        lock(&self.inner)
    }

    /// Takes the engine's job out; `None` when it has ended.
    pub fn take(&self) -> Option<engine::Job> {
        self.lock().take()
    }

    /// Calls `read` with the job, if it has not ended.
    pub fn map<T>(&self, read: impl FnOnce(&mut engine::Job) -> T) -> Option<T> {
        self.lock().as_mut().map(read)
    }

    /// Calls `read` with the job; an error when it has ended.
    fn with<T>(&self, read: impl FnOnce(&mut engine::Job) -> T) -> PyResult<T> {
        self.map(read).ok_or_else(ended)
    }
}

pub fn ended() -> PyErr {
    to_python(&Error::Closed { what: "job" })
}

pub fn lock(inner: &Mutex<Option<engine::Job>>) -> MutexGuard<'_, Option<engine::Job>> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The number of the assignment of the partition, counted by the group member.
    #[getter]
    fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of the attempt at the first message that is not done, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.map(|job| job.attempt()).unwrap_or(self.attempt)
    }

    /// Returns the messages that are not done, with this decoder for their values. Raises `ClosedError` when the job
    /// has ended.
    #[pyo3(signature = (decoder=None))]
    fn batch(&self, decoder: Option<Py<PyAny>>) -> PyResult<Batch> {
        self.with(|job| Batch::new(Arc::clone(job.batch()), job.first(), job.end(), job.attempt(), decoder))
    }

    /// Gives the messages of this batch, the job's or picked from it, one by one. Leaves the rest to a later job when
    /// this one is to end. Does not block. Raises ClosedError: the job has ended.
    #[pyo3(signature = (batch, is_done_when_passed=false))]
    fn each(slf: &Bound<'_, Self>, batch: Py<Batch>, is_done_when_passed: bool) -> PyResult<Turns> {
        Turns::begin(slf, batch, is_done_when_passed)
    }

    /// Records the messages before the one that is handled now as done, if `each` was told so. Does not block.
    fn store_passed(&self) -> PyResult<()> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let passed = progress.map_or(0, |progress| progress.passed());
        self.map(|job| job.done(passed)).unwrap_or(Ok(())).map_err(|error| to_python(&error))
    }

    /// The offset of the first message that was left to a later job; `None` when none was, or the job has ended.
    #[getter]
    fn rest_offset(&self) -> Option<i64> {
        self.map(|job| job.rest_offset()).flatten()
    }

    /// The number of messages of the job that `each` has left to a later one.
    #[getter]
    fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// The offset of the first message that is not done, of the last one where all are. Raises `ClosedError` when the
    /// job has ended.
    #[getter]
    fn first_offset(&self) -> PyResult<i64> {
        self.with(|job| job.first_offset())
    }

    /// The number of messages that are not done.
    #[getter]
    fn remaining(&self) -> usize {
        self.map(|job| job.end() - job.first()).unwrap_or_default()
    }

    /// Leaves all but this number of the messages that are not done to a later job. Does not block.
    fn truncate(&self, messages: usize) {
        self.map(|job| job.truncate(messages));
    }

    /// Returns the partition. Raises `ClosedError` when the job has ended.
    fn assignment(&self) -> PyResult<Partition> {
        self.with(|job| job.partition().map(Partition::new))?.ok_or_else(ended)
    }

    /// Seconds that the partition was ready before a worker came.
    #[getter]
    fn waited_s(&self) -> f64 {
        self.waited.as_secs_f64()
    }

    /// True if the partition was revoked meanwhile.
    #[getter]
    fn is_fenced(&self) -> bool {
        self.map(|job| job.is_fenced()).unwrap_or_default()
    }

    /// True if it is one of several jobs of its partition.
    #[getter]
    fn is_of_lanes(&self) -> bool {
        self.map(|job| job.is_of_lanes()).unwrap_or_default()
    }

    /// The number of the reading of the partition: a seek begins another one.
    #[getter]
    fn epoch(&self) -> u64 {
        self.map(|job| job.epoch()).unwrap_or_default()
    }

    /// Returns the ordinals of the messages that are not done, in order of admission; `None` for a message of before a
    /// seek.
    fn ordinals(&self) -> Vec<Option<u64>> {
        self.map(|job| job.ordinals()).unwrap_or_default()
    }

    /// Gives the job slot to other jobs, and keeps the lanes; with `keeps_assigned` the partition stays assigned until
    /// the job has ended. Does not block.
    pub fn leave_slot(&self, keeps_assigned: bool) {
        self.map(|job| job.leave_slot(keeps_assigned));
    }

    /// Splits the messages up to this offset that are not done off into a job of their own, which has no job slot;
    /// `None` where one job at a time runs, or the job has ended.
    fn split_off(&self, offset: i64) -> Option<Self> {
        self.map(|job| job.split_off(job.count_until(offset))).flatten().map(Self::new)
    }

    /// Keeps the partition assigned until the job has ended. Returns `False` when it was revoked before. Does not
    /// block.
    pub fn keep_assigned(&self) -> bool {
        let kept = self.map(|job| {
            job.keep_assigned();
            !job.is_fenced()
        });
        kept.unwrap_or_default()
    }

    /// Ends a `keep_assigned`. Does not block.
    fn allow_revoke(&self) {
        self.map(engine::Job::allow_revoke);
    }

    /// Gives the partition back without storing an offset. Does not block.
    fn release(&self) {
        if let Some(mut job) = self.take() {
            job.release();
        }
    }

    /// Records that all messages up to this offset are done, and stores the offset after them. Does not block.
    ///
    /// Raises `FencedError` when the partition was revoked meanwhile.
    fn done(&self, offset: i64) -> PyResult<()> {
        let done = self.map(|job| job.done(job.count_until(offset)));
        done.unwrap_or(Ok(())).map_err(|error| to_python(&error))
    }

    /// Records that all messages are done, and gives the partition back. Does not block.
    ///
    /// Raises `FencedError` when the partition was revoked meanwhile.
    pub fn complete(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), |mut job| job.complete()).map_err(|error| to_python(&error))
    }

    /// Gives the partition back; the messages that are not done come again, with attempt 1. Does not block.
    fn release_rest(&self) {
        if let Some(mut job) = self.take() {
            job.release_rest();
        }
    }

    /// Keeps the messages that are not done and gives the partition back; they come again after `delay_s`. Does not
    /// block.
    pub fn retry(&self, delay_s: f64) -> PyResult<()> {
        let delay = duration(Some(delay_s))?.unwrap_or_default();
        if let Some(mut job) = self.take() {
            job.retry(delay);
        }
        Ok(())
    }
}
