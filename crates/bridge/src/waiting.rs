//! Python's waits: on a descriptor that its event loop or its `select` watches, or blocked with the GIL released.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::clock::Deadline;
use awoke_engine::wake::{Completion, EventFd, Mailbox as EngineMailbox, Notifier as _, ServingWait, Waker};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::main_thread::{is_main_thread, main_mailbox};

/// The mailbox of the tokens of one event loop or one thread.
pub type Tokens = EngineMailbox<u64, EventFd>;

/// Tokens of completions that have their result, for one event loop or one thread.
#[pyclass(frozen, module = "awoke._native")]
pub struct Mailbox {
    pub inner: Arc<Tokens>,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let notifier = EventFd::new().map_err(|error| to_python(&error))?;
        Ok(Self { inner: Arc::new(EngineMailbox::new(notifier)) })
    }

    /// The descriptor that becomes readable when there are tokens.
    fn fileno(&self) -> i32 {
        self.inner.notifier().descriptor()
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

/// Makes a descriptor readable when an event loop should ask for work.
#[pyclass(frozen, module = "awoke._native")]
pub struct Notifier {
    pub inner: Arc<EventFd>,
}

#[pymethods]
impl Notifier {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self { inner: Arc::new(EventFd::new().map_err(|error| to_python(&error))?) })
    }

    /// The descriptor that becomes readable when it is notified.
    fn fileno(&self) -> i32 {
        self.inner.descriptor()
    }

    /// Makes the descriptor unreadable until the next `notify`. Does not block.
    fn clear(&self) {
        self.inner.reset();
    }

    /// Makes the descriptor readable. Does not block; any thread.
    fn notify(&self) {
        self.inner.notify();
    }
}

/// An object that a thread can wait for.
pub trait Awaited: Sync {
    /// The name of a waker that was registered.
    type Registration;

    /// Returns whether there is no more to wait for.
    fn is_ready(&self) -> bool;
    /// Has the waker woken when it is ready. Returns `None` if it is now.
    fn register(&self, waker: Waker) -> Option<Self::Registration>;
    /// Removes a registration.
    fn unregister(&self, registration: Self::Registration);
    /// Waits on the calling thread, which it blocks.
    fn block(&self, deadline: &Deadline);
}

impl<T: Clone + Send + Sync> Awaited for Completion<T> {
    type Registration = Waker;

    fn is_ready(&self) -> bool {
        self.is_done()
    }

    fn register(&self, waker: Waker) -> Option<Waker> {
        Self::register(self, waker.clone()).then_some(waker)
    }

    fn unregister(&self, waker: Waker) {
        Self::unregister(self, &waker);
    }

    fn block(&self, deadline: &Deadline) {
        self.wait(deadline);
    }
}

/// Waits for a completion as `wait_until_ready` does. Returns its result; `None` if the deadline passed first.
pub fn wait_for<T: Clone + Send + Sync>(
    py: Python<'_>,
    completion: &Completion<T>,
    deadline: &Deadline,
) -> PyResult<Option<T>> {
    if let Some(result) = completion.get() {
        return Ok(Some(result));
    }
    wait_until_ready(py, completion, deadline)?;
    Ok(completion.get())
}

/// Waits with the GIL released; keeps it when there is no need to wait.
///
/// Python's main thread runs the handlers of signals, so its wait must end for them. It waits on a descriptor, where a
/// signal interrupts it. Every other thread waits on the object itself.
pub fn wait_until_ready(py: Python<'_>, awaited: &impl Awaited, deadline: &Deadline) -> PyResult<()> {
    if awaited.is_ready() {
        return Ok(());
    }
    if !is_main_thread() {
        py.detach(|| awaited.block(deadline));
        return Ok(());
    }
    let mailbox = main_mailbox()?;
    mailbox.discard();
    let Some(registration) = awaited.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 0 }) else {
        return Ok(());
    };
    loop {
        let woken = wait_readable(py, mailbox.notifier(), deadline);
        // The token stays in the mailbox until the next wait discards it, so that the answer is used without delay.
        if awaited.is_ready() {
            return woken;
        }
        if woken.is_err() || deadline.has_passed() {
            awaited.unregister(registration);
            return woken;
        }
        mailbox.drain();
    }
}

/// The longest time for which the main thread serves a queue before it checks for signals.
const SIGNALS_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Waits as leader or follower on Python's main thread with the GIL released, until the answer is there or the deadline
/// passes.
///
/// It checks for signals: as a follower at once, because it waits on a descriptor; as a leader after a tenth of a
/// second at most. While a signal's handler runs, this wait has no place in the leadership. The handler may wait for an
/// answer of the same queue. It would wait for ever for a leader that is further down on its own stack.
pub fn wait_as_leader_or_follower<T: ServingWait + Send>(
    py: Python<'_>,
    deadline: &Deadline,
    begin: impl Fn(Waker) -> Option<T>,
) -> PyResult<()> {
    let mailbox = main_mailbox()?;
    loop {
        mailbox.discard();
        let Some(wait) = begin(Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 0 }) else {
            return Ok(());
        };
        let tokens = &*mailbox;
        if py.detach(move || is_there_soon(&wait, tokens, deadline)) {
            return Ok(());
        }
        py.check_signals()?;
        if deadline.has_passed() {
            return Ok(());
        }
    }
}

/// Serves, or follows, until it is time to check for signals, and leaves its place. Returns whether the answer is
/// there. Blocks the calling thread.
fn is_there_soon(wait: &impl ServingWait, mailbox: &Tokens, deadline: &Deadline) -> bool {
    let step = || wait.step(&deadline.or_earlier(Some(Instant::now() + SIGNALS_CHECK_INTERVAL)));
    if step() {
        return true;
    }
    if !wait.is_follower() {
        return false;
    }
    poll_readable(mailbox.notifier(), deadline);
    step()
}

/// Waits for a notification, a signal, or the deadline; raises the exception of a signal handler.
pub fn wait_readable(py: Python<'_>, notifier: &EventFd, deadline: &Deadline) -> PyResult<()> {
    py.detach(|| poll_readable(notifier, deadline));
    py.check_signals()
}

/// Waits for a notification, a signal, or the deadline. Blocks the calling thread.
fn poll_readable(notifier: &EventFd, deadline: &Deadline) {
    let mut poll = libc::pollfd { fd: notifier.descriptor(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd on our stack.
    unsafe { libc::poll(&raw mut poll, 1, deadline.remaining_ms()) };
}

/// Returns the seconds from now until a moment, at least 0.
pub fn seconds_until(moment: Instant) -> f64 {
    moment.saturating_duration_since(Instant::now()).as_secs_f64()
}
