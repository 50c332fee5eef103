//! The synchronisation primitives of a simulation, in the shape of the standard library's.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError};
use std::time::Duration;

use super::tasks::{self, TaskId};
use crate::Result;

/// A mutex. No task waits for it: a task never pauses while it holds one, or the run fails.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// The lock on a [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    guard: std::sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Locks it. Does not block.
    ///
    /// # Errors
    /// As of the standard library's.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(MutexGuard { guard, mutex: self }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(PoisonError::new(MutexGuard { guard: poisoned.into_inner(), mutex: self }))
            }
            Err(TryLockError::WouldBlock) => panic!("a task waits while it holds a lock"),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable. Its waits end by a notification, or by a time-out on the clock of the simulation.
#[derive(Debug, Default)]
pub struct Condvar {
    waiting: std::sync::Mutex<VecDeque<TaskId>>,
}

impl Condvar {
    /// Makes a condition variable.
    pub const fn new() -> Self {
        Self { waiting: std::sync::Mutex::new(VecDeque::new()) }
    }

    /// Waits for a notification. Blocks the present task.
    ///
    /// # Errors
    /// As of the standard library's.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_until(guard, None)
    }

    /// Waits for a notification, up to a time. Blocks the present task. The second value is never read.
    ///
    /// # Errors
    /// As of the standard library's.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        match self.wait_until(guard, Some(timeout)) {
            Ok(guard) => Ok((guard, ())),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), ()))),
        }
    }

    fn wait_until<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Option<Duration>) -> LockResult<MutexGuard<'a, T>> {
        let (mutex, current) = (guard.mutex, tasks::current());
        self.waiting().push_back(current);
        drop(guard);
        tasks::block(timeout.map(|timeout| tasks::now() + timeout));
        self.waiting().retain(|waiting| *waiting != current);
        mutex.lock()
    }

    /// Wakes the task that has waited longest.
    pub fn notify_one(&self) {
        let first = self.waiting().pop_front();
        first.into_iter().for_each(tasks::wake);
    }

    /// Wakes all tasks that wait.
    pub fn notify_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(tasks::wake);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<TaskId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task, in the place of a thread's handle.
#[derive(Debug)]
pub struct JoinHandle<T> {
    task: TaskId,
    result: std::marker::PhantomData<T>,
}

impl JoinHandle<()> {
    pub(super) const fn new(task: TaskId) -> Self {
        Self { task, result: std::marker::PhantomData }
    }

    /// Waits until the task has ended. Blocks the present task.
    ///
    /// # Errors
    /// None: a panic of a task ends the simulation.
    pub fn join(self) -> std::thread::Result<()> {
        tasks::join(self.task);
        Ok(())
    }

    /// Returns whether the task has ended.
    pub fn is_finished(&self) -> bool {
        tasks::has_ended(self.task)
    }

    /// Returns whether this is the present task.
    pub fn is_current(&self) -> bool {
        tasks::current() == self.task
    }
}

/// A function that would be told of a clock that is set.
pub type OnStep = Box<dyn Fn(i64) + Send>;

/// Watches nothing: the clock of a simulation is never set.
pub struct ClockSteps;

impl ClockSteps {
    /// Makes a watch that never calls `on_step`.
    ///
    /// # Errors
    /// None.
    pub fn watch(_on_step: OnStep) -> Result<Self> {
        Ok(Self)
    }
}
