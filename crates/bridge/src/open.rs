//! An object of the engine that Python can close, and that a forked child must not use.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use awoke_engine::fork_guard::ForkGuard;
use awoke_engine::{Error, Result};
use pyo3::prelude::*;

/// An object of the engine, until it is closed. Its threads end then, even if the Python object is kept.
///
/// Every use checks the process first: another thread of the parent may have held any lock at the fork.
pub struct Open<T> {
    what: &'static str,
    guard: ForkGuard,
    inner: RwLock<Option<Arc<T>>>,
}

impl<T> Open<T> {
    pub fn new(what: &'static str, inner: T) -> Self {
        Self { what, guard: ForkGuard::new(what), inner: RwLock::new(Some(Arc::new(inner))) }
    }

    /// Returns the open object. The lock is released on return: a call that blocks must not block other threads.
    pub fn get(&self) -> Result<Arc<T>> {
        self.guard.check()?;
        let open = self.inner.read().unwrap_or_else(PoisonError::into_inner).clone();
        open.ok_or(Error::Closed { what: self.what })
    }

    /// Returns a weak reference to the open object.
    pub fn weak(&self) -> Result<Weak<T>> {
        Ok(Arc::downgrade(&self.get()?))
    }

    /// Takes the object out, ends it by `end` and drops it, with the GIL released. Returns `None`, and does nothing, if
    /// it was taken before, or in a forked child.
    pub fn close<R: Send>(&self, py: Python<'_>, end: impl FnOnce(&T) -> R + Send) -> Option<R>
    where
        T: Send + Sync,
    {
        let open = self.take().ok().flatten()?;
        py.detach(move || Some(end(&open)))
    }

    /// Takes the object out; `None` if it was taken before.
    pub fn take(&self) -> Result<Option<Arc<T>>> {
        self.guard.check()?;
        Ok(self.inner.write().unwrap_or_else(PoisonError::into_inner).take())
    }
}
