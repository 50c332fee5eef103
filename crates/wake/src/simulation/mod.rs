//! Runs the threads of a program as tasks of one thread, in an order that a seed decides, on a clock of its own.
//!
//! A task runs until it waits (`Condvar`, and all that is built on it) or pauses; then the seed picks the next one
//! among those that are ready. The clock stands still while a task runs. When no task is ready, it goes to the earliest
//! moment for which one waits. Nothing left to wait for, while a task has not ended, is a lost wake-up.
//!
//! Two runs of one seed are the same, step by step.

use std::time::Duration;

mod locals;
mod primitives;
mod tasks;

pub use locals::LocalKey;
pub use primitives::{ClockSteps, Condvar, JoinHandle, Mutex, MutexGuard, OnStep};
pub use tasks::{
    Failure, Run, TaskId, block, check_each_step, current, is_running, now, pass_time, pause, random, run, since_start,
    spawn, trace, traced, wake,
};

/// The time since 1970 at the start of a simulation.
pub const EPOCH: Duration = Duration::from_hours(500_000);
