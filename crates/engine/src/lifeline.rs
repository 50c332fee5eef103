//! A thread that tells a supervisor that its process is alive, and notices when the supervisor is not.
//!
//! It knows no Python: whoever holds the interpreter's lock for an hour is alive all the same, and a supervisor's death is noticed
//! even then. What it sends is read by `swarm/protocol.py`.
//!
//! The thread also holds a tripwire: the writing end of a pipe, in a table of descriptors that is this thread's alone. A process that is
//! killed gives its memory back first and closes its descriptors then, which takes milliseconds, and only after that does anybody
//! else learn of its end. But each of its threads ends by itself and at once, and closes what is the thread's own: the supervisor,
//! at the reading end, hears of the kill while the system is still at work on the rest.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock::{Deadline, monotonic_ns};
use crate::wake::{Bell, EventFd, Parker};
use crate::{Error, Result};

/// What the engine knows of a process's work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// How long the oldest job has run.
    pub oldest_job: Duration,
    /// How long ago the group member's thread came up last.
    pub poll_age: Duration,
    /// Jobs given to workers.
    pub jobs: u64,
}

/// Asks for it; called by the lifeline's thread.
pub type Look = Box<dyn Fn() -> Work + Send>;

/// How a lifeline behaves.
#[derive(Clone, Copy, Debug)]
pub struct LifelineSettings {
    /// How far apart the signs of life are.
    pub interval: Duration,
    /// How long a process whose supervisor died may take to stop, after it was signalled to.
    pub drain: Duration,
    /// What it ends with when that was not enough.
    pub exit_code: i32,
}

/// A process's tie to its supervisor. Ends when it is dropped.
pub struct Lifeline {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    /// What is looked at, once there is something.
    look: Mutex<Option<Look>>,
    /// The control socket; its owner keeps it open.
    socket: RawFd,
    settings: LifelineSettings,
    stop: EventFd,
    is_closing: AtomicBool,
    sequence: AtomicU32,
    /// When a pulse was asked for that has not been answered, in nanoseconds of the monotonic clock; 0 when none is.
    asked_ns: AtomicU64,
    /// Where the thread of Python's waits that answers.
    pulse: Parker,
    assigned: AtomicU32,
    lag: AtomicI64,
}

impl Lifeline {
    /// Starts the thread, and leaves the tripwire to it alone.
    pub fn start(socket: RawFd, tripwire: OwnedFd, settings: LifelineSettings) -> Result<Self> {
        let shared = Arc::new(Shared {
            look: Mutex::default(),
            socket,
            settings,
            stop: EventFd::new()?,
            is_closing: AtomicBool::new(false),
            sequence: AtomicU32::new(0),
            asked_ns: AtomicU64::new(0),
            pulse: Parker::default(),
            assigned: AtomicU32::new(0),
            lag: AtomicI64::new(-1),
        });
        let (is_apart, apart) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("awoke-lifeline".into())
            .spawn({
                let shared = Arc::clone(&shared);
                let kept = [socket, shared.stop.descriptor(), tripwire.as_raw_fd()];
                move || {
                    // The thread's own copy of the tripwire ends with the thread, and with its table.
                    let _ = is_apart.send(keep_only(kept));
                    shared.run();
                }
            })
            .map_err(|error| Error::System { operation: "start the lifeline", detail: error.to_string() })?;
        if apart.recv() == Ok(true) {
            drop(tripwire);
        } else {
            // Linux before 5.9: it ends with the process's other descriptors, and tells its end no sooner than they do.
            let _ = tripwire.into_raw_fd();
        }
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Says where the process's work is seen from now on.
    pub fn watch(&self, look: Look) {
        *self.shared.look.lock().unwrap_or_else(PoisonError::into_inner) = Some(look);
    }

    /// Answers the last pulse with what Python knows, and waits for the next; `false` when the lifeline has ended. Blocks the
    /// calling thread. How long the answer takes tells how long a thread waits for the interpreter's lock.
    pub fn pulse(&self, assigned: u32, lag: i64) -> bool {
        self.shared.assigned.store(assigned, Ordering::Relaxed);
        self.shared.lag.store(lag, Ordering::Relaxed);
        self.shared.asked_ns.store(0, Ordering::Release);
        self.shared.pulse.park_until(&Deadline::NEVER);
        !self.shared.is_closing.load(Ordering::Acquire)
    }

    /// Ends the thread. Closing again does nothing.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.stop.ring();
        self.shared.pulse.unpark();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic of the thread has been printed; there is nothing left to save.
            drop(thread.join());
        }
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// 1. Wait for the next sign of life, the end, or the supervisor's.
    /// 2. Send one; what does not fit is dropped, the next one says more.
    /// 3. Without a supervisor have the process stop in order, and end it if it does not.
    fn run(&self) {
        let mut next = Instant::now();
        while !self.is_closing.load(Ordering::Acquire) {
            if self.wait_until(next) {
                self.leave_alone();
                return;
            }
            if Instant::now() >= next {
                next = Instant::now() + self.settings.interval;
                let work = self.look.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|look| look());
                self.send(work.unwrap_or_default());
                self.ask_for_pulse();
            }
        }
    }

    /// Waits until a moment or the end; whether the supervisor has gone.
    fn wait_until(&self, moment: Instant) -> bool {
        let timeout_ms = Deadline::at(moment).remaining_ms();
        let gone = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP;
        let mut polls = [
            libc::pollfd { fd: self.socket, events: libc::POLLRDHUP, revents: 0 },
            libc::pollfd { fd: self.stop.descriptor(), events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: two pollfds on our stack.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, timeout_ms) };
        polls[0].revents & gone != 0
    }

    fn send(&self, work: Work) {
        let asked_ns = self.asked_ns.load(Ordering::Acquire);
        let gil_wait_ms = if asked_ns == 0 { 0 } else { (monotonic_ns() - asked_ns) / 1_000_000 };
        let (resident_bytes, threads) = of_this_process();
        let mut message = Vec::with_capacity(64);
        message.push(b'V');
        message.extend_from_slice(&self.sequence.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        message.extend_from_slice(&resident_bytes.to_le_bytes());
        message.extend_from_slice(&threads.to_le_bytes());
        message.extend_from_slice(&gil_wait_ms.to_le_bytes());
        message.extend_from_slice(&(work.oldest_job.as_millis() as u64).to_le_bytes());
        message.extend_from_slice(&(work.poll_age.as_millis() as u64).to_le_bytes());
        message.extend_from_slice(&work.jobs.to_le_bytes());
        message.extend_from_slice(&self.assigned.load(Ordering::Relaxed).to_le_bytes());
        message.extend_from_slice(&self.lag.load(Ordering::Relaxed).to_le_bytes());
        // SAFETY: the message outlives the call. Full or closed, it is dropped: the next poll tells which.
        unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::send(self.socket, message.as_ptr().cast(), message.len(), flags);
        }
    }

    fn ask_for_pulse(&self) {
        if self.asked_ns.compare_exchange(0, monotonic_ns(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.pulse.unpark();
        }
    }

    /// The supervisor is gone: the process is to stop as for SIGTERM, and within its time.
    fn leave_alone(&self) {
        // SAFETY: signals this very process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        let mut poll = libc::pollfd { fd: self.stop.descriptor(), events: libc::POLLIN, revents: 0 };
        let deadline = Deadline::after(Some(self.settings.drain));
        while !self.is_closing.load(Ordering::Acquire) {
            if deadline.has_passed() {
                // SAFETY: ends the process; nothing of it may hold that up any more.
                unsafe { libc::_exit(self.settings.exit_code) };
            }
            // SAFETY: one pollfd on our stack.
            unsafe { libc::poll(&raw mut poll, 1, deadline.remaining_ms()) };
        }
    }
}

