//! One result that arrives once, and its waiters.
//!
//! The same type is behind a produce, an admin call and a synchronous commit. The completing thread wakes exactly the
//! registered waiters, each once, after the lock is released. A wait that times out removes its registration, so a
//! handle does not grow with repeated waits of short time-outs.

use std::sync::Arc;

use crate::clock::{Deadline, monotonic_ns};
use crate::sync::{Mutex, lock};
use crate::{Parker, Waker};

/// One result that arrives once, and its waiters.
#[derive(Debug)]
pub struct Completion<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    result: Option<T>,
    /// The time at which the result arrived, if there were waiters; else 0.
    woken_at_ns: u64,
    /// Empty once the result is there.
    waiting: Vec<Waker>,
}

impl<T> Default for Completion<T> {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { result: None, woken_at_ns: 0, waiting: Vec::new() }) }
    }
}

impl<T: Clone> Completion<T> {
    /// Sets the result and wakes the waiters. The first result stays: returns `false` if there was one.
    pub fn complete(&self, result: T) -> bool {
        let mut inner = lock(&self.inner);
        if inner.result.is_some() {
            return false;
        }
        inner.result = Some(result);
        if inner.waiting.is_empty() {
            return true;
        }
        inner.woken_at_ns = monotonic_ns();
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        true
    }

    /// Returns the result, if it is there. Does not block.
    pub fn get(&self) -> Option<T> {
        lock(&self.inner).result.clone()
    }

    /// Returns whether the result is there. Does not block.
    pub fn is_done(&self) -> bool {
        lock(&self.inner).result.is_some()
    }

    /// Returns the time at which the result arrived, in nanoseconds of the monotonic clock; 0 if there were no waiters
    /// then.
    pub fn woken_at_ns(&self) -> u64 {
        lock(&self.inner).woken_at_ns
    }

    /// Registers `waker`. Returns `false`, and registers nothing, if the result is there.
    pub fn register(&self, waker: Waker) -> bool {
        let mut inner = lock(&self.inner);
        if inner.result.is_some() {
            return false;
        }
        inner.waiting.push(waker);
        true
    }

    /// Removes a registration. Returns `false` if it has been, or is being, woken.
    pub fn unregister(&self, waker: &Waker) -> bool {
        let mut inner = lock(&self.inner);
        let place = inner.waiting.iter().position(|waiting| waiting.is(waker));
        place.map(|place| inner.waiting.swap_remove(place)).is_some()
    }

    /// Waits for the result. Returns `None` if the deadline passed first. Blocks the calling thread.
    pub fn wait(&self, deadline: &Deadline) -> Option<T> {
        self.wait_on(&Arc::default(), deadline)
    }

    /// Waits as `wait`, with a parker that was not used before: a late token of an earlier wait would end this one.
    pub fn wait_on(&self, parker: &Arc<Parker>, deadline: &Deadline) -> Option<T> {
        if let Some(result) = self.get() {
            return Some(result);
        }
        let waker = Waker::Parker(Arc::clone(parker));
        if self.register(waker.clone()) && !parker.park_until(deadline) {
            // Timed out, unless the result came between the deadline and here: then `get` returns it.
            self.unregister(&waker);
        }
        self.get()
    }
}

/// A wait for the last of several completions, with one wake-up for all of them.
#[derive(Debug)]
pub struct Latch {
    missing: Mutex<usize>,
    parker: Parker,
}

impl Latch {
    /// Waits until every completion has its result. Returns `false` if the deadline passed first. Blocks the calling
    /// thread.
    pub fn wait_all<'a, T: Clone + 'a>(
        completions: impl Iterator<Item = &'a Completion<T>> + Clone,
        deadline: &Deadline,
    ) -> bool {
        // One more than there are, subtracted below: a result that comes during the registration must not wake too
        // early.
        let latch = Arc::new(Self { missing: Mutex::new(1), parker: Parker::default() });
        let waker = Waker::Latch(Arc::clone(&latch));
        for completion in completions.clone() {
            *lock(&latch.missing) += 1;
            if !completion.register(waker.clone()) {
                *lock(&latch.missing) -= 1;
            }
        }
        if latch.subtract_one() == 0 || latch.parker.park_until(deadline) {
            return true;
        }
        let pending = completions.filter(|completion| completion.unregister(&waker)).count();
        pending == 0
    }

