//! Ends a job after user code, when a completion that it waits for is done.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Job;
use crate::wake::{Completion, Listener, Waker};

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// Its messages are done.
    Complete,
    /// Its messages are tried again after this time.
    Retry(Duration),
}

impl Job {
    /// Ends a job as `decide` says when the completion is done, on the thread that completes it; `None`: only calls
    /// `decide`. The job leaves its slot to other jobs at once, and its partition stays assigned until then. Does not
    /// block.
    ///
    /// `decide` must not block. The completion holds it until then, so it may refer to the completion weakly only.
    pub fn end_when_done<T: Clone>(
        mut job: Option<Self>,
        completion: &Completion<T>,
        decide: impl FnOnce() -> JobEnd + Send + 'static,
    ) {
        if let Some(job) = &mut job {
            job.leave_slot(true);
        }
        let listener = Arc::new(EndsJob(Mutex::new(Some((job, Box::new(decide))))));
        let waker = Waker::Listener { listener, token: 0 };
        if !completion.register(waker.clone()) {
            waker.wake();
        }
    }

    fn end_as(mut self, end: JobEnd) {
        match end {
            // A job of an assignment that has ended changes nothing.
            JobEnd::Complete => drop(self.complete()),
            JobEnd::Retry(delay) => self.retry(delay, true),
        }
    }
}

type Decide = Box<dyn FnOnce() -> JobEnd + Send>;

/// `None` once the job has ended.
struct EndsJob(Mutex<Option<(Option<Job>, Decide)>>);

impl std::fmt::Debug for EndsJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EndsJob")
    }
}

impl Listener for EndsJob {
    fn tell(&self, _token: u64) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((job, decide)) = waiting else { return };
        let end = decide();
        if let Some(job) = job {
            job.end_as(end);
        }
    }
}
