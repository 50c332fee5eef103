//! Decides which unit is worked on next, and wakes exactly the worker that will do it.
//!
//! A *unit* is what one worker at a time works on: a partition, or one job slot of a partition with lanes. `unit` has
//! its states. A unit with work is in one queue, once, so that no unit starves another. A worker that finds no ready
//! unit waits (`idle`); whatever makes a unit ready gives it to a waiting worker under the lock. So a wake-up is always
//! a job, and never a race for one.
//!
//! A unit that waits for a moment, a retry's back-off for example, has a timer (`timers`). Units belong to classes,
//! which have weights and limits (`classes`).
//!
//! The scheduler knows nothing of Kafka: `O` is the owner of a unit, `H` a hook that runs between the unit's jobs.

mod classes;
mod idle;
mod on_clock;
mod state;
#[cfg(all(test, not(feature = "model")))]
mod tests;
mod timers;
mod unit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use classes::ClassId;
use idle::{IdleWorker, Wakes};
use state::{Locked, State};
use timers::Alarm;
pub use unit::UnitId;
use unit::{Tick, Transition, Unit};

use crate::clock::{self, Deadline};
use crate::counters::Counter;
use crate::sync::{Mutex, lock};
use crate::wake::{Completion, Notifier, Parker};
use crate::{Error, Result};

/// A wait for rest; fails when the scheduler closes.
pub type Rest = Completion<Result<()>>;

/// The answer to a worker that asks for work.
#[derive(Debug)]
pub enum Next<O, H> {
    /// A hook to run; the unit runs until `finish`.
    Hook(UnitId, O, H),
    /// Messages to process, and since when the unit was ready; the unit runs until `finish`.
    Messages(UnitId, O, Instant),
    /// The scheduler is closed, or has one worker too many: the worker has to end.
    Closed,
    /// There was nothing before the deadline.
    TimedOut,
}

/// The state in which a worker leaves a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There were no more messages; `announce` tells of new ones.
    Exhausted,
    /// There may be more.
    MaybeMore,
    /// There is more to do, and not before this moment.
    NotBefore(Instant),
    /// There is more to do when messages come, or at this moment.
    Until(Instant),
}

/// The settings of a unit.
#[derive(Debug)]
pub struct UnitOptions<H> {
    /// The class whose weight it counts for.
    pub class: ClassId,
    /// True if its jobs count towards the limit of the class.
    pub is_limited: bool,
    /// A hook that is due again and again, at this interval; one that has not run yet is not posted twice.
    pub tick: Option<(Duration, H)>,
}

impl<H> Default for UnitOptions<H> {
    fn default() -> Self {
        Self { class: ClassId::default(), is_limited: true, tick: None }
    }
}

/// The scheduler's counters.
#[derive(Debug, Default)]
pub struct SchedulerCounters {
    /// Units and hooks given to workers.
    pub jobs: Counter,
    /// Times that a waiting worker was woken for a job.
    pub job_wakes: Counter,
    /// Times that a waiting worker was woken to watch the clock in place of another.
    pub clock_wakes: Counter,
}

/// The scheduler's present numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Units that are ready.
    pub ready: usize,
    /// Units that run.
    pub running: usize,
    /// Workers that wait.
    pub idle: usize,
}

/// Decides which unit is worked on next, and wakes exactly the worker that will do it.
pub struct Scheduler<O, H> {
    state: Mutex<State<O, H>>,
    /// The same as in the state, for running jobs, which read it between two messages.
    is_quiet: AtomicBool,
    counters: SchedulerCounters,
}

impl<O: Clone, H: Clone> Default for Scheduler<O, H> {
    fn default() -> Self {
        let (is_quiet, counters) = (AtomicBool::new(false), SchedulerCounters::default());
        Self { state: Mutex::new(State::default()), is_quiet, counters }
    }
}

