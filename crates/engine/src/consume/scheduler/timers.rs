//! The moments at which units are to be looked at again.
//!
//! There is no timer thread: the idle worker that has waited longest waits until the earliest moment. When all workers
//! are busy, a unit that is due could not be given to any of them anyway.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::unit::UnitId;

/// The reason why a unit is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// A back-off is over.
    BackoffOver,
    /// A batch has waited long enough for more messages.
    CheckMessages,
    /// Its tick is due.
    Tick,
}

/// The moments at which units are to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, UnitId, Alarm)>>,
}

impl Timers {
    /// Sets an alarm. Returns whether it is earlier than all others.
    pub(super) fn set(&mut self, moment: Instant, id: UnitId, alarm: Alarm) -> bool {
        let is_first = self.earliest().is_none_or(|first| moment < first);
        self.heap.push(Reverse((moment, id, alarm)));
        is_first
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((moment, _, _))| *moment)
    }

    /// Returns all alarms.
    pub(super) fn all(&self) -> impl Iterator<Item = (Instant, UnitId, Alarm)> {
        self.heap.iter().map(|Reverse(alarm)| *alarm)
    }

    /// Takes the earliest alarm whose moment has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(UnitId, Alarm)> {
        if self.earliest()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, id, alarm))| (id, alarm))
    }
}
