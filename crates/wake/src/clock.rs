//! Deadlines on the monotonic clock: changing the wall clock shortens or lengthens no wait.

use std::time::{Duration, Instant};

/// The moment at which a wait times out; `NEVER` only where another event is certain to end the wait.
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
    /// The deadline that never passes.
    pub const NEVER: Self = Self(Limit::Never);

    /// Makes the deadline `timeout` from now. It never passes for `None`, or for a time beyond the clock's range.
    pub fn after(timeout: Option<Duration>) -> Self {
        let at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self(at.map_or(Limit::Never, Limit::At))
    }

    /// Makes the deadline at this moment.
    pub const fn at(moment: Instant) -> Self {
        Self(Limit::At(moment))
    }

    /// Makes a deadline that passes when the flag is set (and the waiting thread is woken to check it).
    #[cfg(feature = "model")]
    pub fn flag(flag: std::sync::Arc<loom::sync::atomic::AtomicBool>) -> Self {
        Self(Limit::Flag(flag))
    }

    /// Returns whether the moment has come.
    pub fn has_passed(&self) -> bool {
        match &self.0 {
            Limit::Never => false,
            Limit::At(moment) => Instant::now() >= *moment,
            #[cfg(feature = "model")]
            Limit::Flag(flag) => flag.load(loom::sync::atomic::Ordering::SeqCst),
        }
    }

    /// Returns the remaining time, at least zero; `None` for a deadline that never passes.
    pub fn remaining(&self) -> Option<Duration> {
        match &self.0 {
            Limit::Never => None,
            Limit::At(moment) => Some(moment.saturating_duration_since(Instant::now())),
            #[cfg(feature = "model")]
            Limit::Flag(_) => None,
        }
    }

    /// Returns the remaining time in the form that librdkafka takes: milliseconds rounded up, -1 for ever.
    pub fn remaining_ms(&self) -> i32 {
        self.remaining().map_or(-1, |left| i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))
    }

    /// Returns the earlier of this deadline and a moment.
    #[must_use]
    pub fn or_earlier(&self, moment: Option<Instant>) -> Self {
        match (&self.0, moment) {
            (Limit::Never, Some(moment)) => Self::at(moment),
            (Limit::At(mine), Some(moment)) => Self::at((*mine).min(moment)),
            _ => self.clone(),
        }
    }
}

/// Returns nanoseconds of a monotonic clock that ticks a few hundred times a second and is read in a few nanoseconds.
pub fn coarse_ns() -> u64 {
    #[cfg(target_os = "linux")]
    const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
    #[cfg(not(target_os = "linux"))]
    const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC;
    read_ns(COARSE)
}

/// Returns nanoseconds of the monotonic clock, the one that Python's `time.monotonic_ns()` reads.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes the timespec that it is given; both clocks exist on every system that awoke runs on.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_at_its_moment() {
        assert!(Deadline::after(Some(Duration::ZERO)).has_passed());
        assert!(!Deadline::after(Some(Duration::from_mins(1))).has_passed());
        assert_eq!(Deadline::after(Some(Duration::ZERO)).remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn no_time_out_and_one_beyond_the_clocks_range_never_pass() {
        for deadline in [Deadline::NEVER, Deadline::after(None), Deadline::after(Some(Duration::MAX))] {
            assert!(!deadline.has_passed());
            assert_eq!((deadline.remaining(), deadline.remaining_ms()), (None, -1));
        }
    }

    #[test]
    fn milliseconds_are_rounded_up_and_bounded() {
        assert_eq!(Deadline::after(Some(Duration::ZERO)).remaining_ms(), 0);
        assert_eq!(Deadline::after(Some(Duration::from_micros(900_500))).remaining_ms().div_euclid(902), 0);
        assert!(Deadline::at(Instant::now() + Duration::from_millis(900)).remaining_ms() > 0);
        assert_eq!(Deadline::after(Some(Duration::from_secs(1 << 40))).remaining_ms(), i32::MAX);
    }

    #[test]
    fn the_earlier_of_two_deadlines_counts() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_mins(1));
        for deadline in [Deadline::at(now), Deadline::at(later), Deadline::NEVER] {
            assert!(deadline.or_earlier(Some(now)).has_passed());
        }
        assert!(!Deadline::NEVER.or_earlier(None).has_passed());
        assert!(Deadline::at(now).or_earlier(Some(later)).has_passed());
    }

    #[test]
    fn the_clocks_do_not_go_back() {
        let (coarse, fine) = (coarse_ns(), monotonic_ns());
        assert!(coarse_ns() >= coarse && monotonic_ns() >= fine);
    }
}
