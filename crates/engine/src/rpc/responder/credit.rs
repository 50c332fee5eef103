//! Flow control of a stream: how many results the caller has granted in total, and how many were sent.
//!
//! Credit is absolute. The request grants the first results; each `more` carries the total number of results
//! granted so far. A copied or repeated `more` therefore has no effect. No `more` is read any more from a partition
//! that is given back: it comes to the partition's next owner, which executes the call.

use std::sync::Arc;

use crate::clock::Deadline;
use crate::rpc::protocol::CREDIT_MAX;
use crate::sync::{Mutex, lock};
use crate::wake::{Awaited, Completion, Listener, Parker, Waker};

/// The credit of one stream. One thread or task takes; any thread may grant.
#[derive(Debug)]
pub struct Credit {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Results that may be sent in total. Never less than before, and never more than `CREDIT_MAX` ahead of `sent`.
    granted: u64,
    /// Results that were sent.
    sent: u64,
    /// The caller waits no longer: there is nothing to wait for.
    has_ended: bool,
    /// Its partition is given back: no more is granted here.
    is_withdrawn: bool,
    /// Threads and tasks to wake when there is credit.
    waiting: Vec<Waker>,
}

impl Inner {
    const fn is_ready(&self) -> bool {
        self.has_ended || self.is_withdrawn || self.sent < self.granted
    }
}

impl Credit {
    /// A stream whose request grants this many results.
    pub fn new(granted: u64) -> Self {
        Self { inner: Mutex::new(Inner { granted: granted.min(CREDIT_MAX), ..Inner::default() }) }
    }

