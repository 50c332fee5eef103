//! A job, as workers see it.

use std::sync::Arc;

use awoke_engine::consume::{self as engine, SharedJob};
use awoke_engine::kafka::TopicPartition;
use pyo3::prelude::*;

use crate::consume::turns::Turns;
use crate::consume::{Batch, Decoders, Partition};
use crate::errors::Result;
use crate::values::seconds;

/// A batch lent to a worker. It ends with `complete` or `retry`; dropped without either, it is tried again.
#[pyclass(frozen, module = "awoke._native")]
pub struct Job {
    at: TopicPartition,
    /// The number of the assignment of the partition, among all of the process.
    #[pyo3(get)]
    generation: u64,
    /// The number of its route.
    #[pyo3(get)]
    route_number: u64,
    attempt: u32,
    /// Seconds that the partition was ready before a worker came.
    #[pyo3(get)]
    waited_s: f64,
    /// A transaction entry shares it.
    pub inner: SharedJob,
}

impl Job {
    pub fn new(job: engine::Job) -> Self {
        Self {
            at: job.batch().topic_partition().clone(),
            generation: job.partition().map_or(0, |partition| partition.generation()),
            route_number: job.partition().map_or(0, |partition| partition.route_number()),
            attempt: job.attempt(),
            waited_s: job.waited().as_secs_f64(),
            inner: SharedJob::new(job),
        }
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

    /// The number of the attempt at the first message that is not done, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.inner.map(|job| job.attempt()).unwrap_or(self.attempt)
    }

    /// Returns the messages that are not done, decoded by these functions. Raises `ClosedError` when the job has ended.
    #[pyo3(signature = (decoders=None))]
    fn batch(&self, decoders: Option<Py<Decoders>>) -> Result<Batch> {
        let make = |job: &mut engine::Job| {
            Batch::new(Arc::clone(job.batch()), job.first(), job.end(), job.attempt(), decoders)
        };
        Ok(self.inner.with(make)?)
    }

    /// Gives the messages of this batch, which is the job's or picked from it, one by one.
    ///
    /// With `is_done_when_passed` a message is done when the next one is asked for: see `store_passed`.
    ///
    /// Before each message but the first it checks whether the job is to end: its partition is to be given back, paused
    /// or sought in, the process stops, or its turn is over. It then leaves the rest to a later job. Does not block.
    ///
    /// Raises:
    ///     ClosedError: the job has ended.
    #[pyo3(signature = (batch, is_done_when_passed=false))]
    fn each(&self, batch: Py<Batch>, is_done_when_passed: bool) -> Result<Turns> {
        let picked = batch.get().picked();
        Ok(Turns::new(batch, self.inner.turns(picked, is_done_when_passed)?))
    }

    /// Stores the offset behind the messages that `each` has passed, if they are done then. Does not block.
    ///
    /// Any thread, while another one runs the job.
    ///
    /// Raises:
    ///     FencedError: the partition was revoked meanwhile.
    fn store_passed(&self) -> Result<()> {
        Ok(self.inner.store_passed()?)
    }

    /// The offset of the first message that was left to a later job; `None` when none was, or the job has ended.
    #[getter]
    fn rest_offset(&self) -> Option<i64> {
        self.inner.map(|job| job.rest_offset()).flatten()
    }

    /// The number of messages of the job that `each` has left to a later one.
    #[getter]
    fn left(&self) -> usize {
        self.inner.left()
    }

    /// The offset of the first message that is not done, of the last one where all are. Raises `ClosedError` when the
    /// job has ended.
    #[getter]
    fn first_offset(&self) -> Result<i64> {
        Ok(self.inner.with(|job| job.first_offset())?)
    }

    /// The number of messages that are not done.
    #[getter]
    fn remaining(&self) -> usize {
        self.inner.map(|job| job.end() - job.first()).unwrap_or_default()
    }

    /// Leaves all but this number of the messages that are not done to a later job. Does not block.
    fn truncate(&self, messages: usize) {
        self.inner.map(|job| job.truncate(messages));
    }

    /// Returns the partition. Raises `ClosedError` when the job has ended.
    fn assignment(&self) -> Result<Partition> {
        Ok(Partition::new(&self.inner.partition()?))
    }

    /// True if the partition was revoked meanwhile.
    #[getter]
    fn is_fenced(&self) -> bool {
        self.inner.map(|job| job.is_fenced()).unwrap_or_default()
    }