/// For the owner of units.
impl<O: Clone, H: Clone> Scheduler<O, H> {
    fn lock(&self) -> Locked<'_, O, H> {
        Locked { state: lock(&self.state), wakes: Wakes::default() }
    }

    /// Returns the scheduler's counters.
    pub const fn counters(&self) -> &SchedulerCounters {
        &self.counters
    }

    /// Adds a class of units. Of two classes that have work, one of weight 2 gets twice the jobs of one of weight 1. At
    /// most `jobs_max` jobs of its limited units run at once; hooks run beside them.
    pub fn add_class(&self, weight: u32, jobs_max: Option<usize>) -> ClassId {
        self.lock().classes.add(weight, jobs_max)
    }

    /// Opens a unit that has nothing to do yet.
    pub fn open(&self, owner: O, options: UnitOptions<H>) -> UnitId {
        let UnitOptions { class, is_limited, tick } = options;
        let interval = tick.as_ref().map(|(interval, _)| *interval);
        let tick = tick.map(|(interval, hook)| Tick { interval, hook, is_due: false });
        let mut state = self.lock();
        let id = state.units.add(Unit::new(owner, class, is_limited, tick));
        if let Some(interval) = interval {
            self.set_alarm(&mut state, clock::now() + interval, id, Alarm::Tick);
        }
        id
    }

    /// Closes a unit: results of a worker that still runs it change nothing.
    pub fn close_unit(&self, id: UnitId) {
        let mut state = self.lock();
        state.units.remove(id);
        self.tell_rest(&mut state);
    }

    /// Notes that a unit may have messages. May be called under a lock of the client library: it only wakes a thread.
    pub fn announce(&self, id: UnitId) {
        self.change(id, |unit| unit.has_messages = true);
    }

    /// Posts a hook, which runs before the unit's next messages.
    pub fn post_hook(&self, id: UnitId, hook: H) {
        let mut state = self.lock();
        let Some(unit) = state.units.get(id) else { return };
        unit.hooks.push_back(hook);
        if state.let_hook_pass(id) || state.enqueue(id) {
            self.balance(&mut state);
        }
    }

    /// Starts nothing of the unit until `release`, or its withdrawal.
    pub fn hold(&self, id: UnitId) {
        self.change(id, |unit| unit.is_held = true);
    }

    /// Ends `hold`.
    pub fn release(&self, id: UnitId) {
        self.change(id, |unit| unit.is_held = false);
    }

    /// Starts no more messages and ticks of the unit; hooks still run.
    pub fn withdraw(&self, id: UnitId) {
        self.change(id, |unit| {
            (unit.is_withdrawn, unit.is_held) = (true, false);
            unit.tick = None;
        });
    }

    /// Starts no messages of the unit until `resume`; hooks and ticks still run.
    pub fn pause(&self, id: UnitId) {
        self.change(id, |unit| unit.is_paused = true);
    }

    /// Ends a pause.
    pub fn resume(&self, id: UnitId) {
        self.change(id, |unit| {
            unit.is_paused = false;
            unit.has_messages = true;
        });
    }

    /// Ends a back-off at once.
    pub fn clear_backoff(&self, id: UnitId) {
        self.change(id, |unit| {
            unit.not_before = None;
            unit.has_messages = true;
        });
    }

    /// Checks a unit for messages at a moment, whatever happens before.
    pub fn wake_at(&self, id: UnitId, moment: Instant) {
        let mut state = self.lock();
        if state.units.get(id).is_some() {
            self.set_alarm(&mut state, moment, id, Alarm::CheckMessages);
        }
    }

    /// Notes an operation that goes on for a unit though no worker runs it: the unit is not released before
    /// `end_pending`.
    pub fn add_pending(&self, id: UnitId) {
        if let Some(unit) = self.lock().units.get(id) {
            unit.pending += 1;
        }
    }

    /// Ends an operation of `add_pending`.
    pub fn end_pending(&self, id: UnitId) {
        let mut state = self.lock();
        let Some(unit) = state.units.get(id) else { return };
        unit.pending = unit.pending.saturating_sub(1);
        state.wake_if_released(id);
        self.tell_rest(&mut state);
    }

    /// Waits until the unit is released: no worker runs it, and no hook or pending operation is left. Returns `false`
    /// when the deadline passed first.
    ///
    /// Blocks the calling thread; one thread at a time may wait for a unit. Others may interrupt the wait by unparking
    /// `parker`, to have a deadline checked that was brought forward: it returns `false` then, too.
    pub fn wait_released(&self, id: UnitId, parker: &Arc<Parker>, deadline: &Deadline) -> bool {
        {
            let mut state = self.lock();
            let Some(unit) = state.units.get(id) else { return true };
            if !unit.await_release(parker) {
                return true;
            }
        }
        parker.park_until(deadline);
        self.lock().units.get(id).is_none_or(Unit::end_await_release)
    }

    /// Starts no messages of any unit from now on; hooks still run.
    pub fn quiet(&self) {
        self.lock().is_quiet = true;
        self.is_quiet.store(true, Ordering::Relaxed);
    }

    /// Returns whether `quiet` was called. Does not block.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    /// Ends this number of workers: those that wait at once, busy ones when they come for more.
    pub fn dismiss(&self, workers: usize) {
        let mut state = self.lock();
        state.dismissed += workers;
        let Locked { state, wakes } = &mut state;
        state.idle.wake_newest(workers, wakes);
    }

    /// Ends every worker's wait, now and later.
    pub fn close(&self) {
        let Locked { state, wakes } = &mut self.lock();
        state.is_closed = true;
        state.idle.wake_all(wakes);
        for (_, rest) in state.rest_waiters.drain(..) {
            rest.complete(Err(Error::Closed { what: "scheduler" }));
        }
    }

    /// Returns a completion for the first moment at which at least this number of jobs has begun (`SchedulerCounters`)
    /// and every unit rests: no job or hook runs or is ready to, and none is pending. Units that wait for a moment, for
    /// messages or for `resume` rest. Does not block.
    pub fn at_rest(&self, jobs_least: u64) -> Arc<Rest> {
        let rest = Arc::<Rest>::default();
        let mut state = self.lock();
        if state.is_closed {
            rest.complete(Err(Error::Closed { what: "scheduler" }));
        } else {
            state.rest_waiters.push((jobs_least, Arc::clone(&rest)));
            self.tell_rest(&mut state);
        }
        rest
    }

    /// Returns the scheduler's present numbers.
    pub fn stats(&self) -> SchedulerStats {
        let state = self.lock();
        let running = state.units.running().count();
        SchedulerStats { ready: state.classes.ready(), running, idle: state.idle.workers() }
    }

    /// Returns since when the oldest job or hook runs; `None` when none does.
    pub fn oldest_running(&self) -> Option<Instant> {
        self.lock().units.running().min()
    }
}

