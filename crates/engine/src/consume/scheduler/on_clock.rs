//! The scheduler as a part of awoke that acts at moments of the clock.

use super::Scheduler;
use super::state::{Locked, State};
use super::timers::Alarm;
use crate::clock::{Activity, Due, Timed};
use crate::sync::{MutexGuard, lock};

impl<O: Clone + Send, H: Clone + Send> Timed for Scheduler<O, H> {
    fn name(&self) -> String {
        let active = self.read().units.active();
        format!("a scheduler with {active} jobs that run or are ready")
    }

    fn due(&self) -> Due {
        self.read().due()
    }

    fn activity(&self) -> Activity {
        let state = self.read();
        let running = if state.is_closed { state.units.running().count() } else { state.units.active() };
        Activity { is_busy: false, running, waiting: 0 }
    }

    fn look(&self) {
        let mut state = self.lock();
        self.fire(&mut state);
        let Locked { state, wakes } = &mut state;
        state.idle.wake_clock_watchers(wakes);
    }
}

impl<O, H> Scheduler<O, H> {
    /// Locks the state for a look that changes nothing: the end of `lock` tells a test that has the clock of a change,
    /// and the test would look again, without a pause.
    fn read(&self) -> MutexGuard<'_, State<O, H>> {
        lock(&self.state)
    }
}

impl<O: Clone, H: Clone> State<O, H> {
    /// Returns when its alarms are due, but for those that no unit waits for any more.
    fn due(&mut self) -> Due {
        let Self { units, timers, is_closed, .. } = self;
        let mut due = Due::default();
        for (moment, id, alarm) in timers.all().filter(|_| !*is_closed) {
            let Some(unit) = units.get(id) else { continue };
            let at = Some(moment);
            due = due.and(match alarm {
                Alarm::BackoffOver if unit.not_before != at => Due::default(),
                Alarm::BackoffOver | Alarm::CheckMessages => Due { once: at, recurring: None },
                Alarm::Tick => Due { once: None, recurring: at },
            });
        }
        due
    }
}
