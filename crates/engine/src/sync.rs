//! The synchronisation primitives of the engine: the standard library's, or loom's when a model tries every interleaving.

#[cfg(feature = "model")]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks, and goes on with the data of a poisoned lock.
///
/// No lock of the engine is held while foreign code runs, so a panic can't leave half of a change behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
