//! The synchronisation primitives of the engine: the standard library's, loom's in a model, or those of a simulation.

#[cfg(feature = "simulated")]
pub use crate::simulation::{Condvar, Mutex, MutexGuard};
#[cfg(feature = "simulated")]
pub use crate::task_local as thread_local;
#[cfg(feature = "model")]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU64},
    sync::{Condvar, Mutex, MutexGuard},
};
#[cfg(not(feature = "model"))]
pub use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(any(feature = "model", feature = "simulated")))]
pub use std::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "simulated"))]
pub use std::thread_local;

use std::sync::PoisonError;

/// Locks, and ignores poisoning.
///
/// No lock of the engine is held while foreign code runs, so a panic cannot leave an incomplete change.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The standard library's cell with the interface of loom's, which detects two threads in one cell.
#[cfg(not(feature = "model"))]
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(feature = "model"))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `change` with a pointer. It may write through it as long as no other thread accesses the cell.
    #[inline]
    pub fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}
