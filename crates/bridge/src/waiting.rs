//! How Python waits: by a descriptor that its event loop or its `select` watches, or blocked with the GIL released.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use awoke_engine::clock::Deadline;
use awoke_engine::wake::{Bell as _, Completion, EventFd, Mailbox as EngineMailbox, Waker};
use pyo3::prelude::*;

use crate::errors::to_python;

type Tokens = EngineMailbox<u64, EventFd>;

/// Tokens of completions that have their result, for one event loop or one thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct Mailbox {
    pub inner: Arc<Tokens>,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let bell = EventFd::new().map_err(|error| to_python(&error))?;
        Ok(Self { inner: Arc::new(EngineMailbox::new(bell)) })
    }

    /// The descriptor that becomes readable when there are tokens.
    fn fileno(&self) -> i32 {
        self.inner.bell().descriptor()
    }

    /// Takes all tokens. Does not block.
    fn drain(&self) -> Vec<u64> {
        self.inner.drain()
    }

    /// Posts a token. Does not block; any thread.
    fn post(&self, token: u64) {
        self.inner.post(token);
    }
}

/// What a scheduler rings when an event loop should come for work.
#[pyclass(frozen, module = "awoke._native")]
pub struct Bell {
    pub inner: Arc<EventFd>,
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self { inner: Arc::new(EventFd::new().map_err(|error| to_python(&error))?) })
    }

    /// The descriptor that becomes readable when the bell rings.
    fn fileno(&self) -> i32 {
        self.inner.descriptor()
    }

    /// Makes the bell quiet until it rings again. Does not block.
    fn quiet(&self) {
        self.inner.quiet();
    }

    /// Rings. Does not block; any thread.
    fn ring(&self) {
        self.inner.ring();
    }
}

/// Waits for a completion with the GIL released, and without letting go of it when the result is there.
///
/// Python's main thread runs the handlers of signals, so its wait must end for them: it waits on a descriptor, where a
/// signal interrupts it; every other thread waits on the completion itself.
pub fn wait_for<T: Clone + Send + Sync>(
    py: Python<'_>,
    completion: &Completion<T>,
    deadline: &Deadline,
) -> PyResult<Option<T>> {
    if let Some(result) = completion.get() {
        return Ok(Some(result));
    }
    if !is_main_thread() {
        return Ok(py.detach(|| completion.wait(deadline)));
    }
    let mailbox = main_mailbox()?;
    mailbox.drain();
    let waker = Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 0 };
    if completion.register(waker.clone()) {
        loop {
            let woken = wait_readable(py, mailbox.bell(), deadline);
            // What woke us stays in the mailbox until the next wait clears it: nothing stands between the answer and its use.
            if let Some(result) = completion.get() {
                woken?;
                return Ok(Some(result));
            }
            if woken.is_err() || deadline.has_passed() {
                completion.unregister(&waker);
                woken?;
                break;
            }
            mailbox.drain();
        }
    }
    Ok(completion.get())
}

/// Waits until the bell rings, a signal has been handled, or the deadline passes; raises what a signal handler raised.
pub fn wait_readable(py: Python<'_>, bell: &EventFd, deadline: &Deadline) -> PyResult<()> {
    let descriptor = bell.descriptor();
    py.detach(|| {
        let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd on our stack.
        unsafe { libc::poll(&raw mut poll, 1, deadline.remaining_ms()) };
    });
    py.check_signals()
}

/// Whether this is the process's first thread, where Python runs signal handlers.
pub fn is_main_thread() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take nothing and always succeed.
    unsafe {
        libc::getpid() == libc::gettid()
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: takes nothing and always succeeds.
    unsafe {
        libc::pthread_main_np() != 0
    }
}

/// The main thread's own mailbox, made on first use. After a fork the child's main thread makes one of its own.
fn main_mailbox() -> PyResult<Arc<Tokens>> {
    thread_local! {
        static MAILBOX: OnceCell<(u32, Arc<Tokens>)> = const { OnceCell::new() };
    }
    let make = || EventFd::new().map(|bell| Arc::new(Tokens::new(bell))).map_err(|error| to_python(&error));
    MAILBOX.with(|cell| {
        let pid = std::process::id();
        if let Some((_, mailbox)) = cell.get().filter(|(owner, _)| *owner == pid) {
            return Ok(Arc::clone(mailbox));
        }
        let mailbox = make()?;
        // In a forked child the cell is taken by the parent's; the child then makes one for each wait.
        let _taken = cell.set((pid, Arc::clone(&mailbox)));
        Ok(mailbox)
    })
}

/// Seconds from now until a moment, at least 0.
pub fn seconds_until(moment: Instant) -> f64 {
    moment.saturating_duration_since(Instant::now()).as_secs_f64()
}
