//! Virtual time: a test takes the clock, which then stands still until the test moves it.
//!
//! The parts of awoke that act at moments of the clock are registered (`Timed`). While the clock stands still no time
//! ends their waits: the thread that moves the clock has each part that is due look at it again. The parts also tell
//! whether they are at rest, so that the test can move from one moment to the next and miss none.
//!
//! When the test gives the clock back, it goes on from where it stands, at the pace of real time: no moment comes
//! twice, and none that was still to come is skipped.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::monotonic_ns;

/// The clock is the monotonic one. The only mode of a process in which no test has taken it.
pub(super) const REAL: u8 = 0;
/// A test has the clock.
const VIRTUAL: u8 = 1;
/// A test has given the clock back: it goes on from where it stood.
const MOVED: u8 = 2;

/// Read at each look at the clock, without order: `TIME` has the truth, and each change has its waiters look again.
pub(super) static MODE: AtomicU8 = AtomicU8::new(REAL);

static TIME: Mutex<Option<Time>> = Mutex::new(None);
static REGISTERED: Mutex<Vec<Weak<dyn Timed>>> = Mutex::new(Vec::new());
/// The number of changes that the parts have noted while the clock stood still.
static CHANGES: Mutex<u64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// True if this thread runs the jobs of a scheduler.
    static IS_JOB_THREAD: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Copy)]
enum Time {
    Stopped {
        at: Moment,
        wall: Duration,
    },
    /// Since a real moment it has gone on from where it stood.
    GoesOn {
        from: Moment,
        since: Instant,
    },
}

