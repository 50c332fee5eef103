//! A unit: what one worker at a time works on, and the states that it goes through.
//!
//! ```text
//!            queue              hand                 start
//!    Idle ──────────▶ Ready ──────────▶ Handed ──────────────▶ Running
//!    ▲ ▲ │            │   │             │                      ▲ ▲  │
//!    │ │ │            │   └─────────────┼───── start ──────────┘ │  │
//!    │ │ └────────────┼─────────────────┼───── start ────────────┘  │
//!    │ └── skip ──────┴── skip ─────────┘                           │
//!    └────────────────────────── finish ────────────────────────────┘
//! ```
//!
//! - *Idle*: it has nothing to do, or something keeps it from starting (a pause, a back-off, quiet, withdrawal).
//! - *Ready*: it is in the queue of one class, once.
//! - *Handed*: it was taken from the queue for a worker that is being woken, and waits for that worker.
//! - *Running*: one worker works on it, until `finish`.
//!
//! `start` from *Idle* is an exchange: a worker goes from one unit to another without the queue. `skip` is a start that
//! finds nothing to do any more, because the unit was paused or withdrawn after it was queued.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::classes::ClassId;
use crate::wake::Parker;

/// Names a unit as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId {
    index: usize,
    /// Distinguishes the unit from an earlier one at the same index.
    serial: u64,
}

/// The state of a unit; the file's diagram shows the transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitState {
    Idle,
    Ready {
        /// The class in whose queue it is.
        queue: ClassId,
        since: Instant,
    },
    Handed {
        since: Instant,
    },
    Running {
        since: Instant,
    },
}

/// An event that may change the state of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// It was put into the queue of this class.
    Queue(ClassId, Instant),
    /// It was taken from the queue for a worker that waits.
    Hand,
    /// A worker begins with it.
    Start(Instant),
    /// A worker found nothing to do.
    Skip,
    /// Its worker is done with it.
    Finish,
}

impl UnitState {
    /// Returns the state after a transition; `None` where the transition changes nothing.
    pub(super) const fn after(self, transition: Transition) -> Option<Self> {
        match (self, transition) {
            (Self::Idle, Transition::Queue(queue, since)) => Some(Self::Ready { queue, since }),
            (Self::Ready { since, .. }, Transition::Hand) => Some(Self::Handed { since }),
            (Self::Idle | Self::Ready { .. } | Self::Handed { .. }, Transition::Start(since)) => {
                Some(Self::Running { since })
            }
            (Self::Ready { .. } | Self::Handed { .. }, Transition::Skip)
            | (Self::Running { .. }, Transition::Finish) => Some(Self::Idle),
            _ => None,
        }
    }
}

/// A hook that is due again and again.
pub(super) struct Tick<H> {
    pub(super) interval: Duration,
    pub(super) hook: H,
    pub(super) is_due: bool,
}

/// The thing that one worker at a time works on.
pub(super) struct Unit<O, H> {
    pub(super) owner: O,
    pub(super) class: ClassId,
    /// True if its jobs count towards the limit of the class.
    pub(super) is_limited: bool,
    state: UnitState,
    /// Messages may have come since a worker last looked.
    pub(super) has_messages: bool,
    pub(super) hooks: VecDeque<H>,
    pub(super) tick: Option<Tick<H>>,
    /// Its messages, but not its hooks, wait for `resume`.
    pub(super) is_paused: bool,
    /// A retry's back-off: its messages, but not its hooks, wait for this moment.
    pub(super) not_before: Option<Instant>,
    /// Neither its messages nor its hooks begin before `release`: what its jobs need is not there yet.
    pub(super) is_held: bool,
    /// Only its hooks run from now on.
    pub(super) is_withdrawn: bool,
    /// Operations that go on for the unit though no worker runs it.
    pub(super) pending: usize,
    /// The thread that waits until the unit is released.
    pub(super) release_waiter: Option<Arc<Parker>>,
}

impl<O, H> Unit<O, H> {
    pub(super) const fn new(owner: O, class: ClassId, is_limited: bool, tick: Option<Tick<H>>) -> Self {
        Self {
            owner,
            class,
            is_limited,
            state: UnitState::Idle,
            has_messages: false,
            hooks: VecDeque::new(),
            tick,
            is_paused: false,
            not_before: None,
            is_held: false,
            is_withdrawn: false,
            pending: 0,
            release_waiter: None,
        }
    }

    pub(super) const fn state(&self) -> UnitState {
        self.state
    }

