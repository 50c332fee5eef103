//! The synchronisation primitives of the engine: the standard library's, or loom's when a model tries every interleaving.

#[cfg(feature = "model")]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::AtomicU64,
    sync::{Condvar, Mutex, MutexGuard},
};
#[cfg(not(feature = "model"))]
pub use std::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU64};

use std::sync::PoisonError;

/// Locks, and goes on with the data of a poisoned lock.
///
/// No lock of the engine is held while foreign code runs, so a panic can't leave half of a change behind.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The standard library's cell in the form that loom's has, which notices two threads in one cell.
#[cfg(not(feature = "model"))]
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(feature = "model"))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `change` with a pointer, which it may write through as long as nobody else is in the cell.
    #[inline]
    pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}
