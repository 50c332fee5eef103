//! Decides which lane is worked on next and wakes exactly the worker who will do it.
//!
//! A *lane* is what one worker at a time works on: a partition, or a slot of one that has several jobs at once. It is *ready* when it has messages or a hook, *busy* while one
//! worker holds it, and waits in the line of ready lanes at most once, so that no lane starves another. A worker that
//! finds no ready lane waits on the stack of idle workers (the one that waited least is woken first: its caches are
//! warm); whoever makes a lane ready gives it to that worker under the lock, so that a wake-up is always a job and never
//! a race for one. A worker on an event loop can't wait in a thread: it leaves a bell, which rings once per absence.
//!
//! Lanes that wait for a time (a retry's back-off) stand in a heap. There is no timer thread: of the idle workers the one
//! that came first waits with the earliest time as its deadline; when all workers are busy nobody could act on it anyway.
//!
//! Lanes belong to classes, which have weights and limits: see `classes`.
//!
//! It knows nothing of Kafka: `L` is the lane's owner, `H` a hook that runs between the lane's jobs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::classes::{ClassId, Classes};
use crate::clock::Deadline;
use crate::counters::Counter;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::wake::{Bell, Parker};

/// Names a lane as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId {
    slot: usize,
    /// Tells the lane from an earlier one in the same slot.
    turn: u64,
}

/// What a worker gets.
#[derive(Debug)]
pub enum Next<L, H> {
    /// A hook to run; the lane is busy until `finish`.
    Hook(LaneId, L, H),
    /// Messages to process, and since when the lane stood in line; the lane is busy until `finish`.
    Messages(LaneId, L, Instant),
    /// The scheduler has closed, or has one worker too many: the worker is to end.
    Closed,
    /// Nothing within the deadline.
    TimedOut,
}

/// How a worker leaves a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no more; whoever brings more will say so.
    Exhausted,
    /// There may be more.
    MaybeMore,
    /// There is something to do again, and not before this moment.
    NotBefore(Instant),
    /// There is something to do when more comes, or at this moment.
    Until(Instant),
}

/// What sets a lane apart from others.
#[derive(Debug)]
pub struct LaneOptions<H> {
    /// Whose weight it counts for.
    pub class: ClassId,
    /// Whether its jobs count for the class's limit.
    pub counts: bool,
    /// A hook that comes again and again, so far apart; one that was not run yet is not posted twice.
    pub tick: Option<(Duration, H)>,
}

impl<H> Default for LaneOptions<H> {
    fn default() -> Self {
        Self { class: ClassId::default(), counts: true, tick: None }
    }
}

/// What the scheduler counts about itself.
#[derive(Debug, Default)]
pub struct SchedulerCounters {
    /// Lanes and hooks given to workers.
    pub jobs: Counter,
    /// Times that a waiting worker was woken for a job.
    pub job_wakes: Counter,
    /// Times that a waiting worker was woken to watch the clock in the place of another.
    pub clock_wakes: Counter,
}

/// Decides which lane is worked on next and wakes exactly the worker who will do it.
pub struct Scheduler<L, H> {
    state: Mutex<State<L, H>>,
    /// As in the state, for running jobs, which look between two messages.
    is_quiet: AtomicBool,
    counters: SchedulerCounters,
}

/// The state, and whom to wake when it is let go of, in this order: whoever is woken under the lock would wait for it at once.
struct Locked<'a, L, H> {
    state: MutexGuard<'a, State<L, H>>,
    wakes: Wakes,
}

/// Whom to wake; dropped, it does.
#[derive(Default)]
struct Wakes {
    workers: Vec<Arc<Parker>>,
    bell: Option<Arc<dyn Bell>>,
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.workers.iter().for_each(|parker| parker.unpark());
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

impl<L, H> Deref for Locked<'_, L, H> {
    type Target = State<L, H>;

    fn deref(&self) -> &State<L, H> {
        &self.state
    }
}

impl<L, H> DerefMut for Locked<'_, L, H> {
    fn deref_mut(&mut self) -> &mut State<L, H> {
        &mut self.state
    }
}

struct State<L, H> {
    lanes: Vec<Option<Lane<L, H>>>,
    /// Places in `lanes` that are free.
    free: Vec<usize>,
    turns: u64,
    classes: Classes,
    /// The last to come stands at the back and is woken first; the first watches the clock.
    idle: Vec<Arc<IdleWorker>>,
    /// Event loops that found nothing and want to be rung.
    bells: Vec<Arc<dyn Bell>>,
    timers: BinaryHeap<Reverse<(Instant, LaneId, Alarm)>>,
    /// Workers that are to end.
    leaving: usize,
    is_quiet: bool,
    is_closed: bool,
}

/// Why a lane wants to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// A back-off is over.
    Again,
    /// A batch has waited long enough for more.
    Look,
    Tick,
}

/// A hook that comes again and again.
struct Tick<H> {
    every: Duration,
    hook: H,
    is_due: bool,
}

struct Lane<L, H> {
    turn: u64,
    owner: L,
    class: ClassId,
    counts: bool,
    tick: Option<Tick<H>>,
    /// Something may have come since a worker last looked.
    has_messages: bool,
    hooks: VecDeque<H>,
    is_busy: bool,
    /// Since when, if it is.
    busy_since: Option<Instant>,
    is_in_line: bool,
    in_line_since: Option<Instant>,
    is_paused: bool,
    /// A retry's back-off: messages, not hooks, wait for it.
    not_before: Option<Instant>,
    /// Only hooks from now on.
    is_withdrawn: bool,
    /// What goes on for the lane though no worker holds it.
    holds: usize,
    /// Who waits until the lane is neither busy nor has hooks.
    released: Option<Arc<Parker>>,
}

