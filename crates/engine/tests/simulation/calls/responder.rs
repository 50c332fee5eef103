//! A responder of the service: a member of its group, admission control, and the threads and tasks that run methods.
//!
//! It does what `awoke.rpc.responder` does, in the same order.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use awoke_engine::Error;
use awoke_engine::clock::Deadline;
use awoke_engine::consume::{GroupMember, PartitionScheduler};
use awoke_engine::produce::{DeliveryHandle, Producer, ProducerOptions, Record};
use awoke_engine::rpc::{Admission, CallRef, IncomingCall, NotBegun, NotExecuted, Received, RejectReason, ReplyKind};
use awoke_engine::wake::simulation::{JoinHandle, pass_time, random, spawn, trace};

use super::World;
use super::checks::Execution;
use super::service::{LIST, REPLIES, WAIT};
use crate::handlers::take_time;

/// A call whose reply failed is executed again after this time.
const RETRY: Duration = Duration::from_millis(200);
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A call of the service, as admission holds it.
#[derive(Clone, Debug)]
pub struct Held(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    call: IncomingCall,
    /// The number that its caller gave it.
    request: u64,
    last: Mutex<Option<Arc<DeliveryHandle>>>,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl CallRef for Held {
    fn call(&self) -> &IncomingCall {
        &self.0.call
    }
}

/// The last reply of a call.
#[derive(Clone)]
struct Answer {
    kind: ReplyKind,
    body: Vec<u8>,
    code: Option<&'static str>,
    /// Waiting duplicates get it, too.
    is_shared: bool,
}

/// The partition of a stream is given back: no more credit comes here.
struct Withdrawn;

fn error(code: &'static str, is_shared: bool) -> Answer {
    Answer { kind: ReplyKind::Error, body: code.as_bytes().to_vec(), code: Some(code), is_shared }
}

/// A responder of the service.
pub struct Responder {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    world: Arc<World>,
    number: u64,
    admission: Admission<Held>,
    scheduler: Arc<PartitionScheduler>,
    producer: Producer,
    member: OnceLock<Arc<GroupMember>>,
}

impl Responder {
    pub fn start(world: &Arc<World>) -> Self {
        let service = &world.service;
        let events = || Arc::clone(&service.events);
        let admission = Admission::new(service.options.clone(), service.methods.clone(), "shop", events());
        admission.set_reply_topics([(REPLIES.to_owned(), service.replies.len() as i32)]);
        let producer = Producer::new(&service.config, ProducerOptions::for_calls(), events());
        let shared = Arc::new(Shared {
            world: Arc::clone(world),
            number: world.checks.add_responder(),
            admission,
            scheduler: Arc::new(PartitionScheduler::default()),
            producer: producer.expect("the settings are right"),
            member: OnceLock::new(),
        });
        trace(|| format!("responder {} starts", shared.number));
        let start = |_| {
            let shared = Arc::clone(&shared);
            spawn("responder", move || shared.run())
        };
        let threads = (0..=service.options.threads).map(start).collect();
        let routes = vec![service.route(&shared.scheduler)];
        let member = GroupMember::join(&service.config, routes, service.group(), None, events());
        drop(shared.member.set(Arc::new(member.expect("the settings are right"))));
        Self { shared, threads }
    }

    /// Returns whether it has no call.
    pub fn is_idle(&self) -> bool {
        self.shared.admission.counts() == (0, 0)
    }

    /// Leaves the group, and ends.
    pub fn end(self, world: &World) {
        trace(|| format!("responder {} ends", self.shared.number));
        let wait = world.checks.wait("a responder's close", Duration::from_mins(1), None);
        let member = self.shared.member.get().expect("it was set when it started");
        let is_closed = member.close(Some(Duration::from_millis(random(5_000)))).expect("this process");
        assert!(is_closed, "the member's thread did not end");
        self.shared.scheduler.close();
        self.threads.into_iter().for_each(|thread| thread.join().expect("a panic ends the simulation"));
        drop(self.shared.producer.close(Some(Duration::from_secs(1))));
        drop(wait);
    }
}

impl Shared {
    /// A thread of the responder.
    fn run(self: &Arc<Self>) {
        loop {
            let work = self.scheduler.next_work(&Deadline::NEVER);
            let received = self.admission.receive_work::<Infallible>(work, |call, (batch, index)| {
                let value = batch.message(index).value().unwrap_or_default();
                let request = u64::from_le_bytes(value.try_into().expect("the number of a request"));
                Ok(Held(Arc::new(Inner { call, request, last: Mutex::default() })))
            });
            self.check_counts();
            match received.expect("it can't fail") {
                Received::Call(call) => match call.call().not_executed() {
                    Some(reason) => self.end_not_executed(&call, reason),
                    None => self.execute_all(call),
                },
                Received::Cancelled(call) => trace(|| format!("request {} is cancelled", call.0.request)),
                Received::Queued(_) | Received::Nothing => (),
                Received::Closed => return,
            }
        }
    }

    fn check_counts(&self) {
        let (options, (running, waiting)) = (&self.world.service.options, self.admission.counts());
        assert!(running <= options.threads + options.tasks, "{running} calls run at once");
        assert!(waiting <= options.waiting_max, "{waiting} calls wait");
    }

    /// Executes a call, and those that get its place after it.
    fn execute_all(self: &Arc<Self>, call: Held) {
        let mut next = Some(call);
        while let Some(call) = next {
            let method = call.call().method_number().expect("it has a place");
            self.world.checks.take_place(self.number, method);
            if self.world.service.methods[method].is_async {
                call.call().leave_slot(true);
                let shared = Arc::clone(self);
                spawn("a responder's task", move || {
                    let next = shared.execute(&call);
                    next.into_iter().for_each(|next| shared.execute_all(next));
                });
                return;
            }
            next = self.execute(&call);
        }
    }

    /// Executes a call that has a place. Returns the call that gets the place.
    fn execute(&self, call: &Held) -> Option<Held> {
        match call.call().begin() {
            Err(NotBegun::Fenced) => self.give_back(call, Duration::ZERO),
            Err(NotBegun::Rejected(reason)) => self.reject(call, reason),
            Ok(()) if self.world.service.is_at_most_once && !self.commit(call) => {
                self.finish(call, error("unavailable", true));
            }
            Ok(()) => match self.call_method(call) {
                Some(answer) => self.finish(call, answer),
                None => self.give_back(call, Duration::ZERO),
            },
        }
        self.world.checks.leave_place(self.number, call.call().method_number().expect("it had a place"));
        self.admission.release(call)
    }

    /// Commits the offset of a call, which is then not executed again. Returns whether it may be executed now.
    fn commit(&self, call: &Held) -> bool {
        let Some(mut job) = call.call().take_job() else { return false };
        let Some(partition) = job.partition().map(Arc::clone) else { return false };
        let is_stored = job.complete().is_ok();
        let member = self.member.get().expect("it receives calls");
        let committed = member.commit().ok().and_then(|commit| commit.wait(&Deadline::after(Some(COMMIT_TIMEOUT))));
        // The offset may have been dropped with the partition, and not committed.
        is_stored && matches!(committed, Some(Ok(()))) && partition.check_current().is_ok()
    }

    /// Returns the answer of a method; `None` if the next owner of the partition executes the call.
    fn call_method(&self, call: &Held) -> Option<Answer> {
        let execution = self.world.checks.begin(self.number, call.0.request);
        call.call().method_began();
        let method = call.call().method_number();
        let answer = match method {
            Some(LIST) => match self.send_all(call, &execution) {
                Err(Withdrawn) if self.world.service.is_at_most_once => Some(error("unavailable", false)),
                Err(Withdrawn) => {
                    call.call().method_ended();
                    self.world.checks.end(&execution, false);
                    return None;
                }
                Ok(answer) => answer,
            },
            Some(WAIT) => {
                let wait = call.call().deadline(Some(Duration::from_millis(random(3_000))));
                let _ = call.call().cancelled().wait(&wait);
                None
            }
            _ if random(4) == 0 => {
                pass_time(Duration::from_millis(random(500)));
                None
            }
            _ => {
                take_time();
                None
            }
        };
        call.call().method_ended();
        let answer = answer.unwrap_or_else(|| match method {
            _ if self.world.service.fails() => error("internal", true),
            Some(LIST) => Answer { kind: ReplyKind::End, body: Vec::new(), code: None, is_shared: true },
            _ => Answer { kind: ReplyKind::Result, body: execution.body(0), code: None, is_shared: true },
        });
        self.world.checks.end(&execution, answer.code.is_none() && !call.call().cancelled().is_done());
        Some(answer)
    }

    /// Sends the results of a stream as fast as its caller takes them. Returns the error that ends it.
    ///
    /// # Errors
    /// The partition is given back while it waits for credit.
    fn send_all(&self, call: &Held, execution: &Execution) -> Result<Option<Answer>, Withdrawn> {
        let (credit, _) = call.call().credit().expect("a stream");
        for place in 0..super::callers::items_of(call.0.request) {
            take_time();
            while !credit.try_take() && !call.call().is_cancelled() {
                if credit.is_withdrawn() {
                    return Err(Withdrawn);
                }
                let limit = Duration::try_from_secs_f64(call.call().remaining_s()).unwrap_or_default();
                let wait = self.world.checks.wait("a wait for credit", limit, None);
                credit.wait(&call.call().deadline(None));
                drop(wait);
            }
            if call.call().is_cancelled() {
                return Ok(Some(error("deadline_exceeded", false)));
            }
            if self.send(call, ReplyKind::Item, &execution.body(place), None).is_err() {
                return Ok(Some(error("internal", true)));
            }
        }
        Ok(None)
    }

    fn end_not_executed(&self, call: &Held, reason: NotExecuted) {
        match reason {
            NotExecuted::Rejected(reason) => self.reject(call, reason),
            NotExecuted::Invalid(invalid) => panic!("a request is refused: {invalid:?}"),
            NotExecuted::Cached(cached) => {
                let body = cached.body.clone();
                self.answer(call, &Answer { kind: cached.kind, body, code: None, is_shared: true });
            }
        }
    }

    /// Tells the caller of a call why it is not executed. Its waiting duplicates are executed.
    fn reject(&self, call: &Held, reason: RejectReason) {
        trace(|| format!("request {} is rejected: {}", call.0.request, reason.name()));
        self.world.checks.note_rejected(call.0.request);
        self.finish(call, error(reason.name(), false));
    }

    /// Gives a call and its waiting duplicates back: the partition's owner executes them.
    fn give_back(&self, call: &Held, delay: Duration) {
        call.call().give_back(delay);
        for each in self.admission.end(call, None, b"") {
            each.call().give_back(delay);
        }
    }

    /// Sends the last reply of a call, then ends its job. Waiting duplicates get the reply, too, or are executed.
    fn finish(&self, call: &Held, mut answer: Answer) {
        if call.call().cancelled().is_done() && answer.code != Some("cancelled") {
            answer = error("cancelled", false);
        }
        self.answer(call, &answer);
        let kept = if answer.is_shared && answer.code.is_none() { Some(answer.kind) } else { None };
        for each in self.admission.end(call, kept, &answer.body) {
            if answer.is_shared {
                self.answer(&each, &answer);
            } else {
                each.call().give_back(Duration::ZERO);
            }
        }
    }

    fn answer(&self, call: &Held, answer: &Answer) {
        match self.send(call, answer.kind, &answer.body, answer.code) {
            Ok(()) => {
                let last = call.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                call.call().settle(last.as_ref(), RETRY);
            }
            Err(error) => {
                trace(|| format!("the reply to request {} could not be sent: {error}", call.0.request));
                call.call().give_back(RETRY);
            }
        }
    }

    fn send(&self, call: &Held, kind: ReplyKind, body: &[u8], code: Option<&str>) -> Result<(), Error> {
        let Some((topic, partition)) = call.call().address(kind.name()) else { return Ok(()) };
        let sent = call.call().with_reply_headers(kind.name(), body, code, |headers| {
            let record = Record { value: Some(body), partition: Some(partition), headers, ..Record::default() };
            self.producer.produce(topic, &record, &Deadline::after(Some(COMMIT_TIMEOUT)))
        })?;
        *call.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
        Ok(())
    }
}