    /// True if it is one of several jobs of its partition.
    #[getter]
    fn is_of_lanes(&self) -> bool {
        self.inner.map(|job| job.is_of_lanes()).unwrap_or_default()
    }

    /// True if it has several lanes, whose messages user code gets one by one.
    #[getter]
    fn has_several_lanes(&self) -> bool {
        self.inner.map(|job| job.has_several_lanes()).unwrap_or_default()
    }

    /// The number of the reading of the partition: a seek begins another one.
    #[getter]
    fn epoch(&self) -> u64 {
        self.inner.map(|job| job.epoch()).unwrap_or_default()
    }

    /// Returns the ordinals of the messages that are not done, in order of admission. Does not block.
    ///
    /// None for a message of before a seek.
    fn ordinals(&self) -> Vec<Option<u64>> {
        self.inner.map(|job| job.ordinals()).unwrap_or_default()
    }

    /// Gives the job slot to other jobs, and keeps the lanes; with `keeps_assigned` the partition, too, until the job
    /// has ended. For `others_s` of its time the worker did something for other jobs. Does not block.
    #[pyo3(signature = (keeps_assigned, others_s=0.0))]
    fn leave_slot(&self, keeps_assigned: bool, others_s: f64) -> Result<()> {
        let others = seconds(others_s)?;
        self.inner.map(|job| job.leave_out(others).leave_slot(keeps_assigned));
        Ok(())
    }

    /// Splits the messages up to this offset that are not done off into a job of their own, which has no job slot.
    ///
    /// None where one job at a time runs, or the job has ended. Does not block.
    fn split_off(&self, offset: i64) -> Option<Self> {
        self.inner.map(|job| job.split_off(job.count_until(offset))).flatten().map(Self::new)
    }

    /// Splits the lanes behind that of this message off into a job that ends by itself; None if there are none, or the
    /// job has its slot or has ended. Does not block.
    fn split_lanes_behind(&self, offset: i64) -> Option<Self> {
        self.inner.map(|job| job.split_lanes_behind(job.count_before(offset))).flatten().map(Self::new)
    }

    /// Keeps the partition assigned until the job has ended. Returns `False` when it was revoked before. Does not
    /// block.
    pub fn keep_assigned(&self) -> bool {
        let kept = self.inner.map(|job| {
            job.keep_assigned();
            !job.is_fenced()
        });
        kept.unwrap_or_default()
    }

    /// Ends a `keep_assigned`. Does not block.
    fn allow_revoke(&self) {
        self.inner.map(engine::Job::allow_revoke);
    }

    /// Gives the partition back without storing an offset. Does not block.
    fn release(&self) {
        if let Some(mut job) = self.inner.take() {
            job.release();
        }
    }

    /// Records that all messages up to this offset are done, and stores the offset after them. Does not block.
    ///
    /// Raises `FencedError` when the partition was revoked meanwhile.
    fn done(&self, offset: i64) -> Result<()> {
        Ok(self.inner.map(|job| job.done(job.count_until(offset))).unwrap_or(Ok(()))?)
    }

    /// Records that all messages before the one with this offset are done, and stores the offset after them. Does not
    /// block.
    ///
    /// Raises `FencedError` when the partition was revoked meanwhile.
    fn done_before(&self, offset: i64) -> Result<()> {
        Ok(self.inner.map(|job| job.done(job.count_before(offset))).unwrap_or(Ok(()))?)
    }

    /// Records that all messages are done, and gives the partition back. Does not block.
    ///
    /// Raises `FencedError` when the partition was revoked meanwhile.
    pub fn complete(&self) -> Result<()> {
        Ok(self.inner.take().map_or(Ok(()), |mut job| job.complete())?)
    }

    /// Gives the partition back; the messages that are not done come again, with attempt 1. Does not block.
    fn release_rest(&self) {
        if let Some(mut job) = self.inner.take() {
            job.release_rest();
        }
    }

    /// Keeps the messages that are not done and gives the partition back; they come again after `delay_s`. Does not
    /// block.
    ///
    /// The try counts as an attempt at the first message, unless `is_counted` is false: it failed for another reason.
    #[pyo3(signature = (delay_s, is_counted=true))]
    pub fn retry(&self, delay_s: f64, is_counted: bool) -> Result<()> {
        let delay = seconds(delay_s)?;
        if let Some(mut job) = self.inner.take() {
            job.retry(delay, is_counted);
        }
        Ok(())
    }
}
