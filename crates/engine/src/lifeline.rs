//! A thread that tells a supervisor that its process is alive, and notices when the supervisor has ended.
//!
//! It needs no Python: a process whose code holds the interpreter's lock for an hour is alive all the same, and the
//! supervisor's end is noticed even then. `swarm/protocol.py` reads its messages.
//!
//! The thread also has a tripwire: the writing end of a pipe, in a table of descriptors of its own. A process that is
//! killed frees its memory first and closes its descriptors then, which takes milliseconds, and only after that other
//! processes learn of its end. But each of its threads ends at once, and closes its own descriptors: the supervisor, at
//! the reading end, learns of the kill while the system still works on the rest.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

use crate::clock::{self, Deadline, monotonic_ns};
use crate::consume::{GroupMember, PartitionScheduler};
use crate::wake::{EventFd, Notifier, OwnThread, Parker};
use crate::{Error, Result};

/// The activity of a process, as far as the engine knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    /// The time for which the oldest job has run.
    oldest_job: Duration,
    /// The time since the thread of a group member came up last; of several members, the longest.
    poll_age: Duration,
    /// Jobs given to workers.
    jobs: u64,
}

/// Reads the activity; called by the lifeline's thread.
type ReadActivity = Box<dyn Fn() -> Activity + Send>;

/// The settings of a lifeline.
#[derive(Clone, Copy, Debug)]
pub struct LifelineSettings {
    /// The interval of the signs of life.
    pub interval: Duration,
    /// The time that a process has to stop, after it was signalled because its supervisor ended.
    pub drain: Duration,
    /// The exit code when that was not enough.
    pub exit_code: i32,
}

/// A process's tie to its supervisor. Ends when it is dropped.
pub struct Lifeline {
    shared: Arc<Shared>,
    thread: Mutex<Option<OwnThread>>,
}

struct Shared {
    /// `None` until there is an activity.
    read_activity: Mutex<Option<ReadActivity>>,
    /// The control socket; its owner keeps it open.
    socket: RawFd,
    settings: LifelineSettings,
    stop: EventFd,
    is_closing: AtomicBool,
    sequence: AtomicU32,
    /// The time of a request for a pulse that has no answer, in nanoseconds of the monotonic clock; 0 for none.
    asked_ns: AtomicU64,
    /// The parker of the Python thread that answers.
    pulse: Parker,
    assigned: AtomicU32,
    lag: AtomicI64,
}

/// Checks that a number is an open descriptor of this kind.
fn check_kind(what: &str, descriptor: RawFd, kind: libc::mode_t) -> Result<()> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `fstat` takes any number, and fills the struct in when it returns 0.
    let is_of_kind = unsafe {
        libc::fstat(descriptor, found.as_mut_ptr()) == 0 && found.assume_init().st_mode & libc::S_IFMT == kind
    };
    if is_of_kind { Ok(()) } else { Err(Error::Invalid { reason: format!("{what}: descriptor {descriptor} is none") }) }
}

