//! Calls to the brokers that are neither produce nor consume: topics, settings, groups, offsets, ACLs, metadata.
//!
//! An answer arrives on the client's main queue, which one thread of ours serves:
//! 1. wait for the next event;
//! 2. turn it into an outcome and complete the call that asked;
//! 3. end when the admin is closed, after every call has been answered or failed.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Client, ClientConfig, ClientOptions, Code, Kind, Metadata, Queue, QueueEvent, ffi};
use crate::clock::Deadline;
use crate::events::EventBox;
use crate::wake::OwnThread;
use crate::{Error, Result};

mod calls;
mod outcome;
mod request;
mod send;

use calls::{Call, Calls, Pending};
pub use outcome::AdminOutcome;
pub use request::AdminRequest;
use send::Target;

/// So often a client that no broker has let in looks whether all refuse it.
const SLICE: Duration = Duration::from_millis(250);

/// A client for admin calls.
pub struct Admin {
    client: Arc<Client>,
    queue: Arc<Queue>,
    bootstrap_servers: String,
    calls: Arc<Calls>,
    is_closing: Arc<AtomicBool>,
    thread: Mutex<Option<OwnThread>>,
}

impl Admin {
    /// Makes the client and starts its thread.
    pub fn new(config: &ClientConfig, events: Arc<EventBox>) -> Result<Self> {
        let client = Client::new(Kind::Admin, "admin", config, events, ClientOptions::default())?;
        let queue = Arc::new(Queue::main(&client));
        let calls = Arc::new(Calls::default());
        let is_closing = Arc::new(AtomicBool::new(false));
        let thread = OwnThread::start("awoke-admin", "start the admin thread", {
            let (queue, calls, is_closing) = (Arc::clone(&queue), Arc::clone(&calls), Arc::clone(&is_closing));
            let client = Arc::clone(&client);
            move || serve(&client, &queue, &calls, &is_closing)
        })?;
        let bootstrap_servers = config.get("bootstrap.servers").unwrap_or("(no bootstrap.servers)").to_owned();
        Ok(Self { client, queue, bootstrap_servers, calls, is_closing, thread: Mutex::new(Some(thread)) })
    }

    /// Asks for one topic, or for all. Blocks the calling thread.
    pub fn metadata(&self, topic: Option<&str>, timeout: Duration) -> Result<Metadata> {
        let deadline = Deadline::after(Some(timeout));
        loop {
            // A client that was let in waits for the answer; one that was not looks now and then whether it ever will
            // be.
            let slice = (!self.client.was_let_in()).then_some(SLICE);
            let (operation, code) = match self.client.metadata(topic, &deadline.or_within(slice)) {
                Err(Error::Kafka { operation, code, .. }) if matches!(code, Code::TRANSPORT | Code::TIMED_OUT) => {
                    (operation, code)
                }
                other => return other,
            };
            if let Some(failure) = self.client.access_failure() {
                return Err(Error::kafka(operation, failure.code, failure.text));
            }
            if deadline.has_passed() {
                return Err(Error::kafka(operation, code, self.no_answer_text(timeout)));
            }
        }
    }

    /// Sends a request, whose answer completes the call that is returned. Does not block.
    pub fn request(&self, request: &AdminRequest, timeout: Duration) -> Result<Arc<Call>> {
        self.check_open()?;
        let call = Arc::new(Call::default());
        let number = self.calls.add(Pending {
            call: Arc::clone(&call),
            operation: request.operation(),
            unreachable: self.no_answer_text(timeout),
        });
        if let Err(error) = self.send(request, number, timeout) {
            drop(self.calls.take(number));
            return Err(error);
        }
        if let Some(failure) = self.client.access_failure() {
            self.calls.deny_all(&failure);
        }
        Ok(call)
    }

    /// Ends the thread. Calls that were not answered fail as closed. Blocks until the thread has ended.
    pub fn close(&self) {
        if self.client.check_process().is_err() {
            return;
        }
        self.is_closing.store(true, Ordering::Release);
        self.queue.interrupt();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.join();
        }
        self.calls.fail_all();
    }

    fn check_open(&self) -> Result<()> {
        self.client.check_process()?;
        if self.is_closing.load(Ordering::Acquire) { Err(Error::Closed { what: "admin" }) } else { Ok(()) }
    }

    fn send(&self, request: &AdminRequest, number: usize, timeout: Duration) -> Result<()> {
        // Not a pointer: librdkafka only carries the call's number.
        let opaque = std::ptr::without_provenance_mut(number);
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).clamp(1, 3_600_000);
        let mut reason = [0 as c_char; 128];
        // SAFETY: the options live until the request is sent.
        unsafe {
            let options = ffi::rd_kafka_AdminOptions_new(self.client.handle(), send::operation_of(request));
            ffi::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            // Wait until the topic is there and not only until the controller has heard of it; fails where it has no
            // meaning.
            ffi::rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, reason.as_mut_ptr(), reason.len());
            if matches!(request, AdminRequest::ListStableOffsets(_)) {
                let level = ffi::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED;
                let refused = ffi::rd_kafka_AdminOptions_set_isolation_level(options, level);
                debug_assert!(refused.is_null(), "the operation has an isolation level");
            }
            ffi::rd_kafka_AdminOptions_set_opaque(options, opaque);
            let sent =
                send::send(request, &Target { handle: self.client.handle(), options, queue: self.queue.as_ptr() });
            ffi::rd_kafka_AdminOptions_destroy(options);
            sent
        }
    }

    fn no_answer_text(&self, timeout: Duration) -> String {
        let cause = self.client.last_error();
        let cause = if cause.is_empty() { String::new() } else { format!(" ({cause})") };
        format!("no broker of {} answered within {:.1} s{cause}", self.bootstrap_servers, timeout.as_secs_f64())
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.close();
    }
}

fn serve(client: &Client, queue: &Queue, calls: &Calls, is_closing: &AtomicBool) {
    while !is_closing.load(Ordering::Acquire) {
        let look_again = client.is_suspect() && !calls.are_answered();
        if let Some(event) = queue.poll(&Deadline::after(look_again.then_some(Client::LOOK_AGAIN))) {
            answer(&event, calls);
        }
        if let Some(failure) = client.access_failure() {
            calls.deny_all(&failure);
        }
    }
    // What has been answered already is handed on; `close` fails what is under way.
    let now = Deadline::after(Some(Duration::ZERO));
    while let Some(event) = queue.poll(&now) {
        answer(&event, calls);
    }
}

fn answer(event: &QueueEvent, calls: &Calls) {
    if event.number() < ffi::RD_KAFKA_EVENT_CREATETOPICS_RESULT {
        return;
    }
    let Some(pending) = calls.take(event.opaque().addr()) else { return };
    let outcome = match event.code() {
        Code::NONE => match outcome::outcome_of(event) {
            Some(outcome) => Ok(outcome.explain(&pending.unreachable)),
            None => Err(Error::Invalid {
                reason: format!("{}: an answer of an unknown kind ({})", pending.operation, event.number()),
            }),
        },
        code @ (Code::TIMED_OUT | Code::TRANSPORT) => Err(Error::kafka(pending.operation, code, pending.unreachable)),
        code => Err(Error::kafka(pending.operation, code, event.error_text())),
    };
    pending.call.complete(outcome);
}