/// For workers.
impl<O: Clone, H: Clone> Scheduler<O, H> {
    /// Returns the next thing to do, if there is one. Does not block.
    pub fn try_next(&self) -> Option<Next<O, H>> {
        let mut state = self.lock();
        if state.is_closed || state.take_dismissal() {
            return Some(Next::Closed);
        }
        state.fire_timers();
        let next = state.begin_first();
        self.balance(&mut state);
        if next.is_some() {
            self.counters.jobs.increment();
        } else {
            self.tell_rest(&mut state);
        }
        next
    }

    /// Returns the next thing to do, as `try_next`. When there is nothing, the notifier is notified as soon as there
    /// is. Does not block.
    ///
    /// The moment, if any, is when the caller has to ask again by itself: a unit waits for it.
    pub fn next_or_notify(&self, notifier: &Arc<dyn Notifier>) -> (Option<Next<O, H>>, Option<Instant>) {
        if let Some(next) = self.try_next() {
            return (Some(next), None);
        }
        let mut state = self.lock();
        state.idle.add_notifier(notifier);
        let moment = state.timers.earliest();
        let has_work = state.classes.has_ready() || state.is_closed;
        drop(state);
        if has_work {
            notifier.notify(); // It came between the two locks.
        }
        (None, moment)
    }

    /// Returns the next thing to do. Blocks the calling thread until there is one, the deadline passes or the scheduler
    /// closes.
    pub fn next(&self, deadline: &Deadline) -> Next<O, H> {
        self.try_next().unwrap_or_else(|| self.next_on(&Arc::default(), deadline))
    }

    /// Returns the next thing to do, as `next`, with a parker that was not used before.
    pub(crate) fn next_on(&self, parker: &Arc<Parker>, deadline: &Deadline) -> Next<O, H> {
        let worker = IdleWorker::new(parker);
        loop {
            let wait_until = {
                let mut state = self.lock();
                if let Some(next) = self.take(&mut state, &worker, deadline) {
                    let watched_the_clock = state.idle.remove_worker(&worker);
                    self.balance(&mut state);
                    if watched_the_clock {
                        self.replace_clock_watcher(&mut state);
                    }
                    return next;
                }
                self.tell_rest(&mut state);
                state.wait_idle(&worker, deadline)
            };
            parker.park_until(&wait_until);
        }
    }