struct IdleWorker {
    parker: Arc<Parker>,
    /// The lane that this worker was given; written and read under the scheduler's lock.
    given: Mutex<Option<LaneId>>,
}

impl<L, H> Lane<L, H> {
    fn has_work(&self, is_quiet: bool) -> bool {
        let has_messages = self.has_messages && !is_quiet && !self.is_paused && self.not_before.is_none();
        !self.hooks.is_empty() || (!self.is_withdrawn && (has_messages || self.is_tick_due()))
    }

    /// Whether what it has to do is messages, and neither a hook nor a tick.
    fn has_only_messages(&self) -> bool {
        self.hooks.is_empty() && !self.is_tick_due()
    }

    /// Whether nothing goes on for it, nor is about to.
    fn is_released(&self) -> bool {
        !self.is_busy && self.hooks.is_empty() && self.holds == 0
    }

    fn is_tick_due(&self) -> bool {
        self.tick.as_ref().is_some_and(|tick| tick.is_due)
    }
}

impl<L: Clone, H: Clone> Default for Scheduler<L, H> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                lanes: Vec::new(),
                free: Vec::new(),
                turns: 0,
                classes: Classes::default(),
                idle: Vec::new(),
                bells: Vec::new(),
                timers: BinaryHeap::new(),
                leaving: 0,
                is_quiet: false,
                is_closed: false,
            }),
            is_quiet: AtomicBool::new(false),
            counters: SchedulerCounters::default(),
        }
    }
}