/// Gives the calling thread a table of descriptors of its own, with these and the standard streams; whether the system can.
///
/// What else the process has open must not stay open in that table: whoever waits for its end would wait for this thread's.
fn keep_only(mut kept: [RawFd; 3]) -> bool {
    const STREAMS: RawFd = 3;
    kept.sort_unstable();
    // From the highest on: the first call makes the table, and copies no more into it than it must.
    let mut last = u32::MAX;
    let mut flags = libc::CLOSE_RANGE_UNSHARE;
    for each in kept.into_iter().rev().chain([STREAMS - 1]) {
        let first = each.unsigned_abs() + 1;
        if first <= last {
            // SAFETY: takes no pointers. What it closes it closes for this thread, which has used none of it; not so only where
            // the first call fails, and then there is no second one.
            if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } != 0 {
                return false;
            }
            flags = 0;
        }
        last = each.unsigned_abs().saturating_sub(1);
    }
    true
}

/// Resident bytes and threads.
fn of_this_process() -> (u64, u32) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    // SAFETY: takes a number, always answers for this one.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    (pages * page_bytes.unsigned_abs(), u32::try_from(threads).unwrap_or(u32::MAX))
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_tripwire_is_the_threads_alone() {
        let (ours, _theirs) = UnixStream::pair().expect("descriptors");
        let (mut reading, writing) = std::io::pipe().expect("descriptors");
        let (mut beside, other) = std::io::pipe().expect("descriptors");
        let settings =
            LifelineSettings { interval: Duration::from_mins(1), drain: Duration::from_mins(1), exit_code: 1 };
        let lifeline = Lifeline::start(ours.as_raw_fd(), OwnedFd::from(writing), settings).expect("a thread");

        let names = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
        let pipe = std::fs::read_link(format!("/proc/self/fd/{}", reading.as_raw_fd())).expect("ours");
        let ends = names.filter(|each| std::fs::read_link(each.path()).is_ok_and(|file| file == pipe)).count();
        assert_eq!(ends, 1, "the process has the other end, too");
        // What others close is closed: the thread has no copy of it.
        drop(other);
        assert_eq!(beside.read(&mut [0]).expect("a pipe"), 0);
        let mut poll = libc::pollfd { fd: reading.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd on our stack.
        assert_eq!(unsafe { libc::poll(&raw mut poll, 1, 0) }, 0, "it ended before its time");

        lifeline.close();
        assert_eq!(reading.read(&mut [0]).expect("a pipe"), 0);
    }
}