    /// Applies a transition. Returns whether the state changed.
    pub(super) const fn apply(&mut self, transition: Transition) -> bool {
        let after = self.state.after(transition);
        if let Some(state) = after {
            self.state = state;
        }
        after.is_some()
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.state, UnitState::Running { .. })
    }

    /// Returns whether there is something that a worker may do now.
    pub(super) fn has_work(&self, is_quiet: bool) -> bool {
        let has_messages = self.has_messages && !is_quiet && !self.is_paused && self.not_before.is_none();
        !self.is_held && (!self.hooks.is_empty() || (!self.is_withdrawn && (has_messages || self.is_tick_due())))
    }

    /// Returns whether its next work counts towards the limit of the class: messages do, hooks and ticks do not.
    pub(super) fn counts(&self) -> bool {
        self.is_limited && self.hooks.is_empty() && !self.is_tick_due()
    }

    /// Returns whether nothing goes on for the unit, and nothing is about to.
    fn is_released(&self) -> bool {
        !self.is_running() && self.hooks.is_empty() && self.pending == 0
    }

    /// Returns whether no worker works on it or is about to, and no operation is pending.
    fn rests(&self) -> bool {
        self.state == UnitState::Idle && self.pending == 0
    }

    /// Takes the thread that waits for the unit's release, if the unit is released.
    pub(super) fn take_release_waiter(&mut self) -> Option<Arc<Parker>> {
        if self.is_released() { self.release_waiter.take() } else { None }
    }

    /// Registers a thread that waits for the release, unless the unit is released. Returns whether it has to wait.
    pub(super) fn await_release(&mut self, parker: &Arc<Parker>) -> bool {
        let has_to_wait = !self.is_released();
        self.release_waiter = has_to_wait.then(|| Arc::clone(parker));
        has_to_wait
    }

    /// Ends a wait for the release. Returns whether the unit is released.
    pub(super) fn end_await_release(&mut self) -> bool {
        self.release_waiter = None;
        self.is_released()
    }

    /// Takes the next hook: one that was posted, or else a tick that is due.
    pub(super) fn take_hook(&mut self) -> Option<H>
    where
        H: Clone,
    {
        if let Some(hook) = self.hooks.pop_front() {
            return Some(hook);
        }
        let tick = self.tick.as_mut().filter(|tick| tick.is_due)?;
        tick.is_due = false;
        Some(tick.hook.clone())
    }

    fn is_tick_due(&self) -> bool {
        self.tick.as_ref().is_some_and(|tick| tick.is_due)
    }
}

/// The open units.
pub(super) struct Units<O, H> {
    all: Vec<Option<(u64, Unit<O, H>)>>,
    /// Indexes in `all` that are free.
    free: Vec<usize>,
    serials: u64,
}

impl<O, H> Default for Units<O, H> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new(), serials: 0 }
    }
}

impl<O, H> Units<O, H> {
    pub(super) fn add(&mut self, unit: Unit<O, H>) -> UnitId {
        self.serials += 1;
        let entry = Some((self.serials, unit));
        let index = self.free.pop().unwrap_or(self.all.len());
        if index == self.all.len() {
            self.all.push(entry);
        } else {
            self.all[index] = entry;
        }
        UnitId { index, serial: self.serials }
    }

    pub(super) fn remove(&mut self, id: UnitId) {
        if self.get(id).is_some() {
            self.all[id.index] = None;
            self.free.push(id.index);
        }
    }

    pub(super) fn get(&mut self, id: UnitId) -> Option<&mut Unit<O, H>> {
        let (serial, unit) = self.all.get_mut(id.index)?.as_mut()?;
        (*serial == id.serial).then_some(unit)
    }

    /// Returns whether every unit rests.
    pub(super) fn all_rest(&self) -> bool {
        self.all.iter().flatten().all(|(_, unit)| unit.rests())
    }

    /// Returns how many units do not rest.
    pub(super) fn active(&self) -> usize {
        self.all.iter().flatten().filter(|(_, unit)| !unit.rests()).count()
    }

    /// Returns since when each unit runs that does.
    pub(super) fn running(&self) -> impl Iterator<Item = Instant> {
        self.all.iter().flatten().filter_map(|(_, unit)| match unit.state {
            UnitState::Running { since } => Some(since),
            _ => None,
        })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const CLASS: ClassId = ClassId::DEFAULT;

    #[test]
    fn the_transition_table_has_no_other_transitions_than_the_diagram() {
        let now = Instant::now();
        let (idle, ready) = (UnitState::Idle, UnitState::Ready { queue: CLASS, since: now });
        let (handed, running) = (UnitState::Handed { since: now }, UnitState::Running { since: now });
        let transitions = [
            Transition::Queue(CLASS, now),
            Transition::Hand,
            Transition::Start(now),
            Transition::Skip,
            Transition::Finish,
        ];
        let table = [
            (idle, [Some(ready), None, Some(running), None, None]),
            (ready, [None, Some(handed), Some(running), Some(idle), None]),
            (handed, [None, None, Some(running), Some(idle), None]),
            (running, [None, None, None, None, Some(idle)]),
        ];
        for (state, expected) in table {
            assert_eq!(transitions.map(|transition| state.after(transition)), expected, "{state:?}");
        }
    }

    #[test]
    fn an_index_that_is_used_again_names_another_unit() {
        let mut units = Units::<&str, ()>::default();
        let first = units.add(Unit::new("first", CLASS, true, None));
        units.remove(first);
        let second = units.add(Unit::new("second", CLASS, true, None));
        assert_eq!(first.index, second.index);
        assert!(units.get(first).is_none());
        assert_eq!(units.get(second).map(|unit| unit.owner), Some("second"));
    }

    #[test]
    fn a_unit_that_is_held_begins_neither_hooks_nor_messages() {
        let mut unit = Unit::<&str, &str>::new("unit", CLASS, true, None);
        unit.has_messages = true;
        unit.hooks.push_back("assigned");
        unit.is_held = true;
        assert!(!unit.has_work(false));
    }

    #[test]
    fn what_keeps_messages_back_does_not_keep_hooks_back() {
        let mut unit = Unit::<&str, &str>::new("unit", CLASS, true, None);
        unit.has_messages = true;
        assert!(unit.has_work(false) && !unit.has_work(true));
        (unit.is_paused, unit.not_before) = (true, Some(Instant::now()));
        assert!(!unit.has_work(false));
        unit.is_withdrawn = true;
        unit.hooks.push_back("revoked");
        assert!(unit.has_work(true) && !unit.counts());
    }
}
