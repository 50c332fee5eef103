//! Python's main thread, which runs the handlers of signals.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use awoke_engine::fork_guard::Birthplace;
use awoke_engine::wake::EventFd;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::waiting::Tokens;

/// Returns whether this is the process's first thread, where Python runs signal handlers.
pub fn is_main_thread() -> bool {
    thread_local! {
        static FOUND: Cell<Option<(Birthplace, bool)>> = const { Cell::new(None) };
    }
    // Found once for each thread and process: a forked child's only thread is its first, whichever it was before.
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

/// Returns the main thread's own mailbox, made on first use. After a fork the child's main thread makes its own.
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
        // The parent's mailbox, if there is one, is not dropped: its lock may be held for ever.
        std::mem::forget(kept.replace((Birthplace::here(), Arc::clone(&mailbox))));
        Ok(mailbox)
    })
}
