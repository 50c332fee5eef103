//! A node's tie to its supervisor, as the node sees it.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use awoke_engine::lifeline as engine;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{duration, to_python};
use crate::group_member::GroupMember;
use crate::scheduler::Scheduler;

/// Checks that a number is an open descriptor of this kind.
fn check_kind(what: &str, descriptor: i32, kind: libc::mode_t) -> PyResult<()> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `fstat` takes any number, and fills the struct in when it returns 0.
    let is_of_kind = unsafe {
        libc::fstat(descriptor, found.as_mut_ptr()) == 0 && found.assume_init().st_mode & libc::S_IFMT == kind
    };
    if is_of_kind { Ok(()) } else { Err(PyValueError::new_err(format!("{what}: descriptor {descriptor} is none"))) }
}

/// Sends signs of life and notices the supervisor's end, on a thread that needs no GIL.
#[pyclass(frozen, module = "awoke._native")]
pub struct Lifeline {
    inner: engine::Lifeline,
}

#[pymethods]
impl Lifeline {
    /// Takes over the tripwire, the writing end of a pipe. The caller must not use its number again: the system may
    /// reuse it.
    #[new]
    fn new(socket: i32, tripwire: i32, interval_s: f64, drain_s: f64, exit_code: i32) -> PyResult<Self> {
        let settings = engine::LifelineSettings {
            interval: duration(Some(interval_s))?.unwrap_or_default(),
            drain: duration(Some(drain_s))?.unwrap_or_default(),
            exit_code,
        };
        check_kind("socket", socket, libc::S_IFSOCK)?;
        check_kind("tripwire", tripwire, libc::S_IFIFO)?;
        // SAFETY: it is an open descriptor, which the caller gives away, as the stub says.
        let tripwire = unsafe { OwnedFd::from_raw_fd(tripwire) };
        let started = engine::Lifeline::start(socket, tripwire, settings);
        Ok(Self { inner: started.map_err(|error| to_python(&error))? })
    }

    /// Begins to report the jobs of these schedulers and the state of this member. Does not block.
    #[allow(clippy::needless_pass_by_value)] // Comes converted from Python.
    fn watch(&self, schedulers: Vec<Py<Scheduler>>, member: &GroupMember) -> PyResult<()> {
        let schedulers: Vec<_> = schedulers.iter().map(|scheduler| Arc::downgrade(&scheduler.get().inner)).collect();
        let member = member.weak().map_err(|error| to_python(&error))?;
        let read = move || {
            let schedulers = || schedulers.iter().filter_map(std::sync::Weak::upgrade);
            let oldest = schedulers().filter_map(|scheduler| scheduler.oldest_running()).min();
            engine::Activity {
                oldest_job: oldest.map_or_else(Default::default, |since: Instant| since.elapsed()),
                poll_age: member.upgrade().map_or_else(Default::default, |member| member.poll_age()),
                jobs: schedulers().map(|scheduler| scheduler.counters().jobs.get()).sum(),
            }
        };
        self.inner.watch(Box::new(read));
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
