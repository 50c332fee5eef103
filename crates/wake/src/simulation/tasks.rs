//! The tasks, the clock and the random numbers of the simulation that runs on this thread.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Once;
use std::time::{Duration, Instant};

use generator::{Generator, Gn};

use super::JoinHandle;

/// The stack of a task in machine words: 256 KiB.
const STACK_WORDS: usize = 0x8000;
/// A step takes up to this time.
const STEP_MAX_NS: u64 = 20_000;

/// A task that looks at the clock was held up for up to this time, at one of this number of looks.
const HELD_UP_ONE_IN: u64 = 64;
const HELD_UP_MAX_NS: u64 = 20_000_000;

/// A thread that is slow waits at most this long before it runs.
const SLOW_MAX: Duration = Duration::from_millis(50);

/// A task of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(usize);

/// The settings of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Decides everything that happens.
    pub seed: u64,
    /// A run with more steps has failed: its tasks wake one another for ever.
    pub steps_max: u64,
    /// One in this number of steps goes to the next moment although tasks are ready: threads are slow.
    pub slow_one_in: u64,
    /// Keeps a line for each step.
    pub is_traced: bool,
}

/// Why a run failed.
#[derive(Debug)]
pub struct Failure {
    /// The reason in words.
    pub reason: String,
    /// The steps before it, if the run was traced.
    pub trace: Vec<String>,
}

enum State {
    Ready,
    /// Until it is woken, or this moment comes.
    Blocked(Option<Instant>),
    Ended,
}

struct Task {
    name: String,
    state: State,
    body: Option<Generator<'static, (), ()>>,
    /// Tasks that wait for its end.
    joining: Vec<TaskId>,
    /// Its values of [`super::LocalKey`], by the address of the key.
    locals: BTreeMap<usize, Rc<dyn Any>>,
}

struct Runtime {
    run: Run,
    random: u64,
    start: Instant,
    now: Instant,
    tasks: Vec<Task>,
    current: TaskId,
    steps: u64,
    trace: Vec<String>,
    failure: Option<String>,
    /// Called after each step.
    check: Option<Rc<dyn Fn()>>,
    is_in_task: bool,
}

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

fn with<T>(act: impl FnOnce(&mut Runtime) -> T) -> T {
    RUNTIME.with_borrow_mut(|runtime| act(runtime.as_mut().expect("a simulation runs on this thread")))
}

impl Runtime {
    fn new(run: Run) -> Self {
        let start = Instant::now();
        let random = run.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let tasks = Vec::new();
        Self {
            run,
            random,
            start,
            now: start,
            tasks,
            current: TaskId(0),
            steps: 0,
            trace: Vec::new(),
            failure: None,
            check: None,
            is_in_task: false,
        }
    }

    /// Returns a number below `limit` (xorshift).
    const fn random(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % if limit == 0 { 1 } else { limit }
    }

    fn earliest(&self) -> Option<Instant> {
        let moment = |task: &Task| if let State::Blocked(until) = task.state { until } else { None };
        self.tasks.iter().filter_map(moment).min()
    }

    fn ready(&self) -> impl Iterator<Item = TaskId> {
        let now = self.now;
        let is_ready = move |task: &Task| match task.state {
            State::Ready => true,
            State::Blocked(until) => until.is_some_and(|until| until <= now),
            State::Ended => false,
        };
        self.tasks.iter().enumerate().filter(move |(_, task)| is_ready(task)).map(|(index, _)| TaskId(index))
    }

    /// Picks the next task, and moves the clock; `None` when all have ended.
    fn pick(&mut self) -> Result<Option<TaskId>, String> {
        self.steps += 1;
        let took_ns = 1 + self.random(STEP_MAX_NS);
        self.now += Duration::from_nanos(took_ns);
        let is_slow = self.run.slow_one_in > 0 && self.random(self.run.slow_one_in) == 0;
        let count = self.ready().count() as u64;
        if count == 0 || is_slow {
            match self.earliest() {
                Some(moment) if count > 0 => self.now = self.now.max(moment.min(self.now + SLOW_MAX)),
                Some(moment) => self.now = self.now.max(moment),
                None if count == 0 => return self.end(),
                None => (),
            }
        }
        if self.steps > self.run.steps_max {
            return Err(format!("no end after {} steps: {}", self.steps, self.waiting()));
        }
        let count = self.ready().count() as u64;
        let place = self.random(count) as usize;
        Ok(self.ready().nth(place))
    }

