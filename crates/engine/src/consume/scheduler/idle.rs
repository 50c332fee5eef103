//! The workers and event loops that wait for work.
//!
//! Of the idle workers the one that has waited least is woken first: its caches are warm. The one that has waited
//! longest *watches the clock*: it waits no longer than until the earliest timer. An event loop cannot wait in a
//! thread: it leaves a notifier, which is notified once.

use std::sync::Arc;

use super::Rest;
use super::unit::UnitId;
use crate::clock;
use crate::sync::{Mutex, lock};
use crate::wake::{Notifier, Parker};

/// A worker that waits, and the unit that it was given.
pub(super) struct IdleWorker {
    parker: Arc<Parker>,
    /// Written and read under the scheduler's lock.
    given: Mutex<Option<UnitId>>,
}

impl IdleWorker {
    pub(super) fn new(parker: &Arc<Parker>) -> Arc<Self> {
        Arc::new(Self { parker: Arc::clone(parker), given: Mutex::new(None) })
    }

    /// Takes the unit that this worker was given.
    pub(super) fn take_given(&self) -> Option<UnitId> {
        lock(&self.given).take()
    }
}

/// The workers and event loops that wait for work.
#[derive(Default)]
pub(super) struct Idle {
    /// In the order in which they came; the last is woken first, the first watches the clock.
    workers: Vec<Arc<IdleWorker>>,
    notifiers: Vec<Arc<dyn Notifier>>,
}

impl Idle {
    pub(super) const fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Adds a worker, once. Returns whether it watches the clock.
    pub(super) fn add_worker(&mut self, worker: &Arc<IdleWorker>) -> bool {
        if !self.workers.iter().any(|each| Arc::ptr_eq(each, worker)) {
            self.workers.push(Arc::clone(worker));
        }
        self.workers.first().is_some_and(|first| Arc::ptr_eq(first, worker))
    }

    /// Removes a worker. Returns whether it watched the clock.
    pub(super) fn remove_worker(&mut self, worker: &Arc<IdleWorker>) -> bool {
        let index = self.workers.iter().position(|each| Arc::ptr_eq(each, worker));
        if let Some(index) = index {
            self.workers.remove(index);
        }
        index == Some(0)
    }

    /// Gives a unit to the worker that has waited least.
    pub(super) fn give(&mut self, id: UnitId, wakes: &mut Wakes) {
        if let Some(worker) = self.workers.pop() {
            *lock(&worker.given) = Some(id);
            wakes.workers.push(Arc::clone(&worker.parker));
        }
    }

    /// Adds the notifier of an event loop, once.
    pub(super) fn add_notifier(&mut self, notifier: &Arc<dyn Notifier>) {
        let address = Arc::as_ptr(notifier).cast::<()>();
        if !self.notifiers.iter().any(|each| Arc::as_ptr(each).cast::<()>() == address) {
            self.notifiers.push(Arc::clone(notifier));
        }
    }

    /// Notifies one event loop, unless one is to be notified already. Returns whether one is now.
    pub(super) fn notify_loop(&mut self, wakes: &mut Wakes) -> bool {
        if wakes.notifier.is_none() {
            wakes.notifier = self.notifiers.pop();
            return wakes.notifier.is_some();
        }
        false
    }

    /// Wakes the next one to watch the clock: the worker that has waited longest, or an event loop, which sets a
    /// timer of its own. Returns whether there was one.
    pub(super) fn wake_clock_watcher(&mut self, wakes: &mut Wakes) -> bool {
        if let Some(first) = self.workers.first() {
            wakes.workers.push(Arc::clone(&first.parker));
            return true;
        }
        self.notify_loop(wakes)
    }

    /// Wakes all that watch the clock, or have set a timer of their own, to look at it again.
    pub(super) fn wake_clock_watchers(&mut self, wakes: &mut Wakes) {
        wakes.workers.extend(self.workers.first().map(|first| Arc::clone(&first.parker)));
        wakes.notifiers.append(&mut self.notifiers);
    }

    /// Wakes the workers that have waited least, up to this number.
    pub(super) fn wake_newest(&self, workers: usize, wakes: &mut Wakes) {
        let newest = self.workers.iter().rev().take(workers);
        wakes.workers.extend(newest.map(|worker| Arc::clone(&worker.parker)));
    }

    /// Wakes all workers and event loops.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.workers.extend(self.workers.drain(..).map(|worker| Arc::clone(&worker.parker)));
        wakes.notifiers.append(&mut self.notifiers);
    }
}

/// Threads and event loops to wake once the lock is released: a thread that is woken under the lock waits for it at
/// once. Wakes them when it is dropped.
#[derive(Default)]
pub(super) struct Wakes {
    workers: Vec<Arc<Parker>>,
    notifier: Option<Arc<dyn Notifier>>,
    /// More event loops, for something else than a job.
    notifiers: Vec<Arc<dyn Notifier>>,
    /// The waits for rest that have come to their end.
    pub(super) rested: Vec<Arc<Rest>>,
}

impl Wakes {
    /// Wakes this thread, too.
    pub(super) fn add(&mut self, parker: Arc<Parker>) {
        self.workers.push(parker);
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.workers.iter().for_each(|parker| parker.unpark());
        self.notifier.iter().chain(&self.notifiers).for_each(|notifier| notifier.notify());
        clock::changed();
        for rest in &self.rested {
            rest.complete(Ok(()));
        }
    }
}