    /// Counts one completion as done, and wakes the waiter at the last one.
    pub(crate) fn count_down(&self) {
        if self.subtract_one() == 0 {
            self.parker.unpark();
        }
    }

    fn subtract_one(&self) -> usize {
        let mut missing = lock(&self.missing);
        *missing -= 1;
        *missing
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{EventFd, Listener, Mailbox};

    fn soon() -> Deadline {
        Deadline::after(Some(Duration::from_secs(10)))
    }

    fn passed() -> Deadline {
        Deadline::after(Some(Duration::ZERO))
    }

    #[test]
    fn the_first_result_stays() {
        let completion = Completion::default();
        assert!(completion.complete(1));
        assert!(!completion.complete(2));
        assert_eq!(completion.wait(&soon()), Some(1));
    }

    #[test]
    fn a_time_out_leaves_no_registration() {
        let completion = Completion::<i32>::default();
        for _ in 0..100 {
            assert_eq!(completion.wait(&passed()), None);
        }
        assert!(lock(&completion.inner).waiting.is_empty());
    }

    #[test]
    fn a_waiting_thread_gets_the_result_of_another() {
        let completion = Arc::new(Completion::default());
        let waiter = std::thread::spawn({
            let completion = Arc::clone(&completion);
            move || completion.wait(&soon())
        });
        completion.complete("done");
        assert_eq!(waiter.join().expect("the waiter does not panic"), Some("done"));
    }

    #[test]
    fn a_latch_waits_for_the_last() {
        let completions: Vec<_> = (0..3).map(|_| Arc::new(Completion::default())).collect();
        completions[1].complete(());
        assert!(!Latch::wait_all(completions.iter().map(|c| &**c), &passed()));
        let finisher = std::thread::spawn({
            let completions = completions.clone();
            move || completions.iter().for_each(|c| assert!(c.complete(()) || c.is_done()))
        });
        assert!(Latch::wait_all(completions.iter().map(|c| &**c), &soon()));
        finisher.join().expect("the finisher does not panic");
    }

    #[test]
    fn a_latch_that_times_out_removes_its_registrations() {
        let completion = Completion::<()>::default();
        assert!(!Latch::wait_all(std::iter::once(&completion), &passed()));
        assert!(lock(&completion.inner).waiting.is_empty());
    }

    #[test]
    fn a_mailbox_gets_its_token_once() {
        let mailbox = Arc::new(Mailbox::new(EventFd::new().expect("eventfd")));
        let completion = Completion::default();
        assert!(completion.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 7 }));
        completion.complete(());
        assert!(!completion.register(Waker::Mailbox { mailbox: Arc::clone(&mailbox), token: 8 }));
        assert_eq!(mailbox.drain(), [7]);
    }

    #[derive(Debug, Default)]
    struct Heard(std::sync::Mutex<Vec<u64>>);

    impl Listener for Heard {
        fn tell(&self, token: u64) {
            self.0.lock().expect("no panic").push(token);
        }
    }

    #[test]
    fn a_listener_gets_its_token_unless_it_was_unregistered() {
        let (heard, completion) = (Arc::new(Heard::default()), Completion::default());
        let waker = |token| Waker::Listener { listener: heard.clone(), token };
        assert!(completion.register(waker(1)) && completion.register(waker(2)));
        assert!(completion.unregister(&waker(1)));
        assert!(!completion.unregister(&waker(3)));
        completion.complete(());
        assert_eq!(*heard.0.lock().expect("no panic"), [2]);
        assert!(completion.woken_at_ns() > 0);
    }
}