    /// Returns the reason why this worker need not wait (any longer), if there is one.
    fn take(&self, state: &mut State<O, H>, worker: &IdleWorker, deadline: &Deadline) -> Option<Next<O, H>> {
        if state.is_closed {
            return Some(Next::Closed);
        }
        state.fire_timers();
        let next = worker.take_given().and_then(|id| state.begin(id));
        if next.is_none() && state.take_dismissal() {
            return Some(Next::Closed);
        }
        let next = next.or_else(|| state.begin_first());
        if next.is_some() {
            self.counters.jobs.increment();
            return next;
        }
        deadline.has_passed().then_some(Next::TimedOut)
    }

    /// Gives a unit back.
    pub fn finish(&self, id: UnitId, outcome: Outcome) {
        let mut state = self.lock();
        if state.classes.end(id) {
            self.balance(&mut state);
        }
        let Some(unit) = state.units.get(id) else { return };
        unit.apply(Transition::Finish);
        match outcome {
            Outcome::Exhausted | Outcome::Until(_) => (),
            Outcome::MaybeMore => unit.has_messages = true,
            Outcome::NotBefore(moment) => {
                unit.has_messages = true;
                unit.not_before = Some(moment);
            }
        }
        match outcome {
            Outcome::NotBefore(moment) => self.set_alarm(&mut state, moment, id, Alarm::BackoffOver),
            Outcome::Until(moment) => self.set_alarm(&mut state, moment, id, Alarm::CheckMessages),
            Outcome::Exhausted | Outcome::MaybeMore => (),
        }
        state.wake_if_released(id);
        self.queue(&mut state, id);
        self.tell_rest(&mut state);
    }

    /// Gives a unit back and begins another one: the worker goes on with it, and no other worker is woken for it.
    pub fn exchange(&self, id: UnitId, outcome: Outcome, other: UnitId) -> Option<Next<O, H>> {
        let next = self.lock().begin_idle(other);
        if next.is_some() {
            self.counters.jobs.increment();
        }
        self.finish(id, outcome);
        next
    }
}

/// Under the lock.
impl<O: Clone, H: Clone> Scheduler<O, H> {
    /// Changes a unit, and queues it if it has work then.
    fn change(&self, id: UnitId, change: impl FnOnce(&mut Unit<O, H>)) {
        let mut state = self.lock();
        let Some(unit) = state.units.get(id) else { return };
        change(unit);
        self.queue(&mut state, id);
    }

    /// Queues a unit if it is idle and has work, and gives ready units to waiting workers.
    fn queue(&self, state: &mut Locked<'_, O, H>, id: UnitId) {
        if state.enqueue(id) {
            self.balance(state);
        }
    }

    /// Gives ready units to waiting workers, until there are no more of the one or of the other.
    fn balance(&self, state: &mut Locked<'_, O, H>) {
        let Locked { state, wakes } = state;
        while state.classes.has_ready() && state.idle.workers() > 0 {
            let Some(id) = state.classes.pop() else { break };
            if let Some(unit) = state.units.get(id) {
                unit.apply(Transition::Hand);
            }
            self.counters.job_wakes.increment();
            state.idle.give(id, wakes);
        }
        if state.classes.has_ready() && state.idle.notify_loop(wakes) {
            self.counters.job_wakes.increment();
        }
    }

    /// Tells those that wait for rest, if all units rest.
    fn tell_rest(&self, state: &mut Locked<'_, O, H>) {
        let rested = state.take_rested(self.counters.jobs.get());
        state.wakes.rested.extend(rested);
    }

    /// Sets an alarm for a unit.
    fn set_alarm(&self, state: &mut Locked<'_, O, H>, moment: Instant, id: UnitId, alarm: Alarm) {
        if state.timers.set(moment, id, alarm) {
            self.replace_clock_watcher(state);
        }
        if clock::is_virtual() {
            self.fire(state);
        }
    }

    /// Queues the units whose moment has come, and gives them to waiting workers.
    fn fire(&self, state: &mut Locked<'_, O, H>) {
        state.fire_timers();
        self.balance(state);
    }

    /// Wakes the worker or event loop that watches the clock from now on, if there is an alarm to wait for.
    fn replace_clock_watcher(&self, state: &mut Locked<'_, O, H>) {
        let Locked { state, wakes } = state;
        if !state.timers.is_empty() && state.idle.wake_clock_watcher(wakes) {
            self.counters.clock_wakes.increment();
        }
    }
}
