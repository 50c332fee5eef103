//! Callers of the service, and the tasks that make calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use awoke_engine::clock::{self, Deadline};
use awoke_engine::kafka::ClientConfig;
use awoke_engine::rpc::{Call, Caller, Failure, Next, Request, Wanted};
use awoke_engine::wake::simulation::{JoinHandle, pass_time, random, spawn, trace};

use super::World;
use super::checks::{self, Outcome};
use super::service::{LIST, NAMES, QUOTE, WAIT};

/// A call in peace is answered within this time.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// The last rebalance is over after this time.
const REBALANCED_WITHIN: Duration = Duration::from_secs(10);
/// The time of a call in peace.
const PEACEFUL: Duration = Duration::from_mins(10);
const ATTEMPTS: usize = 3;

/// A caller, and its tasks.
pub struct Client {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    name: String,
    caller: Caller,
}

/// A request that may be made more than once.
#[derive(Clone)]
struct Plan {
    method: usize,
    timeout: Duration,
    key: Option<Vec<u8>>,
    idempotency_key: Option<Vec<u8>>,
    window: u64,
}

/// Returns the number of results of a stream.
pub const fn items_of(request: u64) -> u64 {
    request % 7
}

impl Client {
    pub fn start(world: &Arc<World>, number: u64) -> Self {
        let name = if random(2) == 0 { "web".to_owned() } else { format!("web{number}") };
        let service = &world.service;
        let caller = loop {
            let options = service.caller(&name);
            let events = Arc::clone(&service.events);
            let timeout = Duration::from_secs(10);
            match Caller::new(&service.config, &ClientConfig::new(), options, events, timeout) {
                Ok(caller) => break caller,
                Err(error) => trace(|| format!("no caller: {error}")),
            }
        };
        let shared = Arc::new(Shared { name, caller });
        let start = |_| {
            let (world, shared) = (Arc::clone(world), Arc::clone(&shared));
            spawn("caller", move || shared.make_calls(&world))
        };
        let tasks = Mutex::new((0..=random(4)).map(start).collect());
        Self { shared, tasks }
    }

    /// Waits until the tasks have made their calls.
    pub fn join(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.into_iter().for_each(|task| task.join().expect("a panic ends the simulation"));
    }

    /// Closes the caller while its tasks wait.
    pub fn close_soon(&self, world: &Arc<World>) -> JoinHandle<()> {
        let (world, shared) = (Arc::clone(world), Arc::clone(&self.shared));
        spawn("closing", move || shared.close(&world))
    }

    /// Makes calls to responders that live, without faults: each is answered.
    pub fn call_in_peace(&self, world: &World) {
        pass_time(REBALANCED_WITHIN);
        let is_closed = world.checks.is_closing(&self.shared.name);
        for method in [QUOTE, LIST, WAIT] {
            let timeout = PEACEFUL;
            let plan = Plan { method, timeout, key: None, idempotency_key: None, window: 1 + random(3) };
            let began = clock::now();
            let mut outcome = self.shared.attempt(world, &plan, false);
            let is_unavailable = match &outcome {
                // The lost connection is forgotten when a reply comes.
                Some(Outcome::Failed(Failure::Unavailable(_))) => world.checks.is_disconnected(),
                // Its partition was taken away before its offset was committed.
                Some(Outcome::Replied(_, body)) => body == b"unavailable",
                _ => false,
            };
            if is_unavailable {
                pass_time(Duration::from_secs(10));
                outcome = self.shared.attempt(world, &plan, false);
            }
            match outcome {
                None | Some(Outcome::Failed(Failure::Closed)) if is_closed => return,
                Some(Outcome::Replied(kind, body)) if clock::since(began) < ANSWERED_WITHIN => {
                    let text = String::from_utf8_lossy(&body);
                    assert_ne!(kind, awoke_engine::rpc::ReplyKind::Error, "a call in peace fails: {text}");
                }
                outcome => panic!("a call in peace is not answered: {outcome:?}"),
            }
        }
    }

    pub fn end(self, world: &World) {
        pass_time(Duration::from_secs(25));
        assert_eq!(self.shared.caller.open_calls(), 0, "a call has not ended");
        self.shared.close(world);
    }
}

impl Shared {
    fn close(&self, world: &World) {
        trace(|| format!("the caller {} closes", self.name));
        world.checks.note_closing(&self.name);
        let wait = world.checks.wait("a caller's close", Duration::from_secs(3), None);
        self.caller.close(Duration::from_secs(1)).expect("this process");
        drop(wait);
        assert_eq!(self.caller.open_calls(), 0, "a call is open after the close");
    }

    fn make_calls(self: &Arc<Self>, world: &Arc<World>) {
        let pause_us = [0, 20_000, 300_000][random(3) as usize];
        for _ in 0..=random(10) {
            pass_time(Duration::from_micros(random(pause_us)));
            let method = [QUOTE, QUOTE, WAIT, LIST][random(4) as usize];
            let timeout = Duration::from_millis([50, 500, 3_000, 20_000][random(4) as usize]);
            let number = |limit| random(limit).to_le_bytes().to_vec();
            let key = (random(2) == 0).then(|| number(3));
            let idempotency_key = (method != LIST && random(2) == 0).then(|| number(3));
            let plan = Plan { method, timeout, key, idempotency_key, window: 1 + random(4) };
            match random(8) {
                0 => self.cast(world, &plan),
                1 => self.abandon(world, &plan),
                2 => self.share(world, &plan),
                _ => self.call(world, &plan),
            }
        }
    }

