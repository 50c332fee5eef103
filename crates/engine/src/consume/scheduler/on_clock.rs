//! The scheduler as a part of awoke that acts at moments of the clock.

use super::Scheduler;
use super::state::{Locked, State};
use super::timers::Alarm;
use crate::clock::{Activity, Due, Timed};

impl<O: Clone + Send, H: Clone + Send> Timed for Scheduler<O, H> {
    fn name(&self) -> String {
        let active = self.lock().units.active();
        format!("a scheduler with {active} jobs that run or are ready")
    }

    fn due(&self) -> Due {
        self.lock().due()
    }

    fn activity(&self) -> Activity {
        let state = self.lock();
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
