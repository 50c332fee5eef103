//! The pending delivery of a message: what its sender has until the broker has answered.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::Reports;
use crate::clock::{self, Deadline};
use crate::fork_guard::Birthplace;
use crate::kafka::{AccessFailure, Code, Delivery, EndedLinger, Topic};
use crate::wake::{Completion, Latch, Parker, Place, ServingWait, Tokens, Waker};
use crate::{Error, Result};

/// The broker's answer, or why there is none.
pub type Report = std::result::Result<Delivery, Code>;

/// The destination that the handles of messages of one topic share.
#[derive(Debug)]
pub(super) struct Destination {
    /// The topic, to name the operation in errors.
    pub(super) topic: Arc<str>,
    /// Weak, as all of them: a handle that is kept must not keep a client.
    pub(super) reports: Weak<Reports>,
    pub(super) sender: Weak<Topic<DeliveryHandle>>,
    /// Why brokers refused the client, when a message failed for that.
    pub(super) refused: Mutex<Option<AccessFailure>>,
    /// The time after which every message has its report; `None` when the setting says never.
    pub(super) answer_timeout: Option<Duration>,
}

/// The detail of the error of a message that was reported as delivered without an offset.
const UNCONFIRMED: &str = "no broker has told the offset of this message: a request failed, and those behind it did \
    not; the message may be missing from the topic, so send it again";

/// In place of the number of a linger that ended.
const NOT_AWAITED: u8 = u8::MAX;

/// A wait for one answer, by a thread that serves reports while it is the leader. Dropped, it leaves its place to
/// others.
pub struct Waiting<'a> {
    handle: &'a DeliveryHandle,
    /// `None` when the producer is gone: the answer has come, or is about to.
    reports: Option<Arc<Reports>>,
    place: Cell<Option<Place>>,
    waker: Waker,
}

impl ServingWait for Waiting<'_> {
    /// Serves until the answer is there or the deadline passes, if this thread is the leader. Returns whether the
    /// answer is there. May return early: a follower then waits for its waker, and calls again. Blocks a leader.
    fn step(&self, deadline: &Deadline) -> bool {
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            let place = reports.leadership().current(place);
            self.place.set(Some(place));
            if place == Place::Leader && !self.handle.completion.is_done() {
                reports.serve_for(self.handle, deadline);
            }
        }
        self.handle.completion.is_done()
    }

    /// Returns whether another thread serves.
    fn is_follower(&self) -> bool {
        self.place.get() != Some(Place::Leader)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.handle.completion.unregister(&self.waker);
        if let (Some(reports), Some(place)) = (&self.reports, self.place.get()) {
            reports.leave(place);
        }
        self.handle.cancel_wait();
    }
}

/// The pending delivery of a message.
///
/// The producer has the other reference until the report has come; a handle that its sender drops costs nothing more.
#[derive(Debug)]
pub struct DeliveryHandle {
    destination: Arc<Destination>,
    /// Key, value and headers; the size that the producer's budget counts.
    pub(super) size_bytes: usize,
    birthplace: Birthplace,
    /// The message's partition; -1 until the topic's partitions are known.
    partition: AtomicI32,
    /// The number of the linger that ended because a thread or an event loop waits, or `NOT_AWAITED`.
    ended_linger: AtomicU8,
    /// The leader serves reports for this message: another thread that serves its report ends the leader's poll.
    pub(super) is_served_for: AtomicBool,
    /// A task of an event loop waits for the answer.
    is_awaited_by_loop: AtomicBool,
    /// The limit of waits without a time-out of their own; 0 for that of the settings.
    limit_ms: AtomicU32,
    /// The answer was asked for, or is awaited: awoke does not have to tell that the message was not delivered.
    is_looked_at: AtomicBool,
    has_failed: AtomicBool,
    completion: Completion<Report>,
}

impl DeliveryHandle {
    pub(super) fn new(destination: Arc<Destination>, size_bytes: usize, birthplace: Birthplace) -> Self {
        Self {
            destination,
            size_bytes,
            birthplace,
            partition: AtomicI32::new(-1),
            ended_linger: AtomicU8::new(NOT_AWAITED),
            is_served_for: AtomicBool::new(false),
            is_awaited_by_loop: AtomicBool::new(false),
            limit_ms: AtomicU32::new(0),
            is_looked_at: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            completion: Completion::default(),
        }
    }

