//! Python's main thread, which runs the handlers of signals.

use std::cell::RefCell;
use std::sync::Arc;

use awoke_engine::fork_guard::Birthplace;
use awoke_engine::wake::{EventFd, Tokens};

use crate::errors::Result;

/// Returns the main thread's own mailbox, made on first use. After a fork the child's main thread makes its own.
pub fn main_mailbox() -> Result<Arc<Tokens>> {
    thread_local! {
        static MAILBOX: RefCell<Option<(Birthplace, Arc<Tokens>)>> = const { RefCell::new(None) };
    }
    MAILBOX.with_borrow_mut(|kept| {
        if let Some((_, mailbox)) = kept.as_ref().filter(|(process, _)| !process.is_foreign()) {
            return Ok(Arc::clone(mailbox));
        }
        let notifier = EventFd::new()?;
        let mailbox = Arc::new(Tokens::new(notifier));
        // The parent's mailbox, if there is one, is not dropped: its lock may be held for ever.
        std::mem::forget(kept.replace((Birthplace::here(), Arc::clone(&mailbox))));
        Ok(mailbox)
    })
}