    fn end(&self) -> Result<Option<TaskId>, String> {
        if self.tasks.iter().all(|task| matches!(task.state, State::Ended)) {
            return Ok(None);
        }
        Err(format!("a wake-up was lost: for ever {}", self.waiting()))
    }

    fn waiting(&self) -> String {
        let name = |task: &Task| match task.state {
            State::Ended => None,
            State::Ready => Some(format!("{} (ready)", task.name)),
            State::Blocked(None) => Some(task.name.clone()),
            State::Blocked(Some(until)) => Some(format!("{} until {:?}", task.name, until - self.start)),
        };
        format!("wait {}", self.tasks.iter().filter_map(name).collect::<Vec<_>>().join(", "))
    }

    /// Ends the present task, and wakes those that wait for it.
    fn note_ended(&mut self, task: TaskId) {
        let ended = &mut self.tasks[task.0];
        (ended.state, ended.body) = (State::Ended, None);
        for joining in std::mem::take(&mut ended.joining) {
            self.tasks[joining.0].state = State::Ready;
        }
    }
}

/// Runs `main` as the first task, and all tasks that it spawns, until the last has ended. Returns the number of steps.
///
/// # Errors
/// A task panicked, a wake-up was lost, or there was no end. The tasks are not unwound then: their memory stays, and
/// the thread is good for no other run.
pub fn run(settings: Run, main: impl FnOnce() + Send + 'static) -> Result<u64, Failure> {
    end_runs_by_panics();
    RUNTIME.set(Some(Runtime::new(settings)));
    spawn("main", main);
    let outcome = drive();
    let mut runtime = RUNTIME.take().expect("it was set above");
    let steps = runtime.steps;
    outcome.map(|()| steps).map_err(|reason| {
        let trace = std::mem::take(&mut runtime.trace);
        std::mem::forget(runtime);
        Failure { reason, trace }
    })
}

fn drive() -> Result<(), String> {
    while let Some(task) = with(Runtime::pick)? {
        let mut body = with(|runtime| {
            runtime.current = task;
            let picked = &mut runtime.tasks[task.0];
            picked.state = State::Ready;
            picked.body.take().expect("a task that has not ended has a body")
        });
        with(|runtime| runtime.is_in_task = true);
        // The hook has noted a panic already.
        let resumed = catch_unwind(AssertUnwindSafe(|| {
            body.resume();
        }));
        with(|runtime| runtime.is_in_task = false);
        if let Some(reason) = with(|runtime| runtime.failure.take()) {
            std::mem::forget((body, resumed));
            return Err(reason);
        }
        if body.is_done() {
            with(|runtime| runtime.note_ended(task));
        } else {
            with(|runtime| runtime.tasks[task.0].body = Some(body));
        }
        check()?;
    }
    Ok(())
}

/// Calls the function of `check_each_step`.
fn check() -> Result<(), String> {
    let Some(check) = with(|runtime| runtime.check.clone()) else { return Ok(()) };
    with(|runtime| runtime.is_in_task = true);
    let outcome = catch_unwind(AssertUnwindSafe(|| check()));
    with(|runtime| runtime.is_in_task = false);
    match with(|runtime| runtime.failure.take()) {
        None => Ok(()),
        Some(reason) => {
            std::mem::forget(outcome);
            Err(reason)
        }
    }
}

/// Has a panic of a task end its run: at the latest when something that is unwound waits for another task.
fn end_runs_by_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let otherwise = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_in_task() {
                return otherwise(panic);
            }
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let text = panic.payload_as_str().unwrap_or("a panic");
            with(|runtime| {
                let waiting = runtime.waiting();
                runtime.failure.get_or_insert(format!("{text} ({place}); {waiting}"));
            });
        }));
    });
}

