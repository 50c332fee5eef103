//! awoke's clock: its time, a signal to wait for until a moment of it, and the clock in the hands of a test.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::clock as engine;
use awoke_engine::wake::{Awaited, Recurrence, Signal as EngineSignal, SignalWait as EngineWait};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::Result;
use crate::values::duration;
use crate::waiting::{Mailbox, wait_until_ready};

/// Returns the clock's time in nanoseconds: `time.monotonic_ns()`, unless a test moved it. Does not block.
#[pyfunction]
pub fn clock_ns() -> u64 {
    engine::now_ns()
}

/// Returns the time since 1970 in nanoseconds, which moves with the clock while a test has it. Does not block.
#[pyfunction]
pub fn wall_ns() -> u64 {
    nanoseconds(engine::wall())
}

/// Returns whether a test has the clock. Does not block.
#[pyfunction]
pub fn clock_is_virtual() -> bool {
    engine::is_virtual()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The clock in the hands of a test: it stands still until it is moved.
#[pyclass(frozen, module = "awoke._native")]
pub struct TakenClock;

// The object is the right to move the clock, of which a process has one.
#[allow(clippy::unused_self)]
#[pymethods]
impl TakenClock {
    /// Takes the clock. Raises `RuntimeError` if it is taken.
    #[new]
    fn new() -> PyResult<Self> {
        let why = "the clock is taken: a process has one virtual clock at a time, which ends with its `with` block";
        if engine::take() { Ok(Self) } else { Err(PyRuntimeError::new_err(why)) }
    }

    /// Gives the clock back: it goes on from where it stands, at the pace of real time.
    fn release(&self, py: Python<'_>) {
        py.detach(engine::release);
    }

    /// Moves the clock, and has everything act that is due then. Does not wait for it.
    fn move_by(&self, py: Python<'_>, nanoseconds: u64) {
        py.detach(|| engine::move_to(engine::now() + Duration::from_nanos(nanoseconds)));
    }

    /// Returns in how many nanoseconds something is due that happens once, and something that happens again and again.
    fn due_in(&self, py: Python<'_>) -> (Option<u64>, Option<u64>) {
        let engine::Due { once, recurring } = py.detach(engine::next_due);
        let now = engine::now();
        let left = |moment: std::time::Instant| nanoseconds(moment.saturating_duration_since(now));
        (once.map(left), recurring.map(left))
    }

    /// Returns the number of jobs that run, or are about to, and do not wait for the clock. Does not block.
    fn running(&self, py: Python<'_>) -> usize {
        py.detach(engine::running)
    }

    /// Waits in real time until nothing runs that does not wait for the clock, but for this number of jobs. Returns
    /// what still does when the time is up. Blocks with the GIL released.
    fn settle(&self, py: Python<'_>, within_s: f64, going_on: usize) -> Result<Vec<String>> {
        let within = duration(Some(within_s))?.unwrap_or_default();
        Ok(py.detach(|| engine::settle(within, going_on)))
    }
}

/// A signal that can be set and cleared, as `threading.Event`; waits for it are timed by the clock.
#[pyclass(frozen, module = "awoke._native")]
pub struct Signal {
    inner: Arc<EngineSignal>,
}

#[pymethods]
impl Signal {
    #[new]
    fn new() -> Self {
        Self { inner: EngineSignal::new() }
    }

    /// Sets the signal, and ends all waits. Does not block; any thread.
    fn set(&self) {
        self.inner.set();
    }

    /// Clears the signal. Does not block; any thread.
    fn clear(&self) {
        self.inner.clear();
    }

    /// Returns whether the signal is set. Does not block.
    fn is_set(&self) -> bool {
        self.inner.is_set()
    }

    /// Waits until the signal is set, at most `timeout_s`; returns whether it is set. Blocks with the GIL released.
    ///
    /// `recurs`: the thread waits so again and again. `is_tracked`: it calls `leave` when it will not wait again.
    #[pyo3(signature = (timeout_s=None, *, recurs=false, is_tracked=false))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>, recurs: bool, is_tracked: bool) -> Result<bool> {
        let wait = self.begun(timeout_s, recurs, engine::is_job_thread())?;
        let waited = wait_until_ready(py, &wait, &wait.deadline());
        let is_set = wait.is_set();
        if is_tracked && !is_set && engine::is_virtual() {
            self.inner.stay_awake(); // Before the wait is dropped, so that a test sees no gap.
        }
        waited.map(|()| is_set)
    }

    /// Begins a wait, as `wait`, for an event loop. `is_of_job`: a job waits. Does not block.
    #[pyo3(signature = (timeout_s=None, *, recurs=false, is_of_job=false))]
    fn begin_wait(&self, timeout_s: Option<f64>, recurs: bool, is_of_job: bool) -> Result<SignalWait> {
        Ok(SignalWait { inner: self.begun(timeout_s, recurs, is_of_job)? })
    }

    /// Notes that the calling thread waits no more. Does not block.
    fn leave(&self) {
        self.inner.leave();
    }
}

impl Signal {
    fn begun(&self, timeout_s: Option<f64>, recurs: bool, is_of_job: bool) -> Result<Arc<EngineWait>> {
        let recurrence = if recurs { Recurrence::Again } else { Recurrence::Once };
        Ok(self.inner.begin_wait(duration(timeout_s)?, recurrence, is_of_job))
    }
}

/// One wait of an event loop for a signal.
#[pyclass(frozen, module = "awoke._native")]
pub struct SignalWait {
    inner: Arc<EngineWait>,
}

#[pymethods]
impl SignalWait {
    /// Returns whether it is over: the signal is set, or its moment has come. Does not block.
    fn done(&self) -> bool {
        self.inner.is_over()
    }

    /// Ends the wait: what keeps it any longer, an exception for example, waits no more. Does not block.
    fn end(&self) {
        self.inner.end();
    }

    /// Returns whether the signal is set. Does not block.
    fn result(&self) -> bool {
        self.inner.is_set()
    }

    /// Returns the real time until its moment, in seconds; None where only `notify` tells of it. Does not block.
    fn remaining_s(&self) -> Option<f64> {
        self.inner.deadline().remaining().map(|left| left.as_secs_f64())
    }

    /// Posts `token` to the mailbox when it may be over, again and again; returns `False` if it is.
    fn notify(&self, mailbox: &Mailbox, token: u64) -> bool {
        self.inner.register(mailbox.waker(token)).is_some()
    }
}