impl<L: Clone, H: Clone> Scheduler<L, H> {
    fn lock(&self) -> Locked<'_, L, H> {
        Locked { state: lock(&self.state), wakes: Wakes::default() }
    }

    /// What the scheduler counts about itself.
    pub const fn counters(&self) -> &SchedulerCounters {
        &self.counters
    }

    /// A class for lanes; of two that have work, one of weight 2 gets twice as many jobs as one of weight 1. At most `jobs_max` jobs of
    /// its lanes run at once, of those that count; hooks run beside them.
    pub fn add_class(&self, weight: u32, jobs_max: Option<usize>) -> ClassId {
        self.lock().classes.add(weight, jobs_max)
    }

    /// Opens a lane that has nothing to do yet.
    pub fn open(&self, owner: L, options: LaneOptions<H>) -> LaneId {
        let mut state = self.lock();
        state.turns += 1;
        let turn = state.turns;
        let lane = Lane {
            turn,
            owner,
            class: options.class,
            counts: options.counts,
            tick: options.tick.map(|(every, hook)| Tick { every, hook, is_due: false }),
            has_messages: false,
            hooks: VecDeque::new(),
            is_busy: false,
            busy_since: None,
            is_in_line: false,
            in_line_since: None,
            is_paused: false,
            not_before: None,
            is_withdrawn: false,
            holds: 0,
            released: None,
        };
        let slot = if let Some(slot) = state.free.pop() {
            state.lanes[slot] = Some(lane);
            slot
        } else {
            state.lanes.push(Some(lane));
            state.lanes.len() - 1
        };
        let id = LaneId { slot, turn };
        if let Some(every) = state.tick_interval(id) {
            self.set_alarm(&mut state, Instant::now() + every, id, Alarm::Tick);
        }
        id
    }

    /// Closes a lane: what a worker still does for it is nobody's concern any more.
    pub fn close_lane(&self, id: LaneId) {
        let mut state = self.lock();
        if state.lane(id).is_some() {
            state.lanes[id.slot] = None;
            state.free.push(id.slot);
        }
    }

    /// Says that a lane may have messages. May be called under a lock of librdkafka's: it calls nothing but a waker.
    pub fn announce(&self, id: LaneId) {
        self.change(id, |lane| lane.has_messages = true);
    }

    /// Puts a hook before the lane's next messages.
    pub fn post_hook(&self, id: LaneId, hook: H) {
        let mut state = self.lock();
        let Some(lane) = state.lane(id) else { return };
        lane.hooks.push_back(hook);
        let is_busy = lane.is_busy;
        if state.let_pass(id) {
            self.balance(&mut state);
        } else if !is_busy {
            self.queue(&mut state, id);
        }
    }

    /// Gives the lane no more messages to anybody, and no tick; hooks still run.
    pub fn withdraw(&self, id: LaneId) {
        self.change(id, |lane| {
            lane.is_withdrawn = true;
            lane.tick = None;
        });
    }

    /// Gives the lane's messages to nobody until `resume`; hooks and ticks still run.
    pub fn pause(&self, id: LaneId) {
        self.change(id, |lane| lane.is_paused = true);
    }

    /// Ends a pause.
    pub fn resume(&self, id: LaneId) {
        self.change(id, |lane| {
            lane.is_paused = false;
            lane.has_messages = true;
        });
    }

    /// Ends a back-off: what the lane waited for does not matter any more.
    pub fn hasten(&self, id: LaneId) {
        self.change(id, |lane| {
            lane.not_before = None;
            lane.has_messages = true;
        });
    }

    /// Ends so many workers: those that wait at once, busy ones when they come for more.
    pub fn dismiss(&self, workers: usize) {
        let mut state = self.lock();
        state.leaving += workers;
        let leaving: Vec<_> = state.idle.iter().rev().take(workers).map(|worker| Arc::clone(&worker.parker)).collect();
        state.wakes.workers.extend(leaving);
    }

    /// Waits until nobody works on the lane and no hook is left; `false` when the deadline passed first.
    ///
    /// Blocks the calling thread; one thread may wait for a lane at a time. `parker` lets others interrupt the wait, to
    /// look at a deadline that was brought forward, by unparking it: then the answer is `false`, too.
    pub fn wait_released(&self, id: LaneId, parker: &Arc<Parker>, deadline: &Deadline) -> bool {
        {
            let mut state = self.lock();
            let Some(lane) = state.lane(id) else {
                return true;
            };
            if lane.is_released() {
                return true;
            }
            lane.released = Some(Arc::clone(parker));
        }
        parker.park_until(deadline);
        let mut state = self.lock();
        let Some(lane) = state.lane(id) else {
            return true;
        };
        lane.released = None;
        lane.is_released()
    }

    /// The next thing to do, if there is one. Does not block.
    pub fn try_next(&self) -> Option<Next<L, H>> {
        let mut state = self.lock();
        if state.is_closed || state.leave() {
            return Some(Next::Closed);
        }
        state.fire_timers();
        let next = state.begin_first();
        self.balance(&mut state);
        if next.is_some() {
            self.counters.jobs.increment();
        }
        next
    }

    /// As `try_next`; when there is nothing, the bell rings as soon as there is. Does not block.
    ///
    /// The moment, if any, is when the caller should come again by itself: a lane waits for it.
    pub fn next_or_ring(&self, bell: &Arc<dyn Bell>) -> (Option<Next<L, H>>, Option<Instant>) {
        if let Some(next) = self.try_next() {
            return (Some(next), None);
        }
        let mut state = self.lock();
        if !state.bells.iter().any(|waiting| Arc::as_ptr(waiting).cast::<()>() == Arc::as_ptr(bell).cast::<()>()) {
            state.bells.push(Arc::clone(bell));
        }
        let moment = state.next_alarm();
        let came_meanwhile = state.classes.has_ready() || state.is_closed;
        drop(state);
        if came_meanwhile {
            bell.ring();
        }
        (None, moment)
    }

    /// The next thing to do. Blocks the calling thread until there is one, the deadline passes or the scheduler closes.
    pub fn next(&self, deadline: &Deadline) -> Next<L, H> {
        self.try_next().unwrap_or_else(|| self.next_on(&Arc::default(), deadline))
    }

    /// As `next`, in a parking place that nobody has used yet.
    pub(crate) fn next_on(&self, parker: &Arc<Parker>, deadline: &Deadline) -> Next<L, H> {
        let me = Arc::new(IdleWorker { parker: Arc::clone(parker), given: Mutex::new(None) });
        loop {
            let wait_until = {
                let mut state = self.lock();
                match self.take(&mut state, &me, deadline) {
                    Some(next) => {
                        let watched_the_clock = state.forget(&me);
                        self.balance(&mut state);
                        if watched_the_clock {
                            self.hand_the_clock_on(&mut state);
                        }
                        return next;
                    }
                    None => state.wait_idle(&me, deadline),
                }
            };
            parker.park_until(&wait_until);
        }
    }

    /// Why this worker need not wait (any longer), if there is a reason.
    fn take(&self, state: &mut State<L, H>, me: &IdleWorker, deadline: &Deadline) -> Option<Next<L, H>> {
        if state.is_closed {
            return Some(Next::Closed);
        }
        state.fire_timers();
        let given = lock(&me.given).take();
        let next = given.and_then(|id| state.begin(id));
        if next.is_none() && state.leave() {
            return Some(Next::Closed);
        }
        let next = next.or_else(|| state.begin_first());
        if next.is_some() {
            self.counters.jobs.increment();
            return next;
        }
        deadline.has_passed().then_some(Next::TimedOut)
    }

    /// Gives a lane back.
    pub fn finish(&self, id: LaneId, outcome: Outcome) {
        let mut state = self.lock();
        if state.classes.end(id) {
            self.balance(&mut state);
        }
        let is_quiet = state.is_quiet;
        let Some(lane) = state.lane(id) else { return };
        lane.is_busy = false;
        match outcome {
            Outcome::Exhausted | Outcome::Until(_) => (),
            Outcome::MaybeMore => lane.has_messages = true,
            Outcome::NotBefore(moment) => {
                lane.has_messages = true;
                lane.not_before = Some(moment);
            }
        }
        let has_work = lane.has_work(is_quiet);
        let waiting = if lane.is_released() { lane.released.take() } else { None };
        match outcome {
            Outcome::NotBefore(moment) => self.set_alarm(&mut state, moment, id, Alarm::Again),
            Outcome::Until(moment) => self.set_alarm(&mut state, moment, id, Alarm::Look),
            Outcome::Exhausted | Outcome::MaybeMore => (),
        }
        if has_work {
            self.queue(&mut state, id);
        }
        drop(state);
        if let Some(parker) = waiting {
            parker.unpark();
        }
    }

    /// Gives a lane back and begins another one: whoever works goes on with it, and nobody is woken for it.
    pub fn exchange(&self, id: LaneId, outcome: Outcome, other: LaneId) -> Option<Next<L, H>> {
        {
            let mut state = self.lock();
            let is_quiet = state.is_quiet;
            // In line, so that it stays there should it not be begun; at work, so that nobody else is given it.
            let lane = state.lane(other)?;
            lane.has_messages = true;
            let is_free = !lane.is_busy && !lane.is_in_line && lane.has_work(is_quiet);
            if is_free {
                let next = state.begin(other);
                drop(state);
                if next.is_some() {
                    self.counters.jobs.increment();
                }
                self.finish(id, outcome);
                return next;
            }
        }
        self.announce(other);
        self.finish(id, outcome);
        None
    }

    /// Something goes on for a lane though no worker holds it: until `let_go` it counts as not released.
    pub fn hold(&self, id: LaneId) {
        if let Some(lane) = self.lock().lane(id) {
            lane.holds += 1;
        }
    }

    /// Ends a `hold`.
    pub fn let_go(&self, id: LaneId) {
        let waiting = {
            let mut state = self.lock();
            let Some(lane) = state.lane(id) else { return };
            lane.holds = lane.holds.saturating_sub(1);
            if lane.is_released() { lane.released.take() } else { None }
        };
        if let Some(parker) = waiting {
            parker.unpark();
        }
    }

    /// Has a lane looked at when its time has come, whatever happens before.
    pub fn look_at(&self, id: LaneId, moment: Instant) {
        let mut state = self.lock();
        if state.lane(id).is_some() {
            self.set_alarm(&mut state, moment, id, Alarm::Look);
        }
    }

    /// Gives no messages to anybody from now on; hooks still run.
    pub fn quiet(&self) {
        self.lock().is_quiet = true;
        self.is_quiet.store(true, Ordering::Relaxed);
    }

    /// Whether `quiet` was called. Does not block.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    /// Ends every worker's wait, now and later.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let idle = std::mem::take(&mut state.idle);
        let bells = std::mem::take(&mut state.bells);
        drop(state);
        idle.iter().for_each(|worker| worker.parker.unpark());
        bells.iter().for_each(|bell| bell.ring());
    }

    /// Lanes in line, lanes being worked on, workers that wait.
    pub fn census(&self) -> (usize, usize, usize) {
        let state = self.lock();
        let busy = state.lanes.iter().flatten().filter(|lane| lane.is_busy).count();
        (state.classes.ready(), busy, state.idle.len())
    }

    /// Since when the oldest job or hook runs that is under way; `None` when none is.
    pub fn oldest_busy(&self) -> Option<Instant> {
        let state = self.lock();
        state.lanes.iter().flatten().filter(|lane| lane.is_busy).filter_map(|lane| lane.busy_since).min()
    }

    /// Changes a lane and queues it if that gave it something to do.
    fn change(&self, id: LaneId, change: impl FnOnce(&mut Lane<L, H>)) {
        let mut state = self.lock();
        let is_quiet = state.is_quiet;
        let Some(lane) = state.lane(id) else { return };
        change(lane);
        if !lane.is_busy && lane.has_work(is_quiet) {
            self.queue(&mut state, id);
        }
    }

    /// Puts a lane with work in line, and gives the head of the line to whoever waits.
    fn queue(&self, state: &mut Locked<'_, L, H>, id: LaneId) {
        state.put_in_line(id);
        self.balance(state);
    }

    /// While there are lanes in line and workers that wait, gives one to the other: afterwards one of them is none.
    fn balance(&self, state: &mut Locked<'_, L, H>) {
        while state.classes.has_ready() && !state.idle.is_empty() {
            if let (Some(id), Some(worker)) = (state.classes.pop(), state.idle.pop()) {
                self.counters.job_wakes.increment();
                *lock(&worker.given) = Some(id);
                state.wakes.workers.push(Arc::clone(&worker.parker));
            }
        }
        if state.classes.has_ready()
            && state.wakes.bell.is_none()
            && let Some(bell) = state.bells.pop()
        {
            self.counters.job_wakes.increment();
            state.wakes.bell = Some(bell);
        }
    }

    /// Has a lane looked at in time.
    fn set_alarm(&self, state: &mut Locked<'_, L, H>, moment: Instant, id: LaneId, alarm: Alarm) {
        let is_first = state.next_alarm().is_none_or(|first| moment < first);
        state.timers.push(Reverse((moment, id, alarm)));
        if is_first {
            self.hand_the_clock_on(state);
        }
    }

    /// Wakes the worker, or rings the event loop, that now watches the clock, if there is a clock to watch.
    fn hand_the_clock_on(&self, state: &mut Locked<'_, L, H>) {
        if let (Some(first), false) = (state.idle.first(), state.timers.is_empty()) {
            self.counters.clock_wakes.increment();
            let first = Arc::clone(&first.parker);
            state.wakes.workers.push(first);
        } else if state.idle.is_empty()
            && !state.timers.is_empty()
            && state.wakes.bell.is_none()
            && let Some(bell) = state.bells.pop()
        {
            // An event loop sets a timer of its own when it comes.
            self.counters.clock_wakes.increment();
            state.wakes.bell = Some(bell);
        }
    }
}