    /// Makes the handle of a message that is delivered already, by no producer.
    pub fn delivered(topic: Arc<str>, delivery: Delivery) -> Self {
        let (reports, sender, refused) = (Weak::new(), Weak::new(), Mutex::default());
        let destination = Destination { topic, reports, sender, refused, answer_timeout: None };
        let handle = Self::new(Arc::new(destination), 0, Birthplace::here());
        handle.complete(Ok(delivery));
        handle
    }

    /// Completes the handle.
    pub(super) fn complete(&self, report: Report) {
        let report = report.map_err(|code| self.note_failed(code));
        self.has_failed.store(report.is_err(), Ordering::SeqCst);
        self.completion.complete(report);
        self.end_wait();
        self.end_wait_of_loop();
    }

    /// Returns what serves its reports; `None` when the producer is gone.
    pub(super) fn reports(&self) -> Option<Arc<Reports>> {
        self.destination.reports.upgrade()
    }

    /// Notes the message's partition.
    pub(super) fn set_partition(&self, partition: i32) {
        self.partition.store(partition, Ordering::SeqCst);
    }

    /// Returns the message's partition; -1 until the topic's partitions are known.
    pub(super) fn partition(&self) -> i32 {
        self.partition.load(Ordering::SeqCst)
    }

    /// Counts a failure. Returns the code of its cause, where brokers refused the client.
    fn note_failed(&self, code: Code) -> Code {
        let Some(reports) = self.destination.reports.upgrade() else { return code };
        let failure = reports.cause_of(code);
        let code = failure.as_ref().map_or(code, |failure| failure.code);
        if let Some(failure) = failure {
            *self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
        reports.count_failed(self.error(code));
        code
    }

    /// Has the message, and those of its partition that were sent before it, sent without lingering, because its answer
    /// is awaited. Does not block.
    pub fn begin_awaiting(&self) {
        if self.completion.is_done() || self.ended_linger.load(Ordering::SeqCst) != NOT_AWAITED {
            return;
        }
        let (Some(reports), Some(sender)) = (self.destination.reports.upgrade(), self.destination.sender.upgrade())
        else {
            return;
        };
        reports.add_awaited();
        let ended = sender.end_linger(self);
        let known = (NOT_AWAITED, ended.to_number());
        if self.ended_linger.compare_exchange(known.0, known.1, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            reports.end_awaited(ended); // Another thread was first.
        } else if self.completion.is_done() {
            self.end_wait(); // The report came meanwhile, perhaps before the message was counted.
        }
    }

    /// Has a token posted to the mailbox of an event loop when the answer comes. The loop serves the producer's reports
    /// until then. Returns `false` if the answer is there. Does not block.
    pub fn await_on_loop(&self, mailbox: &Arc<Tokens>, token: u64) -> bool {
        self.look();
        if !self.completion.register(Waker::Mailbox { mailbox: Arc::clone(mailbox), token }) {
            return false;
        }
        if let Some(reports) = self.destination.reports.upgrade()
            && !self.is_awaited_by_loop.swap(true, Ordering::SeqCst)
        {
            reports.begin_wait_of_loop(mailbox);
            if self.completion.is_done() {
                self.end_wait_of_loop(); // The report came meanwhile.
            }
        }
        true
    }

    /// Ends the wait of a task, if there is one.
    fn end_wait_of_loop(&self) {
        if self.is_awaited_by_loop.swap(false, Ordering::SeqCst)
            && let Some(reports) = self.destination.reports.upgrade()
        {
            reports.end_wait_of_loop();
        }
    }

    /// Ends a wait before the answer: the message may linger again. Does not block.
    pub fn cancel_wait(&self) {
        self.end_wait();
    }

    /// Counts the message as awaited no more.
    fn end_wait(&self) {
        let number = self.ended_linger.swap(NOT_AWAITED, Ordering::SeqCst);
        if number != NOT_AWAITED
            && let Some(reports) = self.destination.reports.upgrade()
        {
            reports.end_awaited(EndedLinger::from_number(number));
        }
    }

    /// Ends the poll of the leader, which serves reports for this handle, because another thread has served its report.
    pub(super) fn end_service(&self) {
        if let Some(reports) = self.destination.reports.upgrade() {
            reports.end_service();
        }
    }

    /// Returns the topic that the message was sent to.
    pub fn topic(&self) -> &Arc<str> {
        &self.destination.topic
    }

    /// Refuses use in another process than the producer's, where no answer comes.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<()> {
        Ok(self.birthplace.check("delivery handle")?)
    }

    /// Returns the completion, to wait on in other ways.
    pub fn completion(&self) -> &Completion<Report> {
        self.look();
        &self.completion
    }

