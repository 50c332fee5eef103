//! How many calls run at once, in all and of each method, and which is next: whoever ends one takes the next with it.
//!
//! Nobody waits here: a call that may not run yet stays in line, and the thread or task that ends another one carries it out.

use std::collections::VecDeque;

/// The calls of several methods, which are known by their numbers.
#[derive(Debug)]
pub(super) struct Turnstile<T> {
    running_max: usize,
    methods: Vec<Line<T>>,
    running: usize,
    waiting: usize,
    /// Calls that have stood in line so far.
    number: u64,
}

/// One method's.
#[derive(Debug)]
struct Line<T> {
    running_max: usize,
    running: usize,
    /// With the number of each call.
    waiting: VecDeque<(u64, T)>,
}

impl<T> Turnstile<T> {
    /// With so many calls at once in all, and so many of each method (`None`: no limit of its own).
    pub(super) fn new(running_max: usize, methods: impl Iterator<Item = Option<usize>>) -> Self {
        let line = |limit: Option<usize>| Line {
            running_max: limit.unwrap_or(usize::MAX),
            running: 0,
            waiting: VecDeque::new(),
        };
        Self { running_max, methods: methods.map(line).collect(), running: 0, waiting: 0, number: 0 }
    }

    /// Whether a call of this method may run now; then it does.
    pub(super) fn enter(&mut self, method: usize) -> bool {
        if self.running >= self.running_max || !self.methods[method].has_room() || self.is_waited_for(method) {
            return false;
        }
        self.begin(method);
        true
    }

    /// Stands a call in line.
    pub(super) fn wait(&mut self, method: usize, call: T) {
        self.number += 1;
        self.waiting += 1;
        self.methods[method].waiting.push_back((self.number, call));
    }

    /// A call of this method has ended; the one that is to run in its place, if there is one.
    pub(super) fn leave(&mut self, method: usize) -> Option<T> {
        self.running -= 1;
        self.methods[method].running -= 1;
        if self.waiting == 0 || self.running >= self.running_max {
            return None;
        }
        let heads = self.methods.iter().enumerate().filter(|(_, line)| line.has_room());
        let longest =
            heads.filter_map(|(method, line)| line.waiting.front().map(|(number, _)| (*number, method))).min();
        let (_, next) = longest?;
        let (_, call) = self.methods[next].waiting.pop_front()?;
        self.waiting -= 1;
        self.begin(next);
        Some(call)
    }

    /// How many run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// How many wait in the queue.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    fn is_waited_for(&self, method: usize) -> bool {
        !self.methods[method].waiting.is_empty()
    }

    fn begin(&mut self, method: usize) {
        self.running += 1;
        self.methods[method].running += 1;
    }
}

impl<T> Line<T> {
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
        let mut turnstile = Turnstile::new(2, [None, Some(1)].into_iter());
        assert!(turnstile.enter(SINGLE), "the first");
        assert!(!turnstile.enter(SINGLE), "its method has no room");
        turnstile.wait(SINGLE, "second");
        assert!(turnstile.enter(FREE), "another method has: the third");
        assert!(!turnstile.enter(FREE));
        turnstile.wait(FREE, "fourth");
        turnstile.wait(FREE, "fifth");
        assert_eq!((turnstile.running(), turnstile.waiting()), (2, 3));
        assert_eq!(turnstile.leave(FREE), Some("fourth"), "the second call's method has no room yet");
        assert_eq!(turnstile.leave(SINGLE), Some("second"), "which has waited longest");
        assert_eq!(turnstile.leave(SINGLE), Some("fifth"));
        assert_eq!(turnstile.leave(FREE), None);
        assert_eq!(turnstile.leave(FREE), None);
        assert_eq!((turnstile.running(), turnstile.waiting()), (0, 0));
    }

    #[test]
    fn who_comes_later_does_not_overtake() {
        let mut turnstile = Turnstile::new(1, [None, None].into_iter());
        assert!(turnstile.enter(FREE));
        turnstile.wait(SINGLE, "first");
        turnstile.wait(FREE, "second");
        assert_eq!(turnstile.leave(FREE), Some("first"));
        assert_eq!(turnstile.leave(SINGLE), Some("second"));
    }
}