impl<L: Clone, H: Clone> State<L, H> {
    fn lane(&mut self, id: LaneId) -> Option<&mut Lane<L, H>> {
        self.lanes.get_mut(id.slot)?.as_mut().filter(|lane| lane.turn == id.turn)
    }

    fn tick_interval(&mut self, id: LaneId) -> Option<Duration> {
        self.lane(id)?.tick.as_ref().map(|tick| tick.every)
    }

    fn next_alarm(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((moment, _, _))| *moment)
    }

    /// Whether the worker that asks is one too many.
    fn leave(&mut self) -> bool {
        let leaves = self.leaving > 0;
        self.leaving -= usize::from(leaves);
        leaves
    }

    /// Starts work on a lane that has some.
    fn begin(&mut self, id: LaneId) -> Option<Next<L, H>> {
        // One that is busy was in line twice: its job goes on, and counts.
        let is_busy = self.lane(id).is_some_and(|lane| lane.is_busy);
        let next = self.begin_work(id);
        if !is_busy && !matches!(next, Some(Next::Messages(..))) {
            self.classes.end(id);
        }
        next
    }

    fn begin_work(&mut self, id: LaneId) -> Option<Next<L, H>> {
        let is_quiet = self.is_quiet;
        let lane = self.lane(id)?;
        lane.is_in_line = false;
        if lane.is_busy || !lane.has_work(is_quiet) {
            return None; // Withdrawn, or quiet, since it was put in line.
        }
        if lane.counts && lane.has_only_messages() {
            let class = lane.class;
            if !self.classes.begin(class, id) {
                self.put_in_line(id);
                return None;
            }
        }
        let lane = self.lane(id)?;
        lane.is_busy = true;
        lane.busy_since = Some(Instant::now());
        if let Some(hook) = lane.hooks.pop_front() {
            return Some(Next::Hook(id, lane.owner.clone(), hook));
        }
        if let Some(tick) = lane.tick.as_mut().filter(|tick| tick.is_due) {
            tick.is_due = false;
            return Some(Next::Hook(id, lane.owner.clone(), tick.hook.clone()));
        }
        // Before the worker looks: what comes after that is announced anew.
        lane.has_messages = false;
        let since = lane.in_line_since.take().unwrap_or_else(Instant::now);
        Some(Next::Messages(id, lane.owner.clone(), since))
    }

    /// Takes a lane that has a hook out of the line of a class with a limit, where it would wait for jobs of other lanes to end.
    fn let_pass(&mut self, id: LaneId) -> bool {
        let Some(class) = self.lane(id).filter(|lane| lane.is_in_line).map(|lane| lane.class) else { return false };
        let is_limited = self.classes.is_limited(class);
        if is_limited {
            self.classes.remove(class, id);
            self.classes.push(ClassId::default(), id);
        }
        is_limited
    }

    fn begin_first(&mut self) -> Option<Next<L, H>> {
        while let Some(id) = self.classes.pop() {
            let next = self.begin(id);
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Puts lanes whose time has come in line.
    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        let is_quiet = self.is_quiet;
        while self.next_alarm().is_some_and(|moment| moment <= now) {
            let Some(Reverse((_, id, alarm))) = self.timers.pop() else {
                return;
            };
            let Some(lane) = self.lane(id) else { continue };
            let mut next_tick = None;
            match (alarm, lane.tick.as_mut()) {
                (Alarm::Again, _) if lane.not_before.is_some_and(|moment| moment <= now) => lane.not_before = None,
                (Alarm::Look, _) => lane.has_messages = true,
                (Alarm::Tick, Some(tick)) => {
                    tick.is_due = true;
                    next_tick = Some(now + tick.every);
                }
                _ => (),
            }
            let (is_free, is_tick) = (!lane.is_busy && lane.has_work(is_quiet), next_tick.is_some());
            if is_free && !(is_tick && self.let_pass(id)) {
                self.put_in_line(id);
            }
            if let Some(moment) = next_tick {
                self.timers.push(Reverse((moment, id, Alarm::Tick)));
            }
        }
    }

    fn put_in_line(&mut self, id: LaneId) {
        let Some(lane) = self.lane(id).filter(|lane| !lane.is_in_line) else { return };
        lane.is_in_line = true;
        lane.in_line_since = Some(Instant::now());
        let (class, counts) = (lane.class, lane.counts && lane.has_only_messages());
        // What does not count does not wait for jobs of other lanes to end.
        let waits = counts || !self.classes.is_limited(class);
        self.classes.push(if waits { class } else { ClassId::default() }, id);
    }

    /// Makes the worker wait, and says until when: for the earliest timer, too, if it is the one to watch the clock.
    fn wait_idle(&mut self, me: &Arc<IdleWorker>, deadline: &Deadline) -> Deadline {
        if !self.idle.iter().any(|worker| Arc::ptr_eq(worker, me)) {
            self.idle.push(Arc::clone(me));
        }
        let watches = self.idle.first().is_some_and(|first| Arc::ptr_eq(first, me));
        deadline.or_earlier(self.next_alarm().filter(|_| watches))
    }

    /// Takes a worker out of the stack of idle ones; whether it was the one that watched the clock.
    fn forget(&mut self, me: &Arc<IdleWorker>) -> bool {
        let place = self.idle.iter().position(|worker| Arc::ptr_eq(worker, me));
        if let Some(place) = place {
            self.idle.remove(place);
        }
        place == Some(0)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    type Lanes = Scheduler<&'static str, &'static str>;

    fn soon() -> Deadline {
        Deadline::after(Some(Duration::from_secs(10)))
    }

    fn lane_of(next: &Next<&'static str, &'static str>) -> &'static str {
        match next {
            Next::Messages(_, owner, _) | Next::Hook(_, owner, _) => owner,
            Next::Closed => "closed",
            Next::TimedOut => "timed out",
        }
    }

    fn wait_until_idle(lanes: &Lanes, workers: usize) {
        while lanes.census().2 < workers {
            std::thread::yield_now();
        }
    }

    #[test]
    fn lanes_take_turns() {
        let lanes = Lanes::default();
        let (one, other) = (lanes.open("one", LaneOptions::default()), lanes.open("other", LaneOptions::default()));
        lanes.announce(one);
        lanes.announce(other);
        let mut seen = Vec::new();
        for _ in 0..4 {
            let Some(Next::Messages(id, owner, _)) = lanes.try_next() else { panic!("two lanes are ready") };
            seen.push(owner);
            lanes.finish(id, Outcome::MaybeMore);
        }
        assert_eq!(seen, ["one", "other", "one", "other"]);
    }

    #[test]
    fn a_busy_lane_is_given_to_nobody_else() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        lanes.announce(lane);
        assert!(lanes.try_next().is_none());
        lanes.finish(lane, Outcome::Exhausted);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
    }

    #[test]
    fn hooks_run_before_messages_and_after_withdrawal() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        lanes.post_hook(lane, "assigned");
        assert!(matches!(lanes.try_next(), Some(Next::Hook(_, _, "assigned"))));
        lanes.withdraw(lane);
        lanes.finish(lane, Outcome::Exhausted);
        assert!(lanes.try_next().is_none());
        lanes.post_hook(lane, "revoked");
        assert!(matches!(lanes.try_next(), Some(Next::Hook(_, _, "revoked"))));
    }

    #[test]
    fn a_waiting_worker_is_woken_once_for_each_job() {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        let worker = std::thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || {
                let mut jobs = 0;
                while let Next::Messages(id, ..) = lanes.next(&soon()) {
                    jobs += 1;
                    lanes.finish(id, Outcome::Exhausted);
                }
                jobs
            }
        });
        for _ in 0..100 {
            wait_until_idle(&lanes, 1);
            lanes.announce(lane);
        }
        wait_until_idle(&lanes, 1);
        lanes.close();
        assert_eq!(worker.join().expect("no panic"), 100);
        assert_eq!(lanes.counters().job_wakes.get(), 100);
        assert_eq!(lanes.counters().clock_wakes.get(), 0);
    }

    #[test]
    fn a_lane_that_backs_off_comes_back_to_a_waiting_worker_by_itself() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        assert_eq!(lane_of(&lanes.next(&soon())), "lane");
        let moment = Instant::now() + Duration::from_millis(20);
        lanes.finish(lane, Outcome::NotBefore(moment));
        lanes.announce(lane);
        assert!(lanes.try_next().is_none());
        assert_eq!(lane_of(&lanes.next(&soon())), "lane");
        assert!(Instant::now() >= moment);
    }

    #[test]
    fn lanes_whose_time_comes_together_go_to_as_many_workers() {
        let lanes = Arc::new(Lanes::default());
        let moment = Instant::now() + Duration::from_millis(50);
        for owner in ["one", "other"] {
            let lane = lanes.open(owner, LaneOptions::default());
            lanes.announce(lane);
            assert_eq!(lane_of(&lanes.next(&soon())), owner);
            lanes.finish(lane, Outcome::NotBefore(moment));
        }
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let lanes = Arc::clone(&lanes);
                // Neither gives its lane back: each must get one of its own.
                std::thread::spawn(move || lane_of(&lanes.next(&soon())))
            })
            .collect();
        let mut seen: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["one", "other"]);
    }

    #[test]
    fn waiting_for_release_ends_when_the_job_and_the_hooks_are_done() {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        lanes.withdraw(lane);
        let worker = std::thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || lanes.finish(lane, Outcome::MaybeMore)
        });
        assert!(lanes.wait_released(lane, &Arc::default(), &soon()));
        worker.join().expect("no panic");
        assert!(lanes.try_next().is_none());
    }

    #[derive(Default)]
    struct Rings(Counter);

    impl Bell for Rings {
        fn ring(&self) {
            self.0.increment();
        }
        fn quiet(&self) {}
    }

    #[test]
    fn an_event_loop_that_waits_hears_of_a_new_first_alarm() {
        let lanes = Lanes::default();
        let rings = Arc::new(Rings::default());
        let bell: Arc<dyn Bell> = Arc::clone(&rings) as _;
        let one = lanes.open("one", LaneOptions::default());
        lanes.announce(one);
        assert!(lanes.next_or_ring(&bell).0.is_some());
        assert_eq!(lanes.next_or_ring(&bell).1, None, "nothing to wait for");
        let moment = Instant::now() + Duration::from_mins(1);
        lanes.finish(one, Outcome::NotBefore(moment));
        assert_eq!(rings.0.get(), 1);
        assert_eq!(lanes.next_or_ring(&bell).1, Some(moment));
    }

    #[test]
    fn a_bell_rings_once_for_an_absence() {
        let lanes = Lanes::default();
        let rings = Arc::new(Rings::default());
        let bell: Arc<dyn Bell> = Arc::clone(&rings) as _;
        let (one, other) = (lanes.open("one", LaneOptions::default()), lanes.open("other", LaneOptions::default()));
        assert!(lanes.next_or_ring(&bell).0.is_none());
        lanes.announce(one);
        lanes.announce(other);
        assert_eq!(rings.0.get(), 1);
        assert!(lanes.next_or_ring(&bell).0.is_some());
        assert!(lanes.next_or_ring(&bell).0.is_some());
        assert!(lanes.next_or_ring(&bell).0.is_none());
    }

    #[test]
    fn nothing_is_given_when_quiet_and_everybody_leaves_when_closed() {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.quiet();
        lanes.announce(lane);
        assert!(lanes.try_next().is_none());
        let worker = std::thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || lane_of(&lanes.next(&soon()))
        });
        wait_until_idle(&lanes, 1);
        lanes.close();
        assert_eq!(worker.join().expect("no panic"), "closed");
    }

    #[test]
    fn classes_get_jobs_by_their_weight() {
        let lanes = Lanes::default();
        let (heavy, light) = (lanes.add_class(3, None), lanes.add_class(1, None));
        for (owner, class) in [("heavy", heavy), ("heavy", heavy), ("light", light), ("light", light)] {
            let lane = lanes.open(owner, LaneOptions { class, ..LaneOptions::default() });
            lanes.announce(lane);
        }
        let mut heavies = 0;
        for _ in 0..40 {
            let Some(Next::Messages(id, owner, _)) = lanes.try_next() else { panic!("lanes are ready") };
            heavies += usize::from(owner == "heavy");
            lanes.finish(id, Outcome::MaybeMore);
        }
        assert_eq!(heavies, 30);
    }

    /// Lanes of one class with this limit, all of which have messages.
    fn limited(lanes: &Lanes, jobs_max: usize, count: usize) -> Vec<LaneId> {
        let class = lanes.add_class(1, Some(jobs_max));
        let open = |_| lanes.open("lane", LaneOptions { class, ..LaneOptions::default() });
        let ids: Vec<_> = (0..count).map(open).collect();
        ids.iter().for_each(|id| lanes.announce(*id));
        ids
    }

    #[test]
    fn of_a_class_with_a_limit_no_more_jobs_run() {
        let lanes = Lanes::default();
        limited(&lanes, 2, 3);
        lanes.announce(lanes.open("other", LaneOptions::default()));
        let mut begun = Vec::new();
        while let Some(Next::Messages(id, owner, _)) = lanes.try_next() {
            begun.push((id, owner));
        }
        let owners: Vec<_> = begun.iter().map(|(_, owner)| *owner).collect();
        assert_eq!(owners.iter().filter(|owner| **owner == "lane").count(), 2);
        assert!(owners.contains(&"other"), "another class is not held up");
        let (first, _) = begun.into_iter().find(|(_, owner)| *owner == "lane").expect("two run");
        lanes.finish(first, Outcome::Exhausted);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))), "the third takes its place");
        assert!(lanes.try_next().is_none());
    }

    #[test]
    fn a_hook_does_not_wait_for_the_jobs_of_a_full_class() {
        let lanes = Lanes::default();
        let ids = limited(&lanes, 1, 3);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        lanes.post_hook(ids[2], "revoked");
        assert!(matches!(lanes.try_next(), Some(Next::Hook(id, _, "revoked")) if id == ids[2]));
        lanes.finish(ids[2], Outcome::Exhausted);
        assert!(lanes.try_next().is_none(), "its messages wait");
        lanes.finish(ids[0], Outcome::Exhausted);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(id, ..)) if id == ids[1]));
    }

    #[test]
    fn hooks_that_follow_one_another_do_not_free_the_place_of_a_job() {
        let lanes = Lanes::default();
        let class = lanes.add_class(1, Some(1));
        let lane = lanes.open("lane", LaneOptions { class, ..LaneOptions::default() });
        lanes.announce(lane);
        lanes.post_hook(lane, "first");
        lanes.post_hook(lane, "second");
        for _ in 0..2 {
            assert!(matches!(lanes.try_next(), Some(Next::Hook(..))));
            lanes.finish(lane, Outcome::MaybeMore);
        }
        assert!(matches!(lanes.try_next(), Some(Next::Messages(_, "lane", _))));
        lanes.announce(lanes.open("other", LaneOptions { class, ..LaneOptions::default() }));
        assert!(lanes.try_next().is_none(), "one runs, however often its lane was in line");
    }

    #[test]
    fn a_tick_does_not_wait_for_the_jobs_of_a_full_class() {
        let lanes = Lanes::default();
        let class = lanes.add_class(1, Some(1));
        let tick = Some((Duration::from_millis(1), "tick"));
        lanes.announce(lanes.open("busy", LaneOptions { class, ..LaneOptions::default() }));
        assert!(matches!(lanes.try_next(), Some(Next::Messages(_, "busy", _))));
        lanes.announce(lanes.open("ticking", LaneOptions { class, tick, ..LaneOptions::default() }));
        assert!(matches!(lanes.next(&soon()), Next::Hook(_, "ticking", "tick")));
    }

    #[test]
    fn a_lane_that_is_closed_while_its_job_runs_frees_its_place_when_the_job_ends() {
        let lanes = Lanes::default();
        let ids = limited(&lanes, 1, 2);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        lanes.close_lane(ids[0]);
        assert!(lanes.try_next().is_none(), "it still runs");
        lanes.finish(ids[0], Outcome::Exhausted);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(id, ..)) if id == ids[1]));
    }

    #[test]
    fn an_exchange_keeps_the_limit() {
        let lanes = Lanes::default();
        let ids = limited(&lanes, 1, 1);
        let intake = lanes.open("intake", LaneOptions::default());
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        lanes.announce(intake);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(_, "intake", _))));
        let slot = lanes.open("slot", LaneOptions { class: ClassId::default(), ..LaneOptions::default() });
        assert!(matches!(lanes.exchange(intake, Outcome::Exhausted, slot), Some(Next::Messages(_, "slot", _))));
        lanes.announce(ids[0]);
        assert!(lanes.exchange(slot, Outcome::Exhausted, ids[0]).is_none(), "it runs");
        lanes.finish(ids[0], Outcome::Exhausted);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(id, ..)) if id == ids[0]));
    }

    #[test]
    fn with_a_limit_all_lanes_are_served_and_never_too_many_at_once() {
        use std::sync::atomic::AtomicUsize;
        let lanes = Arc::new(Lanes::default());
        let ids = limited(&lanes, 2, 8);
        let (running, most, jobs) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    while let Next::Messages(id, ..) = lanes.next(&soon()) {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        if jobs.fetch_add(1, Ordering::SeqCst) == 20_000 {
                            lanes.close();
                        }
                        lanes.finish(id, Outcome::MaybeMore);
                    }
                });
            }
            ids.iter().for_each(|id| lanes.announce(*id));
        });
        assert_eq!(most.into_inner(), 2);
        assert!(jobs.into_inner() > 20_000);
    }

    #[test]
    fn a_class_that_had_nothing_to_do_gets_no_more_than_its_share_afterwards() {
        let lanes = Lanes::default();
        let (one, other) = (lanes.add_class(1, None), lanes.add_class(1, None));
        let busy = lanes.open("busy", LaneOptions { class: one, ..LaneOptions::default() });
        lanes.announce(busy);
        for _ in 0..100 {
            let Some(Next::Messages(id, ..)) = lanes.try_next() else { panic!("it is ready") };
            lanes.finish(id, Outcome::MaybeMore);
        }
        lanes.announce(lanes.open("late", LaneOptions { class: other, ..LaneOptions::default() }));
        let mut seen = Vec::new();
        for _ in 0..4 {
            let Some(Next::Messages(id, owner, _)) = lanes.try_next() else { panic!("two are ready") };
            seen.push(owner);
            lanes.finish(id, Outcome::MaybeMore);
        }
        assert_eq!(seen.iter().filter(|owner| **owner == "late").count(), 2, "{seen:?}");
    }

    #[test]
    fn a_paused_lane_keeps_its_messages_and_runs_its_hooks() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.pause(lane);
        lanes.announce(lane);
        assert!(lanes.try_next().is_none());
        lanes.post_hook(lane, "hook");
        assert!(matches!(lanes.try_next(), Some(Next::Hook(_, _, "hook"))));
        lanes.finish(lane, Outcome::Exhausted);
        assert!(lanes.try_next().is_none());
        lanes.resume(lane);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
    }

    #[test]
    fn a_lane_that_waits_for_more_is_looked_at_when_more_comes_or_its_time_is_over() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        let moment = || Instant::now() + Duration::from_millis(20);
        lanes.announce(lane);
        assert_eq!(lane_of(&lanes.next(&soon())), "lane");
        lanes.finish(lane, Outcome::Until(moment()));
        assert!(lanes.try_next().is_none());
        lanes.announce(lane);
        assert!(matches!(lanes.try_next(), Some(Next::Messages(..))));
        let until = moment();
        lanes.finish(lane, Outcome::Until(until));
        assert_eq!(lane_of(&lanes.next(&soon())), "lane");
        lanes.finish(lane, Outcome::Exhausted);
    }

    #[test]
    fn a_tick_comes_again_and_again_until_the_lane_is_withdrawn() {
        let lanes = Lanes::default();
        let tick = Some((Duration::from_millis(5), "tick"));
        let lane = lanes.open("lane", LaneOptions { tick, ..LaneOptions::default() });
        for _ in 0..3 {
            assert!(matches!(lanes.next(&soon()), Next::Hook(_, "lane", "tick")));
            lanes.finish(lane, Outcome::Exhausted);
        }
        lanes.withdraw(lane);
        assert!(matches!(lanes.next(&Deadline::after(Some(Duration::from_millis(30)))), Next::TimedOut));
    }

    #[test]
    fn a_worker_goes_from_one_lane_to_another_without_anybody_being_woken() {
        let lanes = Lanes::default();
        let (one, other) = (lanes.open("one", LaneOptions::default()), lanes.open("other", LaneOptions::default()));
        lanes.announce(one);
        assert_eq!(lane_of(&lanes.try_next().expect("it is ready")), "one");
        assert!(matches!(lanes.exchange(one, Outcome::Exhausted, other), Some(Next::Messages(_, "other", _))));
        assert!(lanes.try_next().is_none());
        lanes.finish(other, Outcome::Exhausted);
        assert_eq!(lanes.counters().job_wakes.get(), 0);
    }

    #[test]
    fn a_lane_that_is_held_is_not_released_though_nobody_works_on_it() {
        let lanes = Arc::new(Lanes::default());
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.hold(lane);
        lanes.hold(lane);
        assert!(!lanes.wait_released(lane, &Arc::default(), &Deadline::after(Some(Duration::ZERO))));
        let other = std::thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || (0..2).for_each(|_| lanes.let_go(lane))
        });
        assert!(lanes.wait_released(lane, &Arc::default(), &soon()));
        other.join().expect("no panic");
    }

    #[test]
    fn a_lane_is_looked_at_when_its_time_has_come() {
        let lanes = Lanes::default();
        let lane = lanes.open("lane", LaneOptions::default());
        let moment = Instant::now() + Duration::from_millis(10);
        lanes.look_at(lane, moment);
        assert!(matches!(lanes.next(&soon()), Next::Messages(_, "lane", _)));
        assert!(Instant::now() >= moment);
    }

    #[test]
    fn dismissed_workers_end_and_the_others_go_on() {
        let lanes = Arc::new(Lanes::default());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let lanes = Arc::clone(&lanes);
                std::thread::spawn(move || lane_of(&lanes.next(&soon())))
            })
            .collect();
        wait_until_idle(&lanes, 3);
        lanes.dismiss(2);
        while lanes.census().2 > 1 {
            std::thread::yield_now();
        }
        let lane = lanes.open("lane", LaneOptions::default());
        lanes.announce(lane);
        let mut seen: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["closed", "closed", "lane"]);
    }
}