type Moment = (Instant, u64);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plus(moment: Moment, time: Duration) -> Moment {
    (moment.0 + time, moment.1.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

impl Time {
    fn now(self) -> Moment {
        match self {
            Self::Stopped { at, .. } => at,
            Self::GoesOn { from, since } => plus(from, since.elapsed()),
        }
    }
}

fn now_of(time: Option<Time>) -> Moment {
    time.map_or_else(|| (Instant::now(), monotonic_ns()), Time::now)
}

/// Returns the clock's moment, and the same in nanoseconds.
pub(super) fn now() -> Moment {
    now_of(*lock(&TIME))
}

/// Returns the time since 1970 while a test has the clock.
pub(super) fn wall() -> Option<Duration> {
    if !is_virtual() {
        return None;
    }
    match *lock(&TIME) {
        Some(Time::Stopped { wall, .. }) => Some(wall),
        _ => None,
    }
}

/// Returns whether a test has the clock.
#[inline]
pub fn is_virtual() -> bool {
    MODE.load(Ordering::Relaxed) == VIRTUAL
}

/// The next moments at which a part of awoke acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// For something that happens once: the end of a back-off, a deadline.
    pub once: Option<Instant>,
    /// For something that happens again and again: a tick, the commit interval.
    pub recurring: Option<Instant>,
}

impl Due {
    /// Returns the earlier of the two moments.
    pub fn first(self) -> Option<Instant> {
        earlier(self.once, self.recurring)
    }

    /// Returns the earlier moments of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { once: earlier(self.once, other.once), recurring: earlier(self.recurring, other.recurring) }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The present activity of a part of awoke.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// True if it works on something other than jobs, and will be done without the clock.
    pub is_busy: bool,
    /// Jobs that run, or are about to.
    pub running: usize,
    /// Jobs, running in another part, that wait for this one to act at a moment.
    pub waiting: usize,
}

/// A part of awoke that acts at moments of the clock.
pub trait Timed: Send + Sync {
    /// Its name, for a test that waits for it in vain.
    fn name(&self) -> String;
    /// Returns when it acts next. Does not block.
    fn due(&self) -> Due;
    /// Returns what it does now. Does not block.
    fn activity(&self) -> Activity;
    /// Has its thread look at the clock again, which was moved, taken or given back. Does not block.
    fn look(&self);
}

/// Registers a part for as long as it lives. Does not block.
pub fn register(part: &Arc<impl Timed + 'static>) {
    let part: Weak<dyn Timed> = Arc::downgrade(part) as Weak<dyn Timed>;
    let mut registered = lock(&REGISTERED);
    // Now and then only, so that many registrations cost no more than their number.
    if registered.len().is_power_of_two() {
        registered.retain(|each| each.strong_count() > 0);
    }
    registered.push(part);
}

fn parts() -> Vec<Arc<dyn Timed>> {
    lock(&REGISTERED).iter().filter_map(Weak::upgrade).collect()
}

/// Stops the clock, which is the caller's until `release`. Returns `false` if another has it. Does not block.
pub fn take() -> bool {
    let mut time = lock(&TIME);
    if is_virtual() {
        return false;
    }
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    *time = Some(Time::Stopped { at: now_of(*time), wall });
    MODE.store(VIRTUAL, Ordering::Relaxed);
    drop(time);
    parts().iter().for_each(|part| part.look());
    true
}

/// Gives the clock back: it goes on from where it stands. Does not block.
pub fn release() {
    let mut time = lock(&TIME);
    *time = Some(Time::GoesOn { from: now_of(*time), since: Instant::now() });
    MODE.store(MOVED, Ordering::Relaxed);
    drop(time);
    parts().iter().for_each(|part| part.look());
    note_change();
}

/// Moves the clock, which the caller has, to a moment, and has the parts act that are due then. Does not block.
pub fn move_to(moment: Instant) {
    let mut time = lock(&TIME);
    let Some(Time::Stopped { at, wall }) = *time else { return };
    let by = moment.saturating_duration_since(at.0);
    *time = Some(Time::Stopped { at: plus(at, by), wall: wall + by });
    drop(time);
    for part in parts() {
        if part.due().first().is_some_and(|due| due <= moment) {
            part.look();
        }
    }
}

/// Returns when the parts act next. Does not block.
pub fn next_due() -> Due {
    parts().iter().fold(Due::default(), |due, part| due.and(part.due()))
}

/// Notes that a part may have come to rest. Does not block.
#[inline]
pub fn changed() {
    if is_virtual() {
        note_change();
    }
}

#[cold]
fn note_change() {
    *lock(&CHANGES) += 1;
    CHANGED.notify_all();
}

/// Returns the number of jobs that run, or are about to, and do not wait for the clock. Does not block.
pub fn running() -> usize {
    running_of(&parts().iter().map(|part| part.activity()).collect::<Vec<_>>())
}

fn running_of(activities: &[Activity]) -> usize {
    let running: usize = activities.iter().map(|each| each.running).sum();
    running.saturating_sub(activities.iter().map(|each| each.waiting).sum())
}

/// Returns the names of the parts that work, or have not acted yet though they are due.
fn busy(going_on: usize) -> Vec<String> {
    let (now, parts) = (super::now(), parts());
    let activities: Vec<_> = parts.iter().map(|part| part.activity()).collect();
    let are_jobs_busy = running_of(&activities) > going_on;
    let is_busy = |part: &Arc<dyn Timed>, activity: &Activity| {
        let is_late = part.due().first().is_some_and(|due| due <= now);
        activity.is_busy || is_late || (are_jobs_busy && activity.running > 0)
    };
    let all = parts.iter().zip(&activities);
    all.filter(|(part, activity)| is_busy(part, activity)).map(|(part, _)| part.name()).collect()
}

/// Waits until every part is at rest: it waits for the clock, or for something to come. This number of jobs may go on.
/// Returns the names of those that are not at rest when the (real) time is up. Blocks the calling thread.
pub fn settle(within: Duration, going_on: usize) -> Vec<String> {
    let until = Instant::now() + within;
    loop {
        let seen = *lock(&CHANGES);
        let busy = busy(going_on);
        let left = until.saturating_duration_since(Instant::now());
        if busy.is_empty() || left.is_zero() {
            return busy;
        }
        let changes = lock(&CHANGES);
        drop(CHANGED.wait_timeout_while(changes, left, |changes| *changes == seen));
    }
}

/// Notes that the calling thread runs the jobs of a scheduler.
pub fn mark_job_thread() {
    IS_JOB_THREAD.set(true);
}

/// Returns whether the calling thread runs the jobs of a scheduler.
pub fn is_job_thread() -> bool {
    IS_JOB_THREAD.get()
}
