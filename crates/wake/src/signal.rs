//! A signal: it is set once or again, and threads and event loops wait for it until a moment of the clock.
//!
//! Each wait is a part of awoke that acts at a moment: a test that has the clock wakes it when its moment has come. A
//! thread that was woken so is busy until it waits again, or leaves: what it does on being woken belongs to the moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::clock::{self, Activity, Deadline, Due, Timed};
use crate::sync::{Mutex, lock};
use crate::{Awaited, Parker, Waker};

/// A signal that can be set and cleared. Any thread.
#[derive(Debug)]
pub struct Signal {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    waits: Vec<Weak<SignalWait>>,
    /// Threads whose wait was ended by the clock, and that have not waited again.
    awake: Vec<ThreadId>,
}

/// The kind of the end of a wait by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurrence {
    /// The end of a back-off: it happens once.
    Once,
    /// A moment of something that happens again and again.
    Again,
}

/// One wait for a signal, at most until a moment.
#[derive(Debug)]
pub struct SignalWait {
    signal: Arc<Signal>,
    moment: Option<Instant>,
    recurrence: Recurrence,
    /// True if a job waits.
    is_of_job: bool,
    /// True once the waiter has seen its end, or waits no more.
    has_ended: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    /// Makes a signal that is not set, and that tells whether the threads that wait for it are at rest.
    pub fn new() -> Arc<Self> {
        let signal = Arc::new(Self { state: Mutex::new(State::default()) });
        clock::register(&signal);
        signal
    }

    /// Sets the signal, and ends all waits. Does not block.
    pub fn set(&self) {
        let mut state = lock(&self.state);
        state.is_set = true;
        let waits: Vec<_> = state.waits.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        waits.iter().for_each(|wait| wait.wake());
    }

    /// Clears the signal. Does not block.
    pub fn clear(&self) {
        lock(&self.state).is_set = false;
    }

    /// Returns whether the signal is set. Does not block.
    pub fn is_set(&self) -> bool {
        lock(&self.state).is_set
    }

    /// Begins a wait, which ends after `timeout` by the clock, and never for `None`. `is_of_job`: a job waits. Does not
    /// block.
    pub fn begin_wait(
        self: &Arc<Self>,
        timeout: Option<Duration>,
        recurrence: Recurrence,
        is_of_job: bool,
    ) -> Arc<SignalWait> {
        let moment = timeout.and_then(|timeout| clock::now().checked_add(timeout));
        let (signal, waker) = (Arc::clone(self), Mutex::new(None));
        let wait =
            Arc::new(SignalWait { signal, moment, recurrence, is_of_job, has_ended: AtomicBool::new(false), waker });
        let mut state = lock(&self.state);
        state.waits.retain(|each| each.strong_count() > 0);
        state.waits.push(Arc::downgrade(&wait));
        drop(state);
        clock::register(&wait);
        self.leave();
        wait
    }

    /// Notes that the calling thread is at rest, and no longer does what it was woken for. Does not block.
    pub fn leave(&self) {
        let thread = std::thread::current().id();
        lock(&self.state).awake.retain(|each| *each != thread);
        clock::changed();
    }

    /// Notes that the clock has ended the wait of the calling thread, which is busy from now on until it waits again or
    /// leaves. Does not block.
    pub fn stay_awake(&self) {
        lock(&self.state).awake.push(std::thread::current().id());
    }
}

impl Timed for Signal {
    fn name(&self) -> String {
        "a thread that a moment of the clock has woken".into()
    }

    fn due(&self) -> Due {
        Due::default()
    }

    fn activity(&self) -> Activity {
        Activity { is_busy: !lock(&self.state).awake.is_empty(), ..Activity::default() }
    }

    fn look(&self) {}
}

impl SignalWait {
    /// Returns whether the signal ended the wait, or will: it is set. Does not block.
    pub fn is_set(&self) -> bool {
        self.signal.is_set()
    }

    /// Returns whether the wait is over: the signal is set, or its moment has come. Does not block.
    pub fn is_over(&self) -> bool {
        self.is_set() || self.deadline().has_passed()
    }

    /// Ends the wait: what keeps it any longer, an exception for example, waits no more. Does not block.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        *lock(&self.waker) = None;
        clock::changed();
    }

    /// Returns the moment at which it ends, as a deadline.
    pub fn deadline(&self) -> Deadline {
        Deadline::NEVER.or_earlier(self.moment)
    }

    fn wake(&self) {
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Timed for SignalWait {
    fn name(&self) -> String {
        "a wait that a moment of the clock has ended".into()
    }

    fn due(&self) -> Due {
        let moment = self.moment.filter(|_| !self.is_set() && !self.has_ended.load(Ordering::SeqCst));
        match self.recurrence {
            Recurrence::Once => Due { once: moment, recurring: None },
            Recurrence::Again => Due { once: None, recurring: moment },
        }
    }

    fn activity(&self) -> Activity {
        Activity { waiting: usize::from(self.is_of_job && !self.is_over()), ..Activity::default() }
    }

    fn look(&self) {
        self.wake();
    }
}

impl Awaited for Arc<SignalWait> {
    type Registration = ();

    fn is_ready(&self) -> bool {
        self.is_over()
    }

    fn register(&self, waker: Waker) -> Option<()> {
        let mut place = lock(&self.waker);
        // Under the lock: a set or a move of the clock that is not seen here finds the waker.
        *place = Some(waker);
        (!self.is_over()).then_some(())
    }

    fn unregister(&self, (): ()) {
        *lock(&self.waker) = None;
    }

    fn block(&self, deadline: &Deadline) {
        let parker = Arc::new(Parker::default());
        if self.register(Waker::Parker(Arc::clone(&parker))).is_some() {
            let until = deadline.or_earlier(self.moment);
            while !self.is_over() && !deadline.has_passed() {
                parker.park_until(&until);
            }
        }
        self.unregister(());
    }
}

impl Drop for SignalWait {
    fn drop(&mut self) {
        clock::changed();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn wait_of(signal: &Arc<Signal>, timeout: Option<Duration>) -> Arc<SignalWait> {
        signal.begin_wait(timeout, Recurrence::Once, false)
    }

    #[test]
    fn a_signal_that_is_set_ends_all_waits() {
        let signal = Signal::new();
        let waits = [wait_of(&signal, None), wait_of(&signal, Some(Duration::from_mins(1)))];
        let threads = waits.map(|wait| std::thread::spawn(move || wait.block(&Deadline::NEVER)));
        signal.set();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(signal.is_set() && wait_of(&signal, None).is_over());
        signal.clear();
        assert!(!wait_of(&signal, None).is_over());
    }

    #[test]
    fn a_wait_without_time_is_over_at_once() {
        let wait = wait_of(&Signal::new(), Some(Duration::ZERO));
        wait.block(&Deadline::NEVER);
        assert!(wait.is_over() && !wait.is_set());
    }
}
