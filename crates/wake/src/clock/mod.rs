//! awoke's clock, and deadlines on it: changing the wall clock shortens or lengthens no wait.
//!
//! Everything of awoke's own that waits for a moment, or compares one, reads this clock. A test may take it: then it
//! stands still until the test moves it (`virtual_time`). Waits for a broker, a process or a thread are bounded by
//! real time, whatever the clock shows.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod virtual_time;

pub use virtual_time::{
    Activity, Due, Timed, changed, is_job_thread, is_virtual, mark_job_thread, move_to, next_due, register, release,
    running, settle, take,
};

/// Returns the present moment of the clock.
#[inline]
pub fn now() -> Instant {
    if virtual_time::MODE.load(Ordering::Relaxed) == virtual_time::REAL {
        return real_now();
    }
    virtual_time::now().0
}

/// Returns the present moment of real time; in a simulation, of its clock.
#[inline]
pub fn real_now() -> Instant {
    #[cfg(feature = "simulated")]
    if crate::simulation::is_running() {
        return crate::simulation::now();
    }
    Instant::now()
}

/// Returns the real time since a moment; in a simulation, the time of its clock.
pub fn real_since(moment: Instant) -> Duration {
    real_now().saturating_duration_since(moment)
}

/// Returns the present moment of the clock in nanoseconds: those of the monotonic clock, unless a test moved it.
#[inline]
pub fn now_ns() -> u64 {
    if virtual_time::MODE.load(Ordering::Relaxed) == virtual_time::REAL {
        return monotonic_ns();
    }
    virtual_time::now().1
}

/// Returns the time since 1970. It moves with the clock that a test has taken, and only while it has it.
pub fn wall() -> Duration {
    #[cfg(feature = "simulated")]
    if crate::simulation::is_running() {
        return crate::simulation::EPOCH + crate::simulation::since_start();
    }
    virtual_time::wall().unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns the time with which a message is stamped, in milliseconds since 1970, while a test has the clock; else
/// `None`: the client stamps it.
#[inline]
pub fn stamp_ms() -> Option<i64> {
    is_virtual().then(|| i64::try_from(wall().as_millis()).unwrap_or(i64::MAX))
}

/// Returns the time since a moment of the clock, at least zero.
pub fn since(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}

/// The moment at which a wait times out; `NEVER` only where another event is certain to end the wait.
///
/// It has up to two moments, and the earlier counts: one of the clock, and one of real time.
#[derive(Clone, Debug)]
pub struct Deadline {
    moment: Option<Instant>,
    real: Option<Instant>,
    /// Under a model there is no time: a thread of the model decides when this deadline has passed.
    #[cfg(feature = "model")]
    flag: Option<std::sync::Arc<loom::sync::atomic::AtomicBool>>,
}

impl Deadline {
    /// The deadline that never passes.
    pub const NEVER: Self = Self {
        moment: None,
        real: None,
        #[cfg(feature = "model")]
        flag: None,
    };

    /// Makes the deadline `timeout` from now in real time. It never passes for `None`, or for a time beyond the clock's
    /// range.
    pub fn after(timeout: Option<Duration>) -> Self {
        Self { real: timeout.and_then(|timeout| real_now().checked_add(timeout)), ..Self::NEVER }
    }

    /// Makes the deadline at this moment of the clock.
    pub const fn at(moment: Instant) -> Self {
        Self { moment: Some(moment), ..Self::NEVER }
    }

    /// Makes a deadline that passes when the flag is set (and the waiting thread is woken to check it).
    #[cfg(feature = "model")]
    pub fn flag(flag: std::sync::Arc<loom::sync::atomic::AtomicBool>) -> Self {
        Self { flag: Some(flag), ..Self::NEVER }
    }

    /// Returns whether the moment has come.
    pub fn has_passed(&self) -> bool {
        #[cfg(feature = "model")]
        if self.flag.as_ref().is_some_and(|flag| flag.load(loom::sync::atomic::Ordering::SeqCst)) {
            return true;
        }
        self.moment.is_some_and(|moment| now() >= moment) || self.real.is_some_and(|real| real_now() >= real)
    }

    /// Returns the remaining time, at least zero; `None` if no time ends the wait. While a test has the clock, a moment
    /// of the clock that is still to come is one: the test wakes the threads that wait for it.
    pub fn remaining(&self) -> Option<Duration> {
        let real = self.real.map(|real| real.saturating_duration_since(real_now()));
        let left = self.moment.map(|moment| moment.saturating_duration_since(now()));
        let left = left.filter(|left| left.is_zero() || !is_virtual());
        match (left, real) {
            (Some(left), Some(real)) => Some(left.min(real)),
            (left, real) => left.or(real),
        }
    }

    /// Returns the remaining time in the form that librdkafka takes: milliseconds rounded up, -1 for ever.
    pub fn remaining_ms(&self) -> i32 {
        self.remaining().map_or(-1, |left| i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))
    }

    /// Returns the earlier of this deadline and a moment of the clock.
    #[must_use]
    pub fn or_earlier(&self, moment: Option<Instant>) -> Self {
        let moment = match (self.moment, moment) {
            (Some(mine), Some(moment)) => Some(mine.min(moment)),
            (mine, moment) => mine.or(moment),
        };
        Self { moment, ..self.clone() }
    }

    /// Returns the earlier of this deadline and a moment of real time.
    #[must_use]
    pub fn or_real(&self, real: Option<Instant>) -> Self {
        let real = match (self.real, real) {
            (Some(mine), Some(real)) => Some(mine.min(real)),
            (mine, real) => mine.or(real),
        };
        Self { real, ..self.clone() }
    }

    /// Returns the earlier of this deadline and one this long from now in real time.
    #[must_use]
    pub fn or_within(&self, timeout: Option<Duration>) -> Self {
        self.or_real(Self::after(timeout).real)
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
    #[cfg(feature = "simulated")]
    if crate::simulation::is_running() {
        return (crate::simulation::EPOCH + crate::simulation::since_start()).as_nanos() as u64;
    }
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
        assert!(Deadline::NEVER.or_within(Some(Duration::ZERO)).has_passed());
        assert!(Deadline::after(Some(Duration::ZERO)).or_within(Some(Duration::from_mins(1))).has_passed());
        assert!(!Deadline::NEVER.or_within(None).has_passed());
    }

    #[test]
    fn the_clocks_do_not_go_back() {
        let (coarse, fine) = (coarse_ns(), monotonic_ns());
        assert!(coarse_ns() >= coarse && monotonic_ns() >= fine);
    }
}
