//! Makes calls: sends their requests, and ends them when a request can't be delivered.
//!
//! A call takes this way: room for it → `calls`, under an id that can't be guessed → the request, through a
//! producer without linger → a responder → `replies` → `Call`. It is added to `calls` before its request is sent,
//! and removed when it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::call::{Call, Failure, Next, Wanted};
use super::calls::{CallCounters, Calls};
use super::random_ids::RandomIds;
use super::replies::{Names, Replies};
use super::request::{CallerOptions, Header, Request};
use super::waiting::Waiting;
use crate::clock::{self, Deadline};
use crate::events::EventBox;
use crate::fork_guard::Birthplace;
use crate::kafka::{ClientConfig, TopicPartition};
use crate::produce::{DeliveryHandle, Producer, ProducerOptions};
use crate::rpc::protocol::{self, CallId};
use crate::wake::{Listener, OwnThread, Parker, ServingWait, Tokens, Waker};
use crate::{Error, Result};

/// Calls methods of a service. Usable from any number of threads.
pub struct Caller {
    inner: Arc<Inner>,
    thread: Mutex<Option<OwnThread>>,
}

/// Calls whose requests are not acknowledged yet, with the delivery of each.
type Unacknowledged = HashMap<u64, (Arc<Call>, Arc<DeliveryHandle>)>;

#[derive(Debug)]
struct Inner {
    options: CallerOptions,
    /// The caller's part of the ids of its calls.
    number: u64,
    /// Source of the calls' own parts.
    ids: RandomIds,
    producer: Sender,
    replies: Arc<Replies>,
    calls: Arc<Calls>,
    /// Number of partitions of the topic of requests.
    partitions: usize,
    sent: Mutex<Unacknowledged>,
}

struct Sender(Producer);

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}

impl Caller {
    /// Finds the end of the caller's partition of the reply topic: from here on no reply can be missed. Blocks the
    /// calling thread.
    pub fn new(
        producer_config: &ClientConfig,
        consumer_config: &ClientConfig,
        options: CallerOptions,
        events: Arc<EventBox>,
        timeout: Duration,
    ) -> Result<Self> {
        let deadline = Deadline::after(Some(timeout));
        let ids = RandomIds::default();
        let number = ids.draw()?;
        let calls =
            Arc::new(Calls::new(options.calls_max, options.bytes_max, options.reply_bytes_max, options.key.clone()));
        let names = Names {
            caller: number,
            group: options.group.clone(),
            calls_topic: options.calls_topic.clone(),
            replies_topic: options.replies_topic.clone(),
        };
        let (replies, partitions) =
            Replies::new(consumer_config, Arc::clone(&events), names, Arc::clone(&calls), &deadline)?;
        let producer = Sender(Producer::new(producer_config, ProducerOptions::for_calls(), events)?);
        let thread = OwnThread::start("awoke-replies", "start the replies' thread", {
            let replies = Arc::clone(&replies);
            move || replies.run()
        })?;
        let inner = Inner { options, number, ids, producer, replies, calls, partitions, sent: Mutex::default() };
        Ok(Self { inner: Arc::new(inner), thread: Mutex::new(Some(thread)) })
    }

    /// Makes a call if there is room for it; returns `None` if there is none. Does not block.
    pub fn try_call(&self, request: &Request<'_>, wanted: Wanted) -> Result<Option<Arc<Call>>> {
        self.inner.producer.0.check_process()?;
        if !self.inner.calls.try_acquire(request.size_bytes())? {
            return Ok(None);
        }
        self.inner.begin(request, wanted, request.timeout, false)
    }

    /// Makes a call, waiting for room. Blocks the calling thread while as many calls are under way as may be.
    ///
    /// # Errors
    /// [`Error::QueueFull`]: there was no room in time; those of [`Producer::produce`]. The call was not made then.
    pub fn call(&self, request: &Request<'_>, wanted: Wanted) -> Result<Arc<Call>> {
        self.inner.producer.0.check_process()?;
        let deadline = Deadline::after(Some(request.timeout));
        self.inner.calls.acquire(request.size_bytes(), &deadline)?;
        let left = deadline.remaining().unwrap_or(request.timeout);
        let begun = self.inner.begin(request, wanted, left, true)?;
        begun.ok_or(Error::Closed { what: "caller" }) // Impossible: it has waited for room.
    }

    /// Sends a request without a reply. Blocks the calling thread while the producer's queue is full.
    pub fn cast(&self, request: &Request<'_>) -> Result<Arc<DeliveryHandle>> {
        let inner = &self.inner;
        let id = CallId { caller: inner.number, call: inner.ids.draw()? };
        let at = request.place(id, &inner.options, inner.partitions);
        let header = Header { kind: protocol::CAST, id, left: request.timeout, credit: None };
        let sent = inner.send(&header, request, &at, true)?;
        let sent = sent.ok_or(Error::Closed { what: "caller" })?; // Impossible: it has waited for room.
        sent.limit_wait(request.timeout);
        Ok(sent)
    }

    /// Cancels a call and tells its responder. Does not block. Returns `false` if the call had ended before.
    pub fn cancel(&self, call: &Arc<Call>) -> Result<bool> {
        self.inner.producer.0.check_process()?;
        if !self.inner.calls.fail(call, Failure::Cancelled) {
            return Ok(false);
        }
        // Without room in the queue the responder is not told. It ends the call at its deadline.
        self.inner.follow_up(call, protocol::CANCEL, None).map(|_| true)
    }

    /// Takes the next reply of a call, or its end; `None` if neither is there yet. Grants a stream's responder
    /// more. Does not block.
    pub fn try_next(&self, call: &Arc<Call>) -> Result<Option<Next>> {
        let next = call.try_next();
        if let Some(total) = call.due_credit()
            && self.inner.follow_up(call, protocol::MORE, Some(total))?
        {
            call.granted(total);
        }
        Ok(next)
    }