    /// Makes a call, and again if it may help.
    fn call(&self, world: &World, plan: &Plan) {
        for _ in 0..ATTEMPTS {
            let is_retried = match self.attempt(world, plan, random(8) == 0) {
                Some(Outcome::Failed(Failure::Unavailable(_))) => plan.idempotency_key.is_some(),
                Some(Outcome::Replied(awoke_engine::rpc::ReplyKind::Error, code)) => {
                    code == b"queue_full" || (code == b"unavailable" && plan.idempotency_key.is_some())
                }
                _ => false,
            };
            if !is_retried {
                return;
            }
            pass_time(Duration::from_millis(50 + random(200)));
        }
    }

    /// Makes one attempt at a call, and waits for its end. Returns `None` if it was not made.
    fn attempt(&self, world: &World, plan: &Plan, cancels: bool) -> Option<Outcome> {
        let (number, call) = self.begin(world, plan)?;
        let cancel_after = if cancels { Duration::from_millis(random(600)) } else { Duration::MAX };
        Some(self.finish(world, number, &call, cancel_after))
    }

    /// Makes a call that no task waits for.
    fn abandon(&self, world: &World, plan: &Plan) {
        drop(self.begin(world, plan));
    }

    /// Makes a call whose reply two tasks wait for.
    fn share(self: &Arc<Self>, world: &Arc<World>, plan: &Plan) {
        let Some((number, call)) = self.begin(world, plan) else { return };
        let other = spawn("another caller", {
            let (shared, world, call) = (Arc::clone(self), Arc::clone(world), Arc::clone(&call));
            move || {
                let limit = clock::since(call.until()).max(call.until().saturating_duration_since(clock::now()));
                let wait = world.checks.wait("another wait for a reply", limit, Some(&call));
                shared.caller.wait(&call, &Deadline::NEVER);
                drop(wait);
            }
        });
        self.finish(world, number, &call, Duration::MAX);
        other.join().expect("a panic ends the simulation");
    }

    fn cast(&self, world: &World, plan: &Plan) {
        if plan.method == LIST {
            return;
        }
        let number = self.add(world, plan, true);
        let sent = self.caller.cast(&plan.request(&number.to_le_bytes()));
        trace(|| format!("cast {number}: {:?}", sent.map(drop)));
    }

    fn add(&self, world: &World, plan: &Plan, is_cast: bool) -> u64 {
        world.checks.add(checks::Request {
            caller: self.name.clone(),
            method: plan.method,
            key: plan.idempotency_key.clone(),
            began: clock::now(),
            budget: plan.timeout,
            is_cast,
        })
    }

    /// Begins a call. Returns `None` if it was not made.
    fn begin(&self, world: &World, plan: &Plan) -> Option<(u64, Arc<Call>)> {
        let number = self.add(world, plan, false);
        let body = number.to_le_bytes();
        let request = plan.request(&body);
        let wanted = if plan.method == LIST { Wanted::Stream(plan.window) } else { Wanted::One };
        let wait = world.checks.wait("a wait for room", plan.timeout, None);
        let begun = if plan.timeout < PEACEFUL && random(4) == 0 {
            self.caller.try_call(&request, wanted)
        } else {
            self.caller.call(&request, wanted).map(Some)
        };
        drop(wait);
        let call = match begun {
            Ok(call) => call?,
            Err(error) => {
                trace(|| format!("request {number} is not made: {error}"));
                return None;
            }
        };
        world.checks.begun(number, &call);
        Some((number, call))
    }

    /// Takes all replies of a call, cancels it after a time, and returns how it has ended.
    fn finish(&self, world: &World, number: u64, call: &Arc<Call>, cancel_after: Duration) -> Outcome {
        let cancel_at = clock::now().checked_add(cancel_after);
        let (mut items, mut last) = (0, None);
        let outcome = loop {
            match self.caller.try_next(call).expect("room for credit, or none is due") {
                Some(Next::Reply(reply)) if reply.kind == awoke_engine::rpc::ReplyKind::Item => {
                    world.checks.check_item(number, items, &reply.body);
                    items += 1;
                }
                Some(Next::Reply(reply)) => {
                    assert!(last.is_none(), "two replies to one call");
                    last = Some(Outcome::Replied(reply.kind, reply.body));
                }
                Some(Next::End) => break last.take().unwrap_or_else(|| self.end_of_stream(number, items)),
                Some(Next::Failed(failure)) => break Outcome::Failed(failure),
                None => self.wait(world, number, call, cancel_at),
            }
        };
        let again = self.caller.try_next(call).expect("the call has ended");
        assert!(matches!(again, Some(Next::End | Next::Failed(_))), "a call ends twice: {again:?}");
        world.checks.ended(number, call, &outcome);
        outcome
    }

    fn end_of_stream(&self, number: u64, items: u64) -> Outcome {
        assert_eq!(items, items_of(number), "a stream ends early: request {number} of {}", self.name);
        Outcome::Replied(awoke_engine::rpc::ReplyKind::End, Vec::new())
    }

    fn wait(&self, world: &World, number: u64, call: &Arc<Call>, cancel_at: Option<std::time::Instant>) {
        let until = cancel_at.map_or(call.until(), |at| at.min(call.until()));
        let limit = until.saturating_duration_since(clock::now());
        let wait = world.checks.wait("a wait for a reply", limit, Some(call));
        self.caller.wait(call, &Deadline::NEVER.or_earlier(cancel_at));
        drop(wait);
        if cancel_at.is_some_and(|at| clock::now() >= at) && !call.is_ready() {
            trace(|| format!("cancel request {number}"));
            world.checks.note_cancelled(number);
            drop(self.caller.cancel(call));
        }
    }
}

impl Plan {
    fn request<'a>(&'a self, body: &'a [u8]) -> Request<'a> {
        Request {
            method: NAMES[self.method],
            body,
            key: self.key.as_deref(),
            timeout: self.timeout,
            idempotency_key: self.idempotency_key.as_deref(),
            headers: &[],
        }
    }
}
