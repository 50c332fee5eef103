//! The state of the scheduler, and its changes under the lock.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use super::classes::{ClassId, Classes};
use super::idle::{Idle, IdleWorker, Wakes};
use super::timers::{Alarm, Timers};
use super::unit::{Transition, Unit, UnitId, UnitState, Units};
use super::{Next, Rest};
use crate::clock::{self, Deadline};
use crate::sync::MutexGuard;

/// The locked state, and the threads to wake once it is unlocked. The fields are dropped in this order.
pub(super) struct Locked<'a, O, H> {
    pub(super) state: MutexGuard<'a, State<O, H>>,
    pub(super) wakes: Wakes,
}

impl<O, H> Deref for Locked<'_, O, H> {
    type Target = State<O, H>;

    fn deref(&self) -> &State<O, H> {
        &self.state
    }
}

impl<O, H> DerefMut for Locked<'_, O, H> {
    fn deref_mut(&mut self) -> &mut State<O, H> {
        &mut self.state
    }
}

/// The units, and the workers that wait for them.
pub(super) struct State<O, H> {
    pub(super) units: Units<O, H>,
    pub(super) classes: Classes,
    pub(super) idle: Idle,
    pub(super) timers: Timers,
    /// Workers that have to end.
    pub(super) dismissed: usize,
    pub(super) is_quiet: bool,
    pub(super) is_closed: bool,
    /// Completed when all units rest and at least this number of jobs has begun.
    pub(super) rest_waiters: Vec<(u64, Arc<Rest>)>,
}

impl<O, H> Default for State<O, H> {
    fn default() -> Self {
        Self {
            units: Units::default(),
            classes: Classes::default(),
            idle: Idle::default(),
            timers: Timers::default(),
            dismissed: 0,
            is_quiet: false,
            is_closed: false,
            rest_waiters: Vec::new(),
        }
    }
}

impl<O: Clone, H: Clone> Locked<'_, O, H> {
    /// Wakes the thread that waits for a unit's release, if the unit is released.
    pub(super) fn wake_if_released(&mut self, id: UnitId) {
        if let Some(parker) = self.units.get(id).and_then(Unit::take_release_waiter) {
            self.wakes.add(parker);
        }
    }
}

impl<O: Clone, H: Clone> State<O, H> {
    /// Takes the waits for rest that have come to their end.
    pub(super) fn take_rested(&mut self, jobs: u64) -> Vec<Arc<Rest>> {
        if self.rest_waiters.is_empty() || !self.units.all_rest() {
            return Vec::new();
        }
        self.rest_waiters.extract_if(.., |(least, _)| *least <= jobs).map(|(_, rest)| rest).collect()
    }

    /// Returns whether the worker that asks has to end, and counts it as ended.
    pub(super) fn take_dismissal(&mut self) -> bool {
        let is_dismissed = self.dismissed > 0;
        self.dismissed -= usize::from(is_dismissed);
        is_dismissed
    }

    /// Puts a unit into a queue if it is idle and has work. Returns whether it did.
    pub(super) fn enqueue(&mut self, id: UnitId) -> bool {
        let is_quiet = self.is_quiet;
        let Some(unit) = self.units.get(id) else { return false };
        if unit.state() != UnitState::Idle || !unit.has_work(is_quiet) {
            return false;
        }
        // Work that does not count does not wait for jobs of other units to end.
        let waits = unit.counts() || !self.classes.is_limited(unit.class);
        let queue = if waits { unit.class } else { ClassId::DEFAULT };
        unit.apply(Transition::Queue(queue, clock::now()));
        self.classes.push(queue, id);
        true
    }

    /// Moves a unit that has a hook out of the queue of a class with a limit, where it would wait for jobs of other
    /// units to end. Returns whether it did.
    pub(super) fn let_hook_pass(&mut self, id: UnitId) -> bool {
        let Some(unit) = self.units.get(id) else { return false };
        let UnitState::Ready { queue, since } = unit.state() else { return false };
        if !self.classes.is_limited(queue) {
            return false;
        }
        unit.apply(Transition::Skip);
        unit.apply(Transition::Queue(ClassId::DEFAULT, since));
        self.classes.remove(queue, id);
        self.classes.push(ClassId::DEFAULT, id);
        true
    }

    /// Begins a unit that has messages and is idle; one that is not keeps its place.
    pub(super) fn begin_idle(&mut self, id: UnitId) -> Option<Next<O, H>> {
        let unit = self.units.get(id)?;
        unit.has_messages = true;
        if unit.state() == UnitState::Idle { self.begin(id) } else { None }
    }

    /// Begins the first ready unit that has work.
    pub(super) fn begin_first(&mut self) -> Option<Next<O, H>> {
        while let Some(id) = self.classes.pop() {
            let next = self.begin(id);
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Begins a unit, if it still has work.
    pub(super) fn begin(&mut self, id: UnitId) -> Option<Next<O, H>> {
        let next = self.start(id);
        if !matches!(next, Some(Next::Messages(..))) {
            self.classes.end(id);
        }
        next
    }

    fn start(&mut self, id: UnitId) -> Option<Next<O, H>> {
        let is_quiet = self.is_quiet;
        let unit = self.units.get(id)?;
        if !unit.has_work(is_quiet) {
            unit.apply(Transition::Skip);
            return None; // Withdrawn, paused or quiet since it was queued.
        }
        if unit.counts() && !self.classes.begin(unit.class, id) {
            unit.apply(Transition::Skip);
            self.enqueue(id);
            return None;
        }
        let (before, now) = (unit.state(), clock::now());
        unit.apply(Transition::Start(now));
        let owner = unit.owner.clone();
        if let Some(hook) = unit.take_hook() {
            return Some(Next::Hook(id, owner, hook));
        }
        // Before the worker looks: messages that come after that are announced again.
        unit.has_messages = false;
        let since = match before {
            UnitState::Ready { since, .. } | UnitState::Handed { since } => since,
            UnitState::Idle | UnitState::Running { .. } => now,
        };
        Some(Next::Messages(id, owner, since))
    }

    /// Queues the units whose moment has come.
    pub(super) fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = clock::now();
        while let Some((id, alarm)) = self.timers.pop_due(now) {
            self.fire(id, alarm, now);
        }
    }

    fn fire(&mut self, id: UnitId, alarm: Alarm, now: Instant) {
        let Some(unit) = self.units.get(id) else { return };
        match (alarm, unit.tick.as_mut()) {
            (Alarm::BackoffOver, _) if unit.not_before.is_some_and(|moment| moment <= now) => unit.not_before = None,
            (Alarm::CheckMessages, _) => unit.has_messages = true,
            (Alarm::Tick, Some(tick)) => {
                tick.is_due = true;
                self.timers.set(now + tick.interval, id, Alarm::Tick);
                self.let_hook_pass(id);
            }
            _ => (),
        }
        self.enqueue(id);
    }

    /// Adds a worker to the idle ones. Returns until when it waits: the earliest alarm, too, if it watches the clock.
    pub(super) fn wait_idle(&mut self, worker: &Arc<IdleWorker>, deadline: &Deadline) -> Deadline {
        let watches = self.idle.add_worker(worker);
        deadline.or_earlier(self.timers.earliest().filter(|_| watches))
    }
}