    /// Begins a wait for the next reply of a call; returns `None` if it is there.
    pub fn begin_wait(&self, call: &Arc<Call>, waker: Waker) -> Option<Waiting> {
        Waiting::begin(&self.inner.replies, call, waker)
    }

    /// Has a token posted to the mailbox of an event loop when the next reply of a call is there. The loop serves the
    /// caller's replies until then. Returns `false` if it is there. Does not block.
    pub fn await_on_loop(&self, call: &Call, mailbox: &Arc<Tokens>, token: u64) -> bool {
        self.inner.replies.await_on_loop(call, mailbox, token)
    }

    /// Waits for the next reply of a call, at most until its deadline; returns whether it is there. Blocks the
    /// calling thread, which serves replies if no other thread does.
    pub fn wait(&self, call: &Arc<Call>, deadline: &Deadline) -> bool {
        let is_job = clock::is_job_thread();
        if is_job {
            call.note_waiting_job(1);
        }
        let parker = Arc::new(Parker::default());
        if let Some(waiting) = self.begin_wait(call, Waker::Parker(Arc::clone(&parker))) {
            waiting.wait(&parker, deadline, &deadline.or_earlier(Some(call.until)));
        }
        if is_job {
            call.note_waiting_job(-1);
        }
        call.is_ready()
    }

    /// The partition of the reply topic that the caller reads.
    pub fn replies_at(&self) -> &TopicPartition {
        self.inner.replies.at()
    }

    /// Returns how many calls have not ended.
    pub fn open_calls(&self) -> usize {
        self.inner.calls.count()
    }

    /// The caller's counters.
    pub fn counters(&self) -> &CallCounters {
        &self.inner.calls.counters
    }

    /// The process that the caller belongs to.
    pub fn birthplace(&self) -> Birthplace {
        self.inner.replies.birthplace()
    }

    /// Refuses use in another process than the caller's.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<()> {
        self.inner.producer.0.check_process()
    }

    /// Ends all calls and the caller's thread, and delivers sent requests. Blocks the calling thread, at most for
    /// the timeout.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.check_process()?;
        self.inner.calls.close();
        self.inner.replies.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.join();
        }
        self.inner.producer.0.close(Some(timeout)).map(drop)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.check_process().is_ok() {
            drop(self.close(Duration::ZERO));
        }
    }
}

impl Inner {
    /// Makes a call, for which room was acquired; returns `None` if the producer's queue is full and it may not wait.
    fn begin(
        self: &Arc<Self>,
        request: &Request<'_>,
        wanted: Wanted,
        left: Duration,
        may_wait: bool,
    ) -> Result<Option<Arc<Call>>> {
        let size_bytes = request.size_bytes();
        let begun = self.ids.draw().and_then(|number| {
            let id = CallId { caller: self.number, call: number };
            let call = Call::new(id, wanted, left, request.place(id, &self.options, self.partitions), size_bytes);
            self.calls.add(&call).map(|moment| (call, moment))
        });
        let (call, moment) = begun.inspect_err(|_| self.calls.release(size_bytes))?;
        self.replies.arm(moment);
        let credit = match wanted {
            Wanted::Stream(window) => Some(window),
            Wanted::One | Wanted::Several(_) => None,
        };
        let header = Header { kind: protocol::CALL, id: call.id, left, credit };
        match self.send(&header, request, &call.request_at, may_wait) {
            Ok(Some(delivery)) => {
                self.watch(&call, &delivery);
                Ok(Some(call))
            }
            other => {
                self.calls.fail(&call, Failure::Closed);
                other.map(|_| None)
            }
        }
    }

    /// Ends the call when its request can't be delivered.
    fn watch(self: &Arc<Self>, call: &Arc<Call>, delivery: &Arc<DeliveryHandle>) {
        let token = call.id.call;
        let waker = Waker::Listener { listener: Arc::<Self>::clone(self), token };
        self.sent().insert(token, (Arc::clone(call), Arc::clone(delivery)));
        if !delivery.completion().register(waker) {
            self.tell(token);
        }
    }

    fn sent(&self) -> MutexGuard<'_, Unacknowledged> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a record; returns `None` if the producer's queue is full and it may not wait.
    fn send(
        &self,
        header: &Header<'_>,
        request: &Request<'_>,
        at: &TopicPartition,
        may_wait: bool,
    ) -> Result<Option<Arc<DeliveryHandle>>> {
        let replies = self.replies.at().partition;
        request.with_record(header, &self.options, replies, at.partition, |record| {
            match self.producer.0.try_produce(&at.topic, record)? {
                None if may_wait => {
                    let until = Deadline::after(Some(header.left));
                    self.producer.0.produce(&at.topic, record, &until).map(Some)
                }
                sent => Ok(sent),
            }
        })
    }

    /// Sends a cancellation or credit for a call to its responder; returns whether there was room for it.
    fn follow_up(&self, call: &Call, kind: &str, credit: Option<u64>) -> Result<bool> {
        let left = call.until.saturating_duration_since(clock::now());
        let nothing = Request { method: "", body: b"", key: None, timeout: left, idempotency_key: None, headers: &[] };
        let header = Header { kind, id: call.id, left, credit };
        self.send(&header, &nothing, &call.request_at, false).map(|sent| sent.is_some())
    }
}

impl Listener for Inner {
    /// Handles the broker's answer for a request.
    fn tell(&self, token: u64) {
        let Some((call, delivery)) = self.sent().remove(&token) else { return };
        if let Some(Err(error)) = delivery.result() {
            self.calls.fail(&call, Failure::Unavailable(format!("the request was not delivered: {error}")));
        }
    }
}