    /// Raises the total number of granted results. A total that is not higher than before has no effect. Does not
    /// block.
    pub fn grant(&self, total: u64) {
        let mut inner = lock(&self.inner);
        inner.granted = inner.granted.max(total.min(inner.sent + CREDIT_MAX));
        let waiting = if inner.is_ready() { std::mem::take(&mut inner.waiting) } else { Vec::new() };
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends all waits: the caller waits no longer. Does not block.
    pub fn end(&self) {
        self.end_waits(|inner| inner.has_ended = true);
    }

    /// Ends all waits: the partition of the call is given back. Does not block.
    fn withdraw(&self) {
        self.end_waits(|inner| inner.is_withdrawn = true);
    }

    fn end_waits(&self, note: impl FnOnce(&mut Inner)) {
        let mut inner = lock(&self.inner);
        note(&mut inner);
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes the credit of one result; returns `false` if there is none. Does not block.
    pub fn try_take(&self) -> bool {
        let mut inner = lock(&self.inner);
        let is_granted = inner.sent < inner.granted;
        inner.sent += u64::from(is_granted);
        is_granted
    }

    /// Returns whether the partition of the call is given back: no more is granted here. Does not block.
    pub fn is_withdrawn(&self) -> bool {
        lock(&self.inner).is_withdrawn
    }

    /// Returns whether there is credit, or none will come. Does not block.
    pub fn is_ready(&self) -> bool {
        lock(&self.inner).is_ready()
    }

    /// Waits until there is credit, none will come, or the deadline passes. Blocks the calling thread.
    pub fn wait(&self, deadline: &Deadline) {
        let parker = Arc::new(Parker::default());
        let waker = Waker::Parker(Arc::clone(&parker));
        while self.register(waker.clone()) {
            parker.park_until(deadline);
            self.unregister(&waker);
            if deadline.has_passed() {
                return;
            }
        }
    }

    /// Registers a waker; returns `false`, and registers nothing, if the credit is ready.
    pub fn register(&self, waker: Waker) -> bool {
        let mut inner = lock(&self.inner);
        let is_ready = inner.is_ready();
        if !is_ready {
            inner.waiting.push(waker);
        }
        !is_ready
    }

    /// Removes a registration.
    pub fn unregister(&self, waker: &Waker) {
        lock(&self.inner).waiting.retain(|each| !each.is(waker));
    }
}

impl Awaited for Credit {
    type Registration = Waker;

    fn is_ready(&self) -> bool {
        Self::is_ready(self)
    }

    fn register(&self, waker: Waker) -> Option<Waker> {
        Self::register(self, waker.clone()).then_some(waker)
    }

    fn unregister(&self, waker: Waker) {
        Self::unregister(self, &waker);
    }

    fn block(&self, deadline: &Deadline) {
        self.wait(deadline);
    }
}

impl Listener for Credit {
    fn tell(&self, _: u64) {
        self.withdraw();
    }
}

/// Ends the waits for credit when the partition of the call is given back; as long as the call lives.
pub(super) struct WithdrawalWatch {
    withdrawn: Arc<Completion<()>>,
    waker: Waker,
}

impl WithdrawalWatch {
    pub(super) fn new(withdrawn: &Arc<Completion<()>>, credit: &Arc<Credit>) -> Self {
        let listener = Arc::clone(credit);
        let waker = Waker::Listener { listener, token: 0 };
        if !withdrawn.register(waker.clone()) {
            credit.withdraw();
        }
        Self { withdrawn: Arc::clone(withdrawn), waker }
    }
}

impl Drop for WithdrawalWatch {
    fn drop(&mut self) {
        self.withdrawn.unregister(&self.waker);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn taken(credit: &Credit) -> u64 {
        std::iter::from_fn(|| credit.try_take().then_some(())).count() as u64
    }

    #[test]
    fn credit_is_a_total() {
        let credit = Credit::new(2);
        assert_eq!(taken(&credit), 2);
        credit.grant(5);
        assert_eq!(taken(&credit), 3, "two of five were sent before");
    }

    #[test]
    fn a_repeated_or_older_grant_has_no_effect() {
        let credit = Credit::new(2);
        for total in [4, 4, 4, 3, 0] {
            credit.grant(total);
        }
        assert_eq!(taken(&credit), 4);
        credit.grant(4);
        assert_eq!(taken(&credit), 0, "a copy of the last `more`");
    }

    #[test]
    fn no_grant_exceeds_the_limit() {
        let credit = Credit::new(u64::MAX);
        credit.grant(u64::MAX);
        assert_eq!(taken(&credit), CREDIT_MAX);
        credit.grant(u64::MAX);
        assert_eq!(taken(&credit), CREDIT_MAX, "counted from what was sent");
    }

    #[test]
    fn a_grant_and_the_end_wake_the_waiting_thread() {
        for wake in [|credit: &Credit| credit.grant(1), Credit::end, Credit::withdraw] {
            let (credit, parker) = (Credit::new(0), Arc::new(Parker::default()));
            let waker = Waker::Parker(Arc::clone(&parker));
            assert!(credit.register(waker.clone()));
            credit.grant(0);
            assert!(!credit.is_ready(), "a grant of nothing");
            wake(&credit);
            parker.park_until(&Deadline::NEVER);
            assert!(credit.is_ready() && !credit.register(waker));
        }
    }

    #[test]
    fn a_partition_that_is_given_back_ends_the_waits_of_its_streams() {
        let withdrawn = Arc::new(Completion::default());
        let credits = [0, 1].map(|_| Arc::new(Credit::new(0)));
        let [over, running] = credits.each_ref().map(|credit| WithdrawalWatch::new(&withdrawn, credit));
        drop(over);
        withdrawn.complete(());
        assert_eq!(credits.each_ref().map(|credit| credit.is_withdrawn()), [false, true], "one call is over");
        assert!(credits[1].is_ready() && !credits[1].try_take(), "there is no credit, and none will come");
        let late = Arc::new(Credit::new(0));
        let watch = WithdrawalWatch::new(&withdrawn, &late);
        assert!(late.is_withdrawn());
        drop((running, watch));
    }
}