    /// Notes that its sender looks at the answer.
    fn look(&self) {
        self.is_looked_at.store(true, Ordering::SeqCst);
    }

    /// Returns the answer, if it has come. Does not block.
    pub fn result(&self) -> Option<Result<Delivery>> {
        self.look();
        self.completion.get().map(|report| self.explain(report))
    }

    /// Returns when the answer came, in nanoseconds of the monotonic clock; 0 when it was not awaited then.
    pub fn woken_at_ns(&self) -> u64 {
        self.completion.woken_at_ns()
    }

    /// Waits for the answer. Blocks the calling thread, which serves the producer's reports if no other thread does.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none came within `timeout` (the message may still arrive); [`Error::Kafka`] when the
    /// broker or librdkafka refused the message; [`Error::Forked`] in another process than the producer's.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Delivery> {
        self.check_process()?;
        let since = clock::real_now();
        if let Some(report) = self.wait_until(&Deadline::after(timeout)) {
            return self.explain(report);
        }
        Err(Error::TimedOut { operation: self.operation(), waited: clock::real_since(since) })
    }

    /// Waits for the answer, as `wait`; `None` when the deadline passed first.
    pub fn wait_until(&self, deadline: &Deadline) -> Option<Report> {
        let parker = Arc::new(Parker::default());
        if let Some(waiting) = self.begin_wait(Waker::Parker(Arc::clone(&parker))) {
            waiting.wait(&parker, deadline, deadline);
        }
        self.completion.get()
    }

    /// Begins a wait; `None` when the answer is there. The waker is woken when there may be something to do: see
    /// `Waiting`.
    pub fn begin_wait(&self, waker: Waker) -> Option<Waiting<'_>> {
        self.look();
        if self.completion.is_done() {
            return None;
        }
        // First: if the broker's thread has not seen the message yet, it is woken once for both.
        self.begin_awaiting();
        let reports = self.destination.reports.upgrade();
        let place = reports.as_ref().map(|reports| reports.leadership().join(waker.clone()));
        let waker = if place == Some(Place::Leader) { Waker::Leader } else { waker };
        let waiting = Waiting { handle: self, reports, place: Cell::new(place), waker };
        if !self.completion.register(waiting.waker.clone()) {
            return None;
        }
        Some(waiting)
    }

    /// Waits until all messages are answered, delivered or not; `false` when the time was up first. Blocks the calling
    /// thread.
    pub fn wait_all(handles: &[Arc<Self>], timeout: Option<Duration>) -> bool {
        handles.iter().for_each(|handle| handle.begin_awaiting());
        let are_done = Latch::wait_all(handles.iter().map(|handle| handle.completion()), &Deadline::after(timeout));
        if !are_done {
            handles.iter().for_each(|handle| handle.cancel_wait());
        }
        are_done
    }

    /// Returns the answer, with an error of this operation.
    fn explain(&self, report: Report) -> Result<Delivery> {
        report.map_err(|code| self.error(code))
    }

    fn error(&self, code: Code) -> Error {
        let refused = self.destination.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let detail = match code {
            Code::DUPLICATE_SEQUENCE => Some(UNCONFIRMED.to_owned()),
            code => refused.filter(|failure| failure.code == code).map(|failure| failure.text),
        };
        Error::kafka(self.operation(), code, detail.unwrap_or_default())
    }

    /// Returns the time for which a wait without a time-out of its own lasts; `None` for no limit.
    pub fn wait_max(&self) -> Option<Duration> {
        let limit_ms = self.limit_ms.load(Ordering::Relaxed);
        if limit_ms == 0 { self.destination.answer_timeout } else { Some(Duration::from_millis(limit_ms.into())) }
    }

    /// Limits waits without a time-out of their own, which else last until the answer has come.
    pub fn limit_wait(&self, limit: Duration) {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1);
        self.limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    /// Returns the operation in words, for errors.
    pub fn operation(&self) -> String {
        format!("produce to {}", self.destination.topic)
    }
}

impl Drop for DeliveryHandle {
    /// Tells of a message that was not delivered, if its answer was not looked at and can't be any more.
    fn drop(&mut self) {
        if !self.has_failed.load(Ordering::SeqCst) || self.is_looked_at.load(Ordering::SeqCst) {
            return;
        }
        if self.check_process().is_ok()
            && let Some(Err(code)) = self.completion.get()
            && let Some(reports) = self.destination.reports.upgrade()
        {
            reports.note_lost(&self.destination.topic, code, &self.error(code));
        }
    }
}