impl Lifeline {
    /// Starts the thread, and gives the tripwire to it alone.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a descriptor is not of its kind, and stays the caller's. [`Error::System`]: there are no
    /// descriptors, or the thread did not start.
    ///
    /// # Safety
    /// If the tripwire is the writing end of a pipe, the caller gives it away, and does not use its number again.
    pub unsafe fn start(socket: RawFd, tripwire: RawFd, settings: LifelineSettings) -> Result<Self> {
        check_kind("socket", socket, libc::S_IFSOCK)?;
        check_kind("tripwire", tripwire, libc::S_IFIFO)?;
        // SAFETY: it is an open descriptor, which the caller gives away.
        let tripwire = unsafe { OwnedFd::from_raw_fd(tripwire) };
        let shared = Arc::new(Shared {
            read_activity: Mutex::default(),
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
        let thread = OwnThread::start("awoke-lifeline", "start the lifeline", {
            let shared = Arc::clone(&shared);
            let kept = [socket, shared.stop.descriptor(), tripwire.as_raw_fd()];
            move || {
                // The thread's own copy of the tripwire ends with the thread, and with its table.
                let _ = is_apart.send(keep_only(kept));
                shared.run();
            }
        })?;
        if apart.recv() == Ok(true) {
            drop(tripwire);
        } else {
            // Linux before 5.9: it is closed with the process's other descriptors, and no sooner.
            let _ = tripwire.into_raw_fd();
        }
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Begins to report the jobs of these schedulers and the state of these members, as long as they exist. Does not
    /// block.
    pub fn watch(&self, schedulers: Vec<Weak<PartitionScheduler>>, members: Vec<Weak<GroupMember>>) {
        let read = move || {
            let schedulers = || schedulers.iter().filter_map(Weak::upgrade);
            let members = || members.iter().filter_map(Weak::upgrade);
            let oldest = schedulers().filter_map(|scheduler| scheduler.oldest_running()).min();
            Activity {
                oldest_job: oldest.map_or_else(Default::default, clock::since),
                poll_age: members().map(|member| member.poll_age()).max().unwrap_or_default(),
                jobs: schedulers().map(|scheduler| scheduler.counters().jobs.get()).sum(),
            }
        };
        *self.shared.read_activity.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(read));
    }

    /// Answers the last pulse with numbers that Python knows, and waits for the next; `false` when the lifeline has
    /// ended. Blocks the calling thread. The delay of the answer shows how long a thread waits for the interpreter's
    /// lock.
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
        self.shared.stop.notify();
        self.shared.pulse.unpark();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            thread.join();
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
    /// 2. Send one; if it does not fit it is dropped, and the next one tells more.
    /// 3. Without a supervisor have the process stop in order, and end it if it does not.
    fn run(&self) {
        let mut next = Instant::now();
        while !self.is_closing.load(Ordering::Acquire) {
            if self.wait_until(next) {
                self.stop_process();
                return;
            }
            if Instant::now() >= next {
                next = Instant::now() + self.settings.interval;
                let activity =
                    self.read_activity.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|read| read());
                self.send(activity.unwrap_or_default());
                self.ask_for_pulse();
            }
        }
    }

    /// Waits until a moment or the end. Returns whether the supervisor has ended.
    fn wait_until(&self, moment: Instant) -> bool {
        let left = moment.saturating_duration_since(Instant::now());
        let timeout_ms = Deadline::after(Some(left)).remaining_ms();
        let gone = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP;
        let mut polls = [
            libc::pollfd { fd: self.socket, events: libc::POLLRDHUP, revents: 0 },
            libc::pollfd { fd: self.stop.descriptor(), events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: two pollfds on our stack.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, timeout_ms) };
        polls[0].revents & gone != 0
    }

    fn send(&self, activity: Activity) {
        let asked_ns = self.asked_ns.load(Ordering::Acquire);
        let gil_wait_ms = if asked_ns == 0 { 0 } else { (monotonic_ns() - asked_ns) / 1_000_000 };
        let (resident_bytes, threads) = of_this_process();
        let mut message = Vec::with_capacity(64);
        message.push(b'V');
        message.extend_from_slice(&self.sequence.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        message.extend_from_slice(&resident_bytes.to_le_bytes());
        message.extend_from_slice(&threads.to_le_bytes());
        message.extend_from_slice(&gil_wait_ms.to_le_bytes());
        message.extend_from_slice(&(activity.oldest_job.as_millis() as u64).to_le_bytes());
        message.extend_from_slice(&(activity.poll_age.as_millis() as u64).to_le_bytes());
        message.extend_from_slice(&activity.jobs.to_le_bytes());
        message.extend_from_slice(&self.assigned.load(Ordering::Relaxed).to_le_bytes());
        message.extend_from_slice(&self.lag.load(Ordering::Relaxed).to_le_bytes());
        // SAFETY: the message outlives the call. If the socket is full or closed, it is dropped: the next poll tells
        // which.
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

    /// Stops the process as SIGTERM does, and within its time, because the supervisor has ended.
    fn stop_process(&self) {
        // SAFETY: signals this very process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        let mut poll = libc::pollfd { fd: self.stop.descriptor(), events: libc::POLLIN, revents: 0 };
        let deadline = Deadline::after(Some(self.settings.drain));
        while !self.is_closing.load(Ordering::Acquire) {
            if deadline.has_passed() {
                self.end_process();
            }
            // SAFETY: one pollfd on our stack.
            unsafe { libc::poll(&raw mut poll, 1, deadline.remaining_ms()) };
        }
    }
}

impl Shared {
    /// Ends the process, whose time is up, and those that its code has started: no supervisor is left that would.
    fn end_process(&self) -> ! {
        // SAFETY: the calls take numbers. A process that leads its group, as a node does, shares it with its children
        // only, and ends with them.
        unsafe {
            if libc::getpgrp() == libc::getpid() {
                libc::kill(0, libc::SIGKILL);
            }
            libc::_exit(self.settings.exit_code)
        }
    }
}

/// Gives the calling thread a table of descriptors of its own, with these and the standard streams. Returns whether the
/// system can.
///
/// Other descriptors of the process must not stay open in that table: a reader at their other end would wait for the
/// end of this thread.
fn keep_only(mut kept: [RawFd; 3]) -> bool {
    const STREAMS: RawFd = 3;
    kept.sort_unstable();
    // From the highest on: the first call makes the table, and copies as few descriptors into it as possible.
    let mut last = u32::MAX;
    let mut flags = libc::CLOSE_RANGE_UNSHARE;
    for each in kept.into_iter().rev().chain([STREAMS - 1]) {
        let first = each.unsigned_abs() + 1;
        if first <= last {
            // SAFETY: takes no pointers. It closes descriptors for this thread only, which has used none of them; if
            // the first call, which makes the table, fails, there is no second one.
            if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } != 0 {
                return false;
            }
            flags = 0;
        }
        last = each.unsigned_abs().saturating_sub(1);
    }
    true
}

/// Returns the resident bytes and the threads of this process.
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
        // SAFETY: the pipe's writing end is given away.
        let started = unsafe { Lifeline::start(ours.as_raw_fd(), writing.into_raw_fd(), settings) };
        let lifeline = started.expect("a thread");

        let names = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
        let pipe = std::fs::read_link(format!("/proc/self/fd/{}", reading.as_raw_fd())).expect("ours");
        let ends = names.filter(|each| std::fs::read_link(each.path()).is_ok_and(|file| file == pipe)).count();
        assert_eq!(ends, 1, "the process has the other end, too");
        // A descriptor that another thread closes is closed: this thread has no copy of it.
        drop(other);
        assert_eq!(beside.read(&mut [0]).expect("a pipe"), 0);
        let mut poll = libc::pollfd { fd: reading.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd on our stack.
        assert_eq!(unsafe { libc::poll(&raw mut poll, 1, 0) }, 0, "it ended before its time");

        lifeline.close();
        assert_eq!(reading.read(&mut [0]).expect("a pipe"), 0);
    }
}
