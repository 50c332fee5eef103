//! Deadlines on the monotonic clock: changing the wall clock shortens or lengthens no wait.

use std::time::{Duration, Instant};

/// The moment at which a wait gives up; `NEVER` only where something else is certain to end the wait.
#[derive(Clone, Debug)]
pub struct Deadline(Limit);

#[derive(Clone, Debug)]
enum Limit {
    Never,
    At(Instant),
    /// Under a model there is no time: a thread of the model decides when this deadline has passed.
    #[cfg(feature = "model")]
    Flag(std::sync::Arc<loom::sync::atomic::AtomicBool>),
}

impl Deadline {
    /// A deadline that does not pass.
    pub const NEVER: Self = Self(Limit::Never);

    /// The deadline `timeout` from now; `None`, or a time beyond what the clock can count, never passes.
    pub fn after(timeout: Option<Duration>) -> Self {
        let at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self(at.map_or(Limit::Never, Limit::At))
    }

    /// The deadline at this moment.
    pub const fn at(moment: Instant) -> Self {
        Self(Limit::At(moment))
    }

    /// A deadline that passes when the flag is set (and the waiting thread is woken to look).
    #[cfg(feature = "model")]
    pub fn flag(flag: std::sync::Arc<loom::sync::atomic::AtomicBool>) -> Self {
        Self(Limit::Flag(flag))
    }

    /// Whether the moment has come.
    pub fn has_passed(&self) -> bool {
        match &self.0 {
            Limit::Never => false,
            Limit::At(moment) => Instant::now() >= *moment,
            #[cfg(feature = "model")]
            Limit::Flag(flag) => flag.load(loom::sync::atomic::Ordering::SeqCst),
        }
    }

    /// What is left, at least zero; `None` for a deadline that does not pass.
    pub fn remaining(&self) -> Option<Duration> {
        match &self.0 {
            Limit::Never => None,
            Limit::At(moment) => Some(moment.saturating_duration_since(Instant::now())),
            #[cfg(feature = "model")]
            Limit::Flag(_) => None,
        }
    }

    /// What is left in the form that librdkafka takes: milliseconds rounded up, -1 for ever.
    pub fn remaining_ms(&self) -> i32 {
        self.remaining().map_or(-1, |left| i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))
    }

    /// The earlier of this deadline and that moment.
    #[must_use]
    pub fn or_earlier(&self, moment: Option<Instant>) -> Self {
        match (&self.0, moment) {
            (Limit::Never, Some(moment)) => Self::at(moment),
            (Limit::At(mine), Some(moment)) => Self::at((*mine).min(moment)),
            _ => self.clone(),
        }
    }
}

/// Nanoseconds of a monotonic clock that moves a few hundred times a second and is read in a few nanoseconds.
pub fn coarse_ns() -> u64 {
    #[cfg(target_os = "linux")]
    const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
    #[cfg(not(target_os = "linux"))]
    const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC;
    read_ns(COARSE)
}

/// Nanoseconds of the monotonic clock, the one that Python's `time.monotonic_ns()` reads.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes the timespec that it is given; both clocks exist on every system that awoke runs on.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
