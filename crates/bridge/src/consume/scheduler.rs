//! The scheduler, as workers see it: they ask for work, do it, and give it back.

use std::sync::Arc;

use awoke_engine::clock::Deadline;
use awoke_engine::consume as engine;
use awoke_engine::wake::{EventFd, Notifier as EngineNotifier};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::consume::{HookJob, Job, LaneAssignment, PendingStep, STEP_LIMIT};
use crate::waiting::Notifier;

/// Decides which partition is worked on next.
#[pyclass(frozen, module = "awoke._native")]
pub struct Scheduler {
    pub inner: Arc<engine::PartitionScheduler>,
}

#[pymethods]
impl Scheduler {
    #[new]
    fn new() -> Self {
        Self { inner: engine::PartitionScheduler::of_app() }
    }

    /// Returns the next work; `None` when the scheduler has closed. Blocks with the GIL released.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let work = match self.inner.try_next_work() {
            Some(work) => work,
            None => py.detach(|| self.inner.next_work(&Deadline::NEVER)),
        };
        convert(py, work)
    }

    /// Returns the next work, the seconds until the caller has to ask again, and whether the scheduler has closed.
    ///
    /// Without work, the notifier is notified as soon as there is some. Does not block.
    fn next_or_notify<'py>(
        &self,
        py: Python<'py>,
        notifier: &Notifier,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<f64>, bool)> {
        let notifier: Arc<dyn EngineNotifier> = Arc::<EventFd>::clone(&notifier.inner);
        match self.inner.next_work_or_notify(&notifier) {
            (Some(engine::Work::Closed), _) => Ok((None, None, true)),
            (Some(work), _) => Ok((convert(py, work)?, None, false)),
            // While a test has the clock, the notifier tells of the moment, too.
            (None, moment) => {
                let left = Deadline::NEVER.or_earlier(moment).remaining();
                Ok((None, left.map(|left| left.as_secs_f64()), false))
            }
        }
    }

    /// Starts no messages from now on; hooks still run. Does not block.
    fn quiet(&self) {
        self.inner.quiet();
    }

    /// Ends every worker's wait, now and later. Does not block.
    fn close(&self) {
        self.inner.close();
    }

    /// Ends this number of workers, busy ones when they come for more. Does not block.
    fn dismiss(&self, workers: usize) {
        self.inner.dismiss(workers);
    }

    /// Returns a handle for the first moment at which this number of jobs has begun, and no job runs or is ready to.
    ///
    /// Partitions that wait for a moment, for messages or for a resume rest. It fails when the scheduler closes. Does
    /// not block.
    fn at_rest(&self, jobs_least: u64) -> PendingStep {
        PendingStep { completion: self.inner.at_rest(jobs_least), operation: "come to rest", limit: Some(STEP_LIMIT) }
    }

    /// Returns counts: `jobs`, `job_wakes`, `clock_wakes`, and of now: `ready`, `busy`, `idle`. Does not block.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (counters, stats) = (self.inner.counters(), self.inner.stats());
        let counts = PyDict::new(py);
        counts.set_item("jobs", counters.jobs.get())?;
        counts.set_item("job_wakes", counters.job_wakes.get())?;
        counts.set_item("clock_wakes", counters.clock_wakes.get())?;
        counts.set_item("ready", stats.ready)?;
        counts.set_item("busy", stats.running)?;
        counts.set_item("idle", stats.idle)?;
        Ok(counts)
    }
}

fn convert(py: Python<'_>, work: engine::Work) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(match work {
        engine::Work::Job(job) => Some(Bound::new(py, Job::new(job))?.into_any()),
        engine::Work::Hook(hook) => Some(Bound::new(py, HookJob::new(hook))?.into_any()),
        engine::Work::AssignLanes(assignment) => Some(Bound::new(py, LaneAssignment::new(assignment))?.into_any()),
        engine::Work::EndOfPartition(_) | engine::Work::Closed | engine::Work::TimedOut => None,
    })
}
