//! A thread that notices when the system's clock is set, and reports by how much.
//!
//! Its loop:
//! 1. Have the kernel end a timer when the clock is set (`TFD_TIMER_CANCEL_ON_SET`, `timerfd_create(2)`).
//! 2. Wait for the timer, or for the stop.
//! 3. Compare the system's clock with the monotonic one, and report the change of the difference.
//!
//! No wait of awoke's depends on the system's clock. Delays by a message's timestamp and the deadlines of calls do.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::monotonic_ns;
use crate::fork_guard::ForkGuard;
use crate::{Error, Result};
use crate::{EventFd, Notifier, OwnThread};

/// A function that gets the nanoseconds by which the clock was set forward, or back (negative). Called on the watch's
/// own thread.
pub type OnStep = Box<dyn Fn(i64) + Send>;

/// A watch on the system's clock, which ends when this is dropped.
pub struct ClockSteps {
    guard: ForkGuard,
    stop: Arc<Stop>,
    thread: Option<OwnThread>,
}

struct Stop {
    notifier: EventFd,
    is_set: AtomicBool,
}

impl ClockSteps {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::System`]: no descriptor or no thread is left.
    pub fn watch(on_step: OnStep) -> Result<Self> {
        // SAFETY: takes no pointers; the value made here owns the descriptor.
        let timer = unsafe {
            let timer = libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK);
            if timer < 0 {
                return Err(Error::last_system("timerfd_create"));
            }
            OwnedFd::from_raw_fd(timer)
        };
        let stop = Arc::new(Stop { notifier: EventFd::new()?, is_set: AtomicBool::new(false) });
        let thread = OwnThread::start("awoke-clock", "start the clock's thread", {
            let stop = Arc::clone(&stop);
            move || run(&timer, &stop, &on_step)
        })?;
        Ok(Self { guard: ForkGuard::new("clock watch"), stop, thread: Some(thread) })
    }
}

impl Drop for ClockSteps {
    fn drop(&mut self) {
        if self.guard.is_foreign() {
            return; // The notifier is the parent's.
        }
        self.stop.is_set.store(true, Ordering::Release);
        self.stop.notifier.notify();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

fn run(timer: &OwnedFd, stop: &Stop, on_step: &OnStep) {
    let mut before = wall_beyond_monotonic_ns();
    loop {
        arm(timer);
        let is_stepped = wait(timer, stop);
        if stop.is_set.load(Ordering::Acquire) {
            return;
        }
        if is_stepped {
            let now = wall_beyond_monotonic_ns();
            on_step(now - before);
            before = now;
        }
    }
}

/// Sets a timer that ends in the far future, or when the clock is set. Setting it again clears an end.
fn arm(timer: &OwnedFd) {
    // SAFETY: the structure holds numbers only, for which zero is a value.
    let mut never: libc::itimerspec = unsafe { std::mem::zeroed() };
    never.it_value.tv_sec = libc::time_t::MAX / 1_000_000_000; // Kernels count nanoseconds in 64 bits.
    let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
    // SAFETY: the caller owns the descriptor; the kernel reads the structure during the call.
    unsafe { libc::timerfd_settime(timer.as_raw_fd(), flags, &raw const never, std::ptr::null_mut()) };
}

/// Waits for a clock step or the stop. Returns whether the timer ended.
fn wait(timer: &OwnedFd, stop: &Stop) -> bool {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polls = [poll(timer.as_raw_fd()), poll(stop.notifier.descriptor())];
    // SAFETY: two pollfds on this stack. There is no deadline, because the owner notifies.
    unsafe { libc::poll(polls.as_mut_ptr(), 2, -1) };
    polls[0].revents != 0
}

fn wall_beyond_monotonic_ns() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    i64::try_from(wall).unwrap_or(i64::MAX) - i64::try_from(monotonic_ns()).unwrap_or(i64::MAX)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_when_it_is_dropped_and_reports_no_step_without_one() {
        let steps = Arc::new(AtomicBool::new(false));
        let watch = ClockSteps::watch({
            let steps = Arc::clone(&steps);
            Box::new(move |_| steps.store(true, Ordering::Release))
        });
        drop(watch.expect("a timer and a thread"));
        assert!(!steps.load(Ordering::Acquire));
        assert_eq!(Arc::strong_count(&steps), 1, "the thread has ended");
    }
}
