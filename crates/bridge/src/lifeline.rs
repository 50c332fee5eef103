//! A node's tie to its supervisor, as the node sees it.

use std::sync::Arc;

use awoke_engine::lifeline as engine;
use pyo3::prelude::*;

use crate::consume::{GroupMember, Scheduler};
use crate::errors::Result;
use crate::values::seconds;

/// Sends signs of life and notices the supervisor's end, on a thread that needs no GIL.
///
/// It owns the descriptor `tripwire`, the writing end of a pipe, from here on: the caller must not use its number
/// again. The socket stays the caller's, who keeps it open until `close` has returned. Making it raises SystemFailure.
#[pyclass(frozen, module = "awoke._native")]
pub struct Lifeline {
    inner: engine::Lifeline,
}

#[pymethods]
impl Lifeline {
    #[new]
    fn new(socket: i32, tripwire: i32, interval_s: f64, drain_s: f64, exit_code: i32) -> Result<Self> {
        let settings = engine::LifelineSettings { interval: seconds(interval_s)?, drain: seconds(drain_s)?, exit_code };
        // SAFETY: the caller gives the tripwire away.
        Ok(Self { inner: unsafe { engine::Lifeline::start(socket, tripwire, settings) }? })
    }

    /// Begins to report the jobs of these schedulers and the state of these members. Does not block.
    fn watch(&self, schedulers: Vec<Py<Scheduler>>, members: Vec<Py<GroupMember>>) -> Result<()> {
        let schedulers = schedulers.iter().map(|scheduler| Arc::downgrade(&scheduler.get().inner)).collect();
        let members = members.iter().map(|member| member.get().inner.weak()).collect::<Result<_, _>>()?;
        self.inner.watch(schedulers, members);
        Ok(())
    }

    /// Answers with Python's state, and waits for the next request. Returns `False` at the end. Blocks with the GIL
    /// released.
    fn pulse(&self, py: Python<'_>, assigned: u32, lag: i64) -> bool {
        py.detach(|| self.inner.pulse(assigned, lag))
    }

    /// Ends the thread. Blocks with the GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }
}