/// Starts a task.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let body = Gn::new_opt(STACK_WORDS, body);
    let task = with(|runtime| {
        let name = name.to_owned();
        runtime.tasks.push(Task {
            name,
            state: State::Ready,
            body: Some(body),
            joining: Vec::new(),
            locals: BTreeMap::new(),
        });
        TaskId(runtime.tasks.len() - 1)
    });
    JoinHandle::new(task)
}

/// Has `check` called after each step, outside of all tasks. Its panic ends the run.
pub fn check_each_step(check: impl Fn() + 'static) {
    with(|runtime| runtime.check = Some(Rc::new(check)));
}

/// Returns whether a simulation runs on this thread.
pub fn is_running() -> bool {
    RUNTIME.with_borrow(Option::is_some)
}

fn is_in_task() -> bool {
    RUNTIME
        .with(|runtime| runtime.try_borrow().is_ok_and(|runtime| runtime.as_ref().is_some_and(|each| each.is_in_task)))
}

/// Leaves the present task until it is picked again.
fn switch() {
    #[allow(deprecated)] // The scope that is to be used instead is not at hand where a task waits.
    generator::yield_with(());
}

/// Returns the present task.
pub fn current() -> TaskId {
    with(|runtime| runtime.current)
}

/// Blocks the present task until it is woken, or this moment comes.
pub fn block(until: Option<Instant>) {
    with(|runtime| {
        let current = runtime.current;
        runtime.tasks[current.0].state = State::Blocked(until);
    });
    switch();
}

/// Wakes a blocked task.
pub fn wake(task: TaskId) {
    with(|runtime| {
        let woken = &mut runtime.tasks[task.0].state;
        if matches!(woken, State::Blocked(_)) {
            *woken = State::Ready;
        }
    });
}

/// Lets other tasks run.
pub fn pause() {
    switch();
}

/// Blocks the present task for a time.
pub fn pass_time(time: Duration) {
    let until = now() + time;
    while now() < until {
        block(Some(until));
    }
}

/// Returns the moment of the simulation. A task may be held up before it looks: then it is a later one.
pub fn now() -> Instant {
    with(|runtime| {
        if runtime.is_in_task && runtime.random(HELD_UP_ONE_IN) == 0 {
            let held_up_ns = runtime.random(HELD_UP_MAX_NS);
            runtime.now += Duration::from_nanos(held_up_ns);
        }
        runtime.now
    })
}

/// Returns the time since the start of the simulation.
pub fn since_start() -> Duration {
    with(|runtime| runtime.now - runtime.start)
}

/// Returns a number below `limit`, which the seed decides.
pub fn random(limit: u64) -> u64 {
    with(|runtime| runtime.random(limit))
}

/// Keeps a line of the trace, if the run is traced.
pub fn trace(line: impl FnOnce() -> String) {
    if with(|runtime| runtime.run.is_traced) {
        let line = line();
        with(|runtime| {
            let (time, name) = (runtime.now - runtime.start, &runtime.tasks[runtime.current.0].name);
            let line = format!("{:>12.6} s  {name}: {line}", time.as_secs_f64());
            runtime.trace.push(line);
        });
    }
}

/// Returns the trace up to now.
pub fn traced() -> Vec<String> {
    with(|runtime| runtime.trace.clone())
}

/// Returns a value of the present task, made when it is asked for first.
pub(super) fn local(key: usize, make: impl FnOnce() -> Rc<dyn Any>) -> Rc<dyn Any> {
    with(|runtime| {
        let current = runtime.current;
        Rc::clone(runtime.tasks[current.0].locals.entry(key).or_insert_with(make))
    })
}

/// Has the present task wait until another one has ended.
pub(super) fn join(task: TaskId) {
    while !has_ended(task) {
        with(|runtime| {
            let current = runtime.current;
            runtime.tasks[task.0].joining.push(current);
        });
        block(None);
    }
}

/// Returns whether a task has ended.
pub(super) fn has_ended(task: TaskId) -> bool {
    with(|runtime| matches!(runtime.tasks[task.0].state, State::Ended))
}
