//! Python's waits: on a descriptor that its event loop or its `select` watches, or blocked with the GIL released.

use std::sync::Arc;
use std::time::Duration;

use awoke_engine::clock::Deadline;
use awoke_engine::fork_guard::is_first_thread;
use awoke_engine::wake::{Awaited, Completion, EventFd, ServingWait, Tokens, Waker};
use pyo3::prelude::*;

use crate::errors::Result;

mod mailbox;
mod main_thread;

pub use mailbox::{Mailbox, Notifier};
use main_thread::main_mailbox;

/// Waits for a completion as `wait_until_ready` does. Returns its result; `None` if the deadline passed first.
pub fn wait_for<T: Clone + Send + Sync>(
    py: Python<'_>,
    completion: &Completion<T>,
    deadline: &Deadline,
) -> Result<Option<T>> {
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
pub fn wait_until_ready(py: Python<'_>, awaited: &impl Awaited, deadline: &Deadline) -> Result<()> {
    if awaited.is_ready() {
        return Ok(());
    }
    if !is_first_thread() {
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
) -> Result<()> {
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
    let step = || wait.step(&deadline.or_within(Some(SIGNALS_CHECK_INTERVAL)));
    if step() {
        return true;
    }
    if !wait.is_follower() {
        return false;
    }
    mailbox.notifier().wait(deadline);
    step()
}

/// Waits for a notification, a signal, or the deadline; raises the exception of a signal handler.
pub fn wait_readable(py: Python<'_>, notifier: &EventFd, deadline: &Deadline) -> Result<()> {
    py.detach(|| notifier.wait(deadline));
    Ok(py.check_signals()?)
}

/// Has an event loop wait for a handle: its `__await__`.
pub fn resolve<'py, T>(handle: &Bound<'py, T>) -> Result<Bound<'py, PyAny>> {
    Ok(handle
        .py()
        .import("awoke.waiting.handles")?
        .call_method1("resolve", (handle.as_any(),))?
        .call_method0("__await__")?)
}
