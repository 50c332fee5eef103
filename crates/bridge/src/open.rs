//! Something of the engine's that Python can close, and that a forked child must not touch.

use std::sync::{Arc, PoisonError, RwLock};

use awoke_engine::fork_guard::ForkGuard;
use awoke_engine::{Error, Result};

/// Something of the engine's, until it is closed: its threads end then, whoever still holds the Python object.
///
/// Every use looks at the process first: another thread of the parent may have held any lock at the fork.
pub struct Open<T> {
    what: &'static str,
    guard: ForkGuard,
    inner: RwLock<Option<Arc<T>>>,
}

impl<T> Open<T> {
    pub fn new(what: &'static str, inner: T) -> Self {
        Self { what, guard: ForkGuard::new(what), inner: RwLock::new(Some(Arc::new(inner))) }
    }

    /// The open thing. The lock is down again when this returns: a call that blocks must hold up nobody.
    pub fn get(&self) -> Result<Arc<T>> {
        self.guard.check()?;
        let open = self.inner.read().unwrap_or_else(PoisonError::into_inner).clone();
        open.ok_or(Error::Closed { what: self.what })
    }

    /// Takes it away; `None` when somebody did before.
    pub fn take(&self) -> Result<Option<Arc<T>>> {
        self.guard.check()?;
        Ok(self.inner.write().unwrap_or_else(PoisonError::into_inner).take())
    }
}
