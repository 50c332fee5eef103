//! Limits how many calls run at once, in total and of each method, and queues the others.
//!
//! No thread waits here. A call that may not run yet is queued; the thread or task that ends another call then
//! executes it. Calls of one method run in the order of their arrival. Of several methods, the call that has waited
//! longest is next, among those whose method is below its own limit.

use std::collections::VecDeque;

/// The running and queued calls of several methods, which are known by their numbers.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter<T> {
    running_max: usize,
    methods: Vec<Method<T>>,
    running: usize,
    queued: usize,
    /// Calls that have been queued so far.
    number: u64,
}

/// The calls of one method.
#[derive(Debug)]
struct Method<T> {
    running_max: usize,
    running: usize,
    /// Each with its number, in order.
    queue: VecDeque<(u64, T)>,
}

impl<T> ConcurrencyLimiter<T> {
    /// A limiter for `running_max` calls in total and as many of each method as given (`None`: no limit of its own).
    pub(super) fn new(running_max: usize, methods: impl Iterator<Item = Option<usize>>) -> Self {
        let method = |limit: Option<usize>| Method {
            running_max: limit.unwrap_or(usize::MAX),
            running: 0,
            queue: VecDeque::new(),
        };
        Self { running_max, methods: methods.map(method).collect(), running: 0, queued: 0, number: 0 }
    }

    /// Gives a call of this method a place, if there is one and no earlier call of the method waits for it.
    pub(super) fn try_acquire(&mut self, method: usize) -> bool {
        let Method { queue, .. } = &self.methods[method];
        if self.running >= self.running_max || !self.methods[method].has_room() || !queue.is_empty() {
            return false;
        }
        self.begin(method);
        true
    }

    /// Queues a call.
    pub(super) fn enqueue(&mut self, method: usize, call: T) {
        self.number += 1;
        self.queued += 1;
        self.methods[method].queue.push_back((self.number, call));
    }

    /// Releases the place of a call of this method; returns the queued call that takes one, if there is any.
    pub(super) fn release(&mut self, method: usize) -> Option<T> {
        self.running -= 1;
        self.methods[method].running -= 1;
        if self.queued == 0 || self.running >= self.running_max {
            return None;
        }
        let with_room = self.methods.iter().enumerate().filter(|(_, method)| method.has_room());
        let heads = with_room.filter_map(|(index, method)| method.queue.front().map(|(number, _)| (*number, index)));
        let (_, next) = heads.min()?;
        let (_, call) = self.methods[next].queue.pop_front()?;
        self.queued -= 1;
        self.begin(next);
        Some(call)
    }

    /// Returns how many calls run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// Returns how many calls are queued.
    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    fn begin(&mut self, method: usize) {
        self.running += 1;
        self.methods[method].running += 1;
    }
}

impl<T> Method<T> {
    const fn has_room(&self) -> bool {
        self.running < self.running_max
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const FREE: usize = 0;
    const SINGLE: usize = 1;

    #[test]
    fn order_and_limits_are_kept() {
        let mut limiter = ConcurrencyLimiter::new(2, [None, Some(1)].into_iter());
        assert!(limiter.try_acquire(SINGLE), "the first");
        assert!(!limiter.try_acquire(SINGLE), "its method has no room");
        limiter.enqueue(SINGLE, "second");
        assert!(limiter.try_acquire(FREE), "another method has: the third");
        assert!(!limiter.try_acquire(FREE));
        limiter.enqueue(FREE, "fourth");
        limiter.enqueue(FREE, "fifth");
        assert_eq!((limiter.running(), limiter.queued()), (2, 3));
        assert_eq!(limiter.release(FREE), Some("fourth"), "the second call's method has no room yet");
        assert_eq!(limiter.release(SINGLE), Some("second"), "which has waited longest");
        assert_eq!(limiter.release(SINGLE), Some("fifth"));
        assert_eq!(limiter.release(FREE), None);
        assert_eq!(limiter.release(FREE), None);
        assert_eq!((limiter.running(), limiter.queued()), (0, 0));
    }

    #[test]
    fn a_later_call_does_not_overtake_an_earlier_one() {
        let mut limiter = ConcurrencyLimiter::new(1, [None, None].into_iter());
        assert!(limiter.try_acquire(FREE));
        limiter.enqueue(SINGLE, "first");
        limiter.enqueue(FREE, "second");
        assert_eq!(limiter.release(FREE), Some("first"));
        assert_eq!(limiter.release(SINGLE), Some("second"));
    }
}
