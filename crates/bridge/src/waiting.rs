//! How Python waits: by a descriptor that its event loop or its `select` watches, or blocked with the GIL released.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use awoke_engine::clock::Deadline;
use awoke_engine::fork_guard::Birthplace;
use awoke_engine::wake::{Completion, EventFd, Mailbox as EngineMailbox, Notifier as _, Waker};
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

/// Makes a descriptor readable when an event loop should look for work.
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

/// Something that a thread can wait for.
pub trait Awaited: Sync {
    /// Names a waker that was registered.
    type Registration;

    /// Whether there is nothing to wait for any more.
    fn is_ready(&self) -> bool;
    /// Has the waker woken when it is ready; `None` when it is now.
    fn register(&self, waker: Waker) -> Option<Self::Registration>;
    /// Takes that back.
    fn unregister(&self, registration: Self::Registration);
    /// Waits on this very thread.
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

/// Waits for a completion as `wait_until_ready` does; its result, or `None` when the deadline passed first.
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

/// Waits with the GIL released, and without letting go of it when there is nothing to wait for.
///
/// Python's main thread runs the handlers of signals, so its wait must end for them: it waits on a descriptor, where a
/// signal interrupts it; every other thread waits on the thing itself.
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
        // What woke us stays in the mailbox until the next wait clears it: nothing stands between the answer and its
        // use.
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

/// A wait of somebody who serves a queue for all who wait for it, when it is its turn.
pub trait Turn {
    /// Serves until the thing is there, or the deadline passes, if it is its turn; whether the thing is there.
    fn step(&self, deadline: &Deadline) -> bool;
    /// Whether somebody else serves.
    fn is_follower(&self) -> bool;
}

/// How long the main thread may serve a queue before it looks for signals.
const FOR_SIGNALS: Duration = Duration::from_millis(100);

/// Waits in turn on Python's main thread with the GIL released, until the thing is there or the deadline passes.
///
/// It comes up for signals: as a follower at once, because it waits on a descriptor, as a leader after a tenth of a
/// second at most. While a signal's handler runs, this wait has no place: the handler may wait for something of the
/// same queue, and would wait for ever for a leader that is further down on its own stack.
pub fn wait_in_turn<T: Turn + Send>(
    py: Python<'_>,
    deadline: &Deadline,
    begin: impl Fn(Waker) -> Option<T>,
) -> PyResult<()> {
    let mailbox = main_mailbox()?;
    loop {
        mailbox.discard();
        let Some(turn) = begin(Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 0 }) else {
            return Ok(());
        };
        let tokens = &*mailbox;
        if py.detach(move || is_there_soon(&turn, tokens, deadline)) {
            return Ok(());
        }
        py.check_signals()?;
        if deadline.has_passed() {
            return Ok(());
        }
    }
}

/// Serves, or follows, until it is time to look for signals, and gives the place up; whether the thing is there. Blocks
/// the calling thread.
fn is_there_soon(turn: &impl Turn, mailbox: &Tokens, deadline: &Deadline) -> bool {
    let step = || turn.step(&deadline.or_earlier(Some(Instant::now() + FOR_SIGNALS)));
    if step() {
        return true;
    }
    if !turn.is_follower() {
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

/// Whether this is the process's first thread, where Python runs signal handlers.
pub fn is_main_thread() -> bool {
    thread_local! {
        static FOUND: Cell<Option<(Birthplace, bool)>> = const { Cell::new(None) };
    }
    // Found once for a thread and a process: a forked child's only thread is its first, whichever it was.
    if let Some((_, found)) = FOUND.get().filter(|(process, _)| !process.is_foreign()) {
        return found;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take nothing and always succeed.
    let found = unsafe { libc::getpid() == libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: takes nothing and always succeeds.
    let found = unsafe { libc::pthread_main_np() != 0 };
    FOUND.set(Some((Birthplace::here(), found)));
    found
}

/// The main thread's own mailbox, made on first use. After a fork the child's main thread makes one of its own.
pub fn main_mailbox() -> PyResult<Arc<Tokens>> {
    thread_local! {
        static MAILBOX: RefCell<Option<(Birthplace, Arc<Tokens>)>> = const { RefCell::new(None) };
    }
    MAILBOX.with_borrow_mut(|kept| {
        if let Some((_, mailbox)) = kept.as_ref().filter(|(process, _)| !process.is_foreign()) {
            return Ok(Arc::clone(mailbox));
        }
        let notifier = EventFd::new().map_err(|error| to_python(&error))?;
        let mailbox = Arc::new(Tokens::new(notifier));
        // The parent's mailbox, if there is one, is left alone: its lock may be held for ever.
        std::mem::forget(kept.replace((Birthplace::here(), Arc::clone(&mailbox))));
        Ok(mailbox)
    })
}

/// Seconds from now until a moment, at least 0.
pub fn seconds_until(moment: Instant) -> f64 {
    moment.saturating_duration_since(Instant::now()).as_secs_f64()
}
